//! The ledger's promises, kept by a process that is killed, starved and lied to: what was acknowledged is
//! there once, as it was, and the totals are right.

mod audit;
mod commands;
mod damage;
mod faults;
mod kills;
mod life;
mod syscalls;
