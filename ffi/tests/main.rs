//! The library as a C program sees it: its header, its symbols, and programs that use it.

mod header;
mod install;
mod prefix;
mod programs;
mod python;
mod replayed;
mod server;
mod symbols;
mod toolchain;
