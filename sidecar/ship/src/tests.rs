//! The store against a real PostgreSQL: what is kept once, by whom it may be written, and what happens when
//! either side goes away.

mod batches;
mod document;
mod histories;
mod ledgers;
mod refusals;
mod reports;
mod resend;
mod rights;
mod rows;
mod server;
mod shipping;
mod verify;
mod views;
