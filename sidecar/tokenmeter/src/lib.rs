//! The library behind the binary: reads the settings, plans, and assembles the process.
//!
//! `cli`, `file` and the environment are read into [`settings`] (as written), [`plan`] turns them
//! into the plan of each part or reports every error at once, and `assemble` creates the parts
//! and connects them: the only module that knows them all.

// As written.
pub mod cli;
pub mod file;
pub mod origin;
pub mod settings;

// From written to run.
pub mod diagnostic;
pub mod effective;
mod loops;
pub mod machine;
pub mod plan;
mod url;

// The parts of the control plane that belong to this crate, and the assembly of all parts.
pub mod assemble;
pub mod log;
mod probe;
mod readiness;
pub mod reload;
mod source;
mod start_error;

// The commands.
pub mod command;
pub mod curve;
#[cfg(feature = "demo")]
pub mod demo;
#[cfg(test)]
mod folder;
mod resource_usage;
mod run;
mod signals;

/// The types for running tokenmeter inside another process.
pub use {assemble::Process, plan::Plan, start_error::StartError};
