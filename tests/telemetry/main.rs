//! The rules, alerts, dashboards and questions for operators: all of them parse, use existing names only, and the rules
//! have the documented effect.

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
