//! The consequences of an enforced budget for every client: a stream must be counted also where its
//! client does not want it to be. Budgets are read at the start only, and so is this.

use ::price::Book;
use relay::Kind;
use usage::Policy;

use super::values::Reader;
use crate::file;
use crate::mistake::Mistake;
use crate::settings::Value;

/// The note of `check-config`, and of the log at the start.
pub(super) const NOTE: &str = "a budget is enforced, so upstreams without a `usage` of their own are asked for \
                               running counts (`continuous`)";

impl Reader<'_> {
    /// Returns whether a listed budget is enforced.
    pub(super) fn enforces(&self) -> bool {
        let entries = self.written.budgets.iter().flat_map(|(_, entries)| entries);
        entries
            .filter_map(|entry| entry.fields.get("enforce"))
            .any(|written| file::truth(&written.text) == Some(true))
    }

    /// The usage policy of an upstream that has none of its own.
    pub(super) fn default_usage(&self) -> Policy {
        if self.enforces() { Policy::Continuous } else { Policy::Inject }
    }

    /// Warns of a written policy that lets a client leave before it is counted.
    pub(super) fn check_usage(&mut self, written: &Value, policy: Policy) {
        if policy == Policy::Continuous || !self.enforces() {
            return;
        }
        let what = format!(
            "a budget is enforced, and with `usage: {}` a client that leaves a stream before its end is counted in part",
            policy.name()
        );
        let warning = Mistake::at(&written.origin, what, "write continuous, or remove this");
        // A general setting is read once for each upstream.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Warns of an upstream that may answer to any name while the name that a client writes decides its price.
    pub(super) fn check_names(&mut self, upstreams: &[relay::Upstream], book: &Book) {
        if !self.enforces() {
            return;
        }
        for relay::Upstream { name, kind, .. } in upstreams {
            let (is_llama_cpp, provider) = (*kind == Some(Kind::LlamaCpp), kind.map(Kind::name));
            if !(is_llama_cpp || kind.is_none()) || !book.is_chosen_by_name(provider, name) {
                continue;
            }
            let what = match is_llama_cpp {
                true => format!(
                    "a budget is enforced, and the upstream `{name}` answers to any model's name, so its clients choose \
                     among the prices"
                ),
                false => format!(
                    "a budget is enforced, and the upstream `{name}`, whose kind is not written, may answer to any \
                     model's name; then its clients choose among the prices"
                ),
            };
            let remedy = format!(
                "give the price file one entry for it, `pattern: \"*\"` with `upstream: \"{name}\"`{}",
                if is_llama_cpp { "" } else { ", or write its `kind`" }
            );
            self.warnings.push(Mistake::missing("prices", what, remedy));
        }
    }

    /// Returns whether work that goes on after its client left is refused.
    pub(super) fn refuses_detached(&mut self) -> bool {
        let written = self.value("detached_work");
        match self.one_of_setting("detached_work", &written) {
            "allow" => false,
            "refuse" => true,
            _ => self.enforces(),
        }
    }

    /// The note on the policy, where it follows from a budget.
    pub(super) fn usage_notes(&self) -> Vec<String> {
        let written = self.written;
        let is_one = written.values.contains_key("upstream");
        let mut listed = written.upstreams.iter().flat_map(|(_, entries)| entries);
        let lacks = is_one || listed.any(|entry| !entry.fields.contains_key("usage"));
        let follows = self.enforces() && lacks && !written.values.contains_key("usage");
        follows.then(|| NOTE.to_owned()).into_iter().collect()
    }
}
