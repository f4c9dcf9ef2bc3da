//! Consequences of an enforced budget for other settings: streams must be counted even if their clients ask
//! for no counts. Budgets are read at the start only, and so are these consequences.

use ::price::Book;
use origin::{Diagnostic, file};
use relay::{ServerKind, UsagePolicy};

use super::values::Reader;
use crate::settings::Value;

/// The note that `check-config` prints and the start logs.
pub(super) const NOTE: &str = "a budget is enforced, so upstreams without their own `usage` are `continuous`: \
                               they are asked for running counts";

impl Reader<'_> {
    /// Returns true if a listed budget is enforced.
    pub(super) fn enforces(&self) -> bool {
        let entries = self.written.budgets.iter().flat_map(|(_, entries)| entries);
        entries
            .filter_map(|entry| entry.fields.get("enforce"))
            .any(|written| file::truth(&written.text) == Some(true))
    }

    /// Returns the usage policy of an upstream that sets none.
    pub(super) fn default_usage(&self) -> UsagePolicy {
        if self.enforces() { UsagePolicy::Continuous } else { UsagePolicy::Inject }
    }

    /// Warns of a policy under which a client can leave a stream uncounted.
    pub(super) fn check_usage(&mut self, written: &Value, policy: UsagePolicy) {
        if policy == UsagePolicy::Continuous || !self.enforces() {
            return;
        }
        let problem = format!(
            "a budget is enforced, and with `usage: {}` the tokens of a client that disconnects during a \
             stream are counted only in part",
            policy.name()
        );
        let warning = Diagnostic::at(&written.origin, problem, "write continuous, or remove the key");
        // A general setting is parsed once per upstream.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Warns of an upstream that may accept any model name while the name in a request decides its price.
    pub(super) fn check_names(&mut self, upstreams: &[relay::Upstream], book: &Book) {
        if !self.enforces() {
            return;
        }
        for relay::Upstream { name, kind, provider, .. } in upstreams {
            let is_llama_cpp = *kind == Some(ServerKind::LlamaCpp);
            let provider = kind.is_some().then_some(&**provider);
            if !(is_llama_cpp || kind.is_none()) || !book.is_chosen_by_name(provider, name) {
                continue;
            }
            let problem = match is_llama_cpp {
                true => format!(
                    "a budget is enforced, and the upstream `{name}` accepts any model name, so its clients choose their \
                     price"
                ),
                false => format!(
                    "a budget is enforced, and the upstream `{name}`, whose `kind` is not set, may accept any model name; \
                     then its clients choose their price"
                ),
            };
            let remedy = format!(
                "give the price file one entry for it, `pattern: \"*\"` with `upstream: \"{name}\"`{}",
                if is_llama_cpp { "" } else { ", or set its `kind`" }
            );
            self.warnings.push(Diagnostic::missing("prices", problem, remedy));
        }
    }

    /// Returns true if work that continues after its client disconnects is refused.
    pub(super) fn refuses_detached(&mut self) -> bool {
        let written = self.value("detached_work");
        match self.one_of_setting("detached_work", &written) {
            "allow" => false,
            "refuse" => true,
            _ => self.enforces(),
        }
    }

    /// Returns the note on the usage policy, if a budget sets it.
    pub(super) fn usage_notes(&self) -> Vec<String> {
        let written = self.written;
        let is_one = written.values.contains_key("upstream");
        let mut listed = written.upstreams.iter().flat_map(|(_, entries)| entries);
        let lacks = is_one || listed.any(|entry| !entry.fields.contains_key("usage"));
        let follows = self.enforces() && lacks && !written.values.contains_key("usage");
        follows.then(|| NOTE.to_owned()).into_iter().collect()
    }
}
