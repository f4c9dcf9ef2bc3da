//! The library as a C program sees it: its header, its symbols, and programs that use it.

#[cfg(feature = "exporters")]
mod exporters;
mod header;
mod install;
mod prefix;
mod programs;
mod python;
mod replayed;
mod server;
mod symbols;
mod toolchain;
