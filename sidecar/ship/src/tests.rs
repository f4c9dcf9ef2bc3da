//! The store in a real PostgreSQL: rows kept once, rights, and failures of either side.

mod batches;
mod closing;
mod document;
mod fleet;
mod forget;
mod histories;
mod hostile;
mod kills;
mod ledgers;
mod refusals;
mod reports;
mod resend;
mod rights;
mod rows;
mod server;
mod shipping;
mod time_zones;
mod upgrade;
mod verify;
mod views;
