//! The ledger's laws, in a process that is killed and given failing system calls: acknowledged rows are there once,
//! unchanged, and the totals are correct.

mod audit;
mod commands;
mod damage;
mod faults;
mod kills;
mod life;
mod syscalls;
