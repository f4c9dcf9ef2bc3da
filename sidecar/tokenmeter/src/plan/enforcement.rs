//! The consequences of an enforced budget for every client: a stream must be counted also where its
//! client does not want it to be. Budgets are read at the start only, and so is this.

use usage::Policy;

use super::values::Reader;
use crate::mistake::Mistake;
use crate::settings::Value;

/// The note of `check-config`, and of the log at the start.
pub(super) const NOTE: &str = "a budget is enforced, so upstreams without a `usage` of their own are asked for \
                               running counts (`continuous`)";

impl Reader<'_> {
    /// Returns whether a listed budget is enforced.
    pub(super) fn enforces(&self) -> bool {
        let entries = self.written.budgets.iter().flat_map(|(_, entries)| entries);
        entries.filter_map(|entry| entry.fields.get("enforce")).any(|written| written.text == "true")
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
