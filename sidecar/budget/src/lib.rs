//! Budgets: what a tenant may spend in a period, how much of it is gone, and who is to be told.
//!
//! Laws: money is exact and whole pico-units; a threshold is told of once in a period; nobody is
//! refused unless a budget says so.
