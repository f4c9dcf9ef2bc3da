//! Plans the budgets and the webhook of their alerts. A limit that cannot be exact is an error.

use std::path::Path;

use accounting::BudgetsPlan;
use budget::{Budget, Endpoint, Period, Secret};
use origin::{Diagnostic, Origin, content};
use relay::{Terms, UnknownPaths};
use tenant::Spec;

use super::values::{Reader, pico};
use crate::settings::{
    BUDGET_DURATIONS, BUDGET_LIST, BUDGET_UNKNOWN_PATHS, BUDGET_UNPRICED, Entry, Value, setting,
};

impl Reader<'_> {
    pub(super) fn budgets(&mut self) -> BudgetsPlan {
        let written = self.written;
        let webhook = self.webhook();
        let Some((list, entries)) = &written.budgets else {
            if webhook.is_some() {
                let origin = self.value(WEBHOOK).origin;
                let problem = format!("has no effect without `{}`", BUDGET_LIST.key);
                self.warnings.push(Diagnostic::at(
                    &origin,
                    problem,
                    "list some in the file, or remove the webhook",
                ));
            }
            return BudgetsPlan { webhook, ..BudgetsPlan::default() };
        };
        self.check_requirements(list);
        if entries.is_empty() && self.errors.is_empty() {
            self.errors.push(Diagnostic::at(list, "`budgets` is empty", BUDGET_LIST.remedy()));
        }
        if entries.len() > BUDGETS_MAX {
            let problem = format!("{} budgets are listed", entries.len());
            let remedy =
                format!("keep {BUDGETS_MAX}; one budget limits each tenant that it covers separately");
            self.errors.push(Diagnostic::at(list, problem, remedy));
        }
        let (mut budgets, mut terms): (Vec<Budget>, _) = (Vec::new(), Vec::new());
        for entry in entries {
            let budget = self.budget(entry);
            if !budget.name.is_empty() && budgets.iter().any(|earlier| earlier.name == budget.name) {
                let origin = entry.fields.get("name").map_or(&entry.origin, |name| &name.origin);
                let problem = format!("two budgets are named `{}`", budget.name);
                self.errors.push(Diagnostic::at(origin, problem, "give each a `name` of its own"));
            }
            terms.push(self.terms(entry, &budget));
            budgets.push(budget);
        }
        BudgetsPlan { budgets, terms, webhook }
    }

    /// Warns of budgets that cover no tenant of the current rules.
    pub(super) fn check_covers(&mut self, plan: &BudgetsPlan, rules: &Spec) {
        let written = self.written;
        let (Some(tenants), Some((_, entries))) = (rules.tenants(), &written.budgets) else { return };
        for (budget, entry) in plan.budgets.iter().zip(entries) {
            let uncovered: Vec<String> = (budget.tenants.iter())
                .filter(|glob| !tenants.iter().any(|tenant| glob.matches(tenant)))
                .map(|glob| format!("`{}`", glob.text().escape_debug()))
                .collect();
            if uncovered.is_empty() {
                continue;
            }
            let problem = format!(
                "no tenant of the rules matches {}, of budget `{}`",
                uncovered.join(" or "),
                budget.name
            );
            let remedy = match rules.rules.is_empty() {
                true => "set `tenants`: without rules, every request belongs to the default tenant",
                false => "write a tenant of the rules, or add a rule for this one",
            };
            let origin = entry.fields.get("tenants").map_or(&entry.origin, |written| &written.origin);
            self.warnings.push(Diagnostic::at(origin, problem, remedy));
        }
    }

    /// Checks that there are prices to charge by, and warns if no ledger persists the spend.
    fn check_requirements(&mut self, list: &Origin) {
        let is_written = |key: &str| self.written.values.get(key).is_some_and(|value| !value.text.is_empty());
        if !is_written("prices") {
            let problem = "budgets are listed, but there are no prices, so nothing is charged";
            self.errors.push(Diagnostic::at(list, problem, "set `prices` to a price file"));
        }
        if !is_written("ledger") {
            let problem = "budgets are listed, but there is no ledger, so a restart forgets the spend";
            self.warnings.push(Diagnostic::at(list, problem, "set `ledger` to a file"));
        }
    }

    fn budget(&mut self, entry: &Entry) -> Budget {
        let name = match entry.fields.get("name") {
            Some(written) => self.name(written),
            None => {
                let problem = "a budget has no `name`";
                self.errors.push(Diagnostic::at(
                    &entry.origin,
                    problem,
                    "add one; alerts and rejections name it",
                ));
                String::new()
            }
        };
        let hard = entry.fields.get("max_budget").and_then(|written| self.limit(written));
        let soft = entry.fields.get("soft_budget").and_then(|written| self.limit(written));
        if !entry.fields.contains_key("max_budget") && !entry.fields.contains_key("soft_budget") {
            let remedy = "add `max_budget`, `soft_budget` or both, in the price book's currency";
            self.errors.push(Diagnostic::at(&entry.origin, "a budget has no limit", remedy));
        }
        if let (Some(hard), Some(soft), Some(written)) = (hard, soft, entry.fields.get("soft_budget"))
            && soft >= hard
        {
            let problem = "`soft_budget` is not below `max_budget`, so it never warns first";
            self.errors.push(Diagnostic::at(&written.origin, problem, "lower it, or remove it"));
        }
        let enforce = self.is_true(entry, "enforce");
        if let Some(written) = entry.fields.get("enforce").filter(|_| enforce)
            && !entry.fields.contains_key("max_budget")
        {
            let problem = "there is no `max_budget` to enforce";
            self.errors.push(Diagnostic::at(&written.origin, problem, "add one, or remove the line"));
        }
        let refuse_unpriced = self.refuses(entry, "unpriced", enforce).unwrap_or(false);
        let shared = self.is_true(entry, "shared");
        Budget {
            name: name.into(),
            tenants: self.globs(entry, "tenants"),
            shared,
            period: self.duration(entry),
            soft,
            hard,
            enforce,
            refuse_unpriced,
        }
    }

    /// Returns a budget's terms for requests that cannot be metered in full.
    fn terms(&mut self, entry: &Entry, budget: &Budget) -> Terms {
        let refuse_unreadable = self.refuses(entry, "unreadable", budget.enforce);
        let refuse_uncountable = self.refuses(entry, "uncountable", budget.enforce);
        let written = entry.fields.get("unknown_paths");
        let name =
            written.map_or(BUDGET_UNKNOWN_PATHS[0], |written| self.one_of(written, &BUDGET_UNKNOWN_PATHS));
        let unknown_paths = UnknownPaths::ALL.into_iter().find(|treatment| treatment.name() == name);
        if let Some(written) = written.filter(|_| unknown_paths == Some(UnknownPaths::Refuse)) {
            self.check_enforced(written, budget.enforce);
        }
        let refuse_unknown_methods = self.refuses(entry, "unknown_methods", budget.enforce);
        Terms {
            unknown_paths: unknown_paths.unwrap_or_default(),
            refuse_unknown_methods: refuse_unknown_methods
                .unwrap_or(unknown_paths == Some(UnknownPaths::Refuse)),
            refuse_unreadable: refuse_unreadable.unwrap_or(budget.refuse_unpriced),
            refuse_uncountable: refuse_uncountable.unwrap_or(false),
        }
    }

    /// Returns true if the budget's `key` is `refuse`; `None` if it is not set.
    fn refuses(&mut self, entry: &Entry, key: &'static str, enforce: bool) -> Option<bool> {
        let written = entry.fields.get(key)?;
        let refuses = self.one_of(written, &BUDGET_UNPRICED) == BUDGET_UNPRICED[1];
        if refuses {
            self.check_enforced(written, enforce);
        }
        Some(refuses)
    }

    fn check_enforced(&mut self, written: &Value, enforce: bool) {
        if !enforce {
            let problem = "a budget that is not enforced refuses nothing";
            let remedy = "add `enforce: true`, or remove the line";
            self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
        }
    }

    fn duration(&mut self, entry: &Entry) -> Period {
        let Some(written) = entry.fields.get("budget_duration") else {
            let remedy = format!("add it: one of {}", BUDGET_DURATIONS.join(", "));
            self.errors.push(Diagnostic::at(&entry.origin, "a budget has no `budget_duration`", remedy));
            return Period::Month;
        };
        let name = self.one_of(written, &BUDGET_DURATIONS);
        Period::ALL.into_iter().find(|period| period.name() == name).unwrap_or(Period::Month)
    }

    /// Returns an amount in pico-units, exactly as written.
    fn limit(&mut self, written: &Value) -> Option<i128> {
        let amount = pico(&written.text).filter(|pico| (1..LIMIT_END_PICO).contains(pico));
        if amount.is_none() {
            let problem = format!("`{}` is not an amount above 0", written.text.escape_debug());
            let remedy = "write it as in 250 or 0.50: at most 16 digits before the point and 12 after";
            self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
        }
        amount
    }

    fn is_true(&mut self, entry: &Entry, key: &'static str) -> bool {
        entry.fields.get(key).is_some_and(|written| self.truth(written))
    }

    fn webhook(&mut self) -> Option<budget::Plan> {
        let (url, file) = (self.value(WEBHOOK), self.value(SECRET_FILE));
        if url.text.is_empty() {
            if !file.text.is_empty() {
                let problem = format!("has no effect without `{WEBHOOK}`");
                self.warnings.push(Diagnostic::at(
                    &file.origin,
                    problem,
                    "set a webhook, or remove the file",
                ));
            }
            return None;
        }
        let secret = self.secret(&file);
        match Endpoint::parse(&url.text) {
            Ok(endpoint) => {
                if endpoint.is_unencrypted() {
                    let problem = "the webhook is http://, so anyone on the network path can read the spend of tenants and \
                                a key in the URL";
                    self.warnings.push(Diagnostic::at(
                        &url.origin,
                        problem,
                        "use https:// unless the receiver is local",
                    ));
                }
                Some(budget::Plan::to(endpoint, secret))
            }
            Err(error) => {
                let problem = format!("the webhook's URL is invalid: {}", error.problem);
                self.errors.push(Diagnostic::at(&url.origin, problem, error.remedy));
                None
            }
        }
    }

    fn secret(&mut self, file: &Value) -> Option<Secret> {
        if file.text.is_empty() {
            return None;
        }
        let secret = content::bounded_once(Path::new(&file.text), SECRET_FILE_BYTES)
            .map_err(|cause| cause.to_string())
            .and_then(|bytes| Secret::new(&bytes).map_err(|error| error.to_string()));
        secret
            .map_err(|cause| {
                let problem = format!("no secret can be read from `{}`: {cause}", file.text.escape_debug());
                let remedy = format!("write one, as by `openssl rand -hex 32`, or remove {}", flag());
                self.errors.push(Diagnostic::at(&file.origin, problem, remedy));
            })
            .ok()
    }
}

fn flag() -> String {
    setting(SECRET_FILE).flag()
}

const WEBHOOK: &str = "budget_webhook";

const SECRET_FILE: &str = "budget_webhook_secret_file";

/// Maximum bytes of the secret's file: more than a secret may have.
const SECRET_FILE_BYTES: u64 = 8192;

/// Budgets that may be listed; each has a state per tenant that it covers.
const BUDGETS_MAX: usize = 64;

/// The end of amounts, in pico-units: above the 16 digits before the point that an error names.
const LIMIT_END_PICO: i128 = 1 << 96;

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
