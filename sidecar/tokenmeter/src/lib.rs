//! The binary's inside: what was written becomes what runs, and what runs is put together.
//!
//! `cli`, `file` and the environment are read into [`settings`] (as written), [`plan`] turns them
//! into what each part needs (as run) or tells every mistake at once, and `assemble` makes
//! the parts and connects them: the only place that knows them all.

// As written.
pub mod cli;
pub mod file;
pub mod origin;
pub mod settings;

// From written to run.
pub mod effective;
mod loops;
pub mod machine;
pub mod mistake;
pub mod plan;
mod url;

// As run: the parts of the control plane that are ours, then all parts put together.
mod access;
pub mod assemble;
mod books;
mod budgets;
mod fleet;
pub mod log;
mod memory;
mod priced;
mod probe;
mod readiness;
mod records;
mod recount;
mod refusal;
pub mod reload;
mod source;
mod spent;
mod tiers;
mod today;
mod totals;

// What the commands do.
pub mod command;
pub mod curve;
mod demo;
mod desk;
mod exports;
#[cfg(test)]
mod folder;
mod gpus;
mod holdings;
mod idle;
mod run;
mod signals;
mod spend;

/// What one starts in a process of one's own: the plan, and everything it says.
pub use {assemble::Process, plan::Plan, refusal::StartError};
