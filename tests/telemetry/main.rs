//! What operators are given to read the metrics with: recording rules, alerts, dashboards and the
//! questions. All of it parses, names only what there is, and the rules do what they say.

mod catalogue;
mod currency;
mod dashboards;
mod expressions;
mod names;
mod programs;
mod promql;
mod promtool;
mod questions;
mod repository;
mod rules;
