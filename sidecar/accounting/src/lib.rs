//! Accounts for finished exchanges, from the outbox to the ledger.
//!
//! `records` reads the outbox; `pipeline` takes each record to the totals, the charge, the budgets, the
//! ledger, the access log, the attribution of GPU use and the export. `billing` starts and stops what is behind it.
//!
//! Laws: nothing here waits on the way of a record, and no failure here affects traffic.

pub mod access_log;
pub mod admin_page;
pub mod billing;
mod budget_restore;
mod budget_state_file;
mod budgets;
pub mod charger;
pub mod export_link;
mod fleet;
pub mod gpu_link;
mod gpu_samples;
mod idle_gpu;
mod ledger_samples;
mod missing_tiers;
mod model_gate;
mod month_spend;
pub mod pipeline;
pub mod records;
#[cfg(test)]
mod test_rates;
pub mod tokenizer_stage;
pub mod totals;
mod unknown_counts;
#[cfg(test)]
mod written_samples;

pub use billing::{Billing, LedgerPlan};
pub use budgets::BudgetsPlan;
