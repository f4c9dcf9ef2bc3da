//! The library behind the binary: reads the settings, plans, and assembles the process.
//!
//! [`cli`], the settings file and the environment are read into [`settings`] (as written), [`plan`] turns them into the
//! plan of each part or reports every error at once, [`assemble`] creates the parts and connects them: the only module
//! that knows them all. [`commands`] are the subcommands; `run` is the proxy from its start to its exit code.

pub mod assemble;
pub mod cli;
pub mod commands;
#[cfg(feature = "demo")]
pub mod demo;
#[cfg(test)]
mod folder;
pub mod log;
pub mod plan;
pub mod reload;
mod run;
pub mod settings;
mod token_file;
mod version;

/// The types for running tokenmeter inside another process.
pub use {assemble::Process, assemble::start_error::StartError, plan::Plan};
