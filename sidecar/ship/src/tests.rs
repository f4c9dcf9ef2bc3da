//! The store against a real PostgreSQL: what is kept once, by whom it may be written, and what happens when
//! either side goes away.

mod document;
mod histories;
mod ledgers;
mod parcels;
mod refusals;
mod reports;
mod resend;
mod rights;
mod rows;
mod server;
mod shipping;
mod verify;
mod views;
