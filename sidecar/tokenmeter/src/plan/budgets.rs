//! The budgets: the file's list of them, and where it is told that one is spent. Limits are exact;
//! one that could not be is a mistake.

use std::fs::File;
use std::io::{self, Read};

use budget::{Budget, Endpoint, Period, Secret};
use relay::{Terms, UnknownPaths};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tenant::Spec;

use super::values::Reader;
use crate::file;
use crate::mistake::Mistake;
use crate::origin::Origin;
use crate::settings::{
    BUDGET_DURATIONS, BUDGET_LIST, BUDGET_UNKNOWN_PATHS, BUDGET_UNPRICED, Entry, Value, setting,
};

/// What tenants may spend, and who is told.
#[derive(Clone, Debug, Default)]
pub struct BudgetsPlan {
    /// The budgets, in the order they were written.
    pub budgets: Vec<Budget>,
    /// The terms of each, in the same order, for requests that cannot be metered in full.
    pub terms: Vec<Terms>,
    /// Where notices are posted, if anywhere.
    pub webhook: Option<budget::Plan>,
}

impl Reader<'_> {
    pub(super) fn budgets(&mut self) -> BudgetsPlan {
        let written = self.written;
        let webhook = self.webhook();
        let Some((list, entries)) = &written.budgets else {
            if webhook.is_some() {
                let origin = self.value(WEBHOOK).origin;
                let what = format!("nothing will be posted: there are no `{}`", BUDGET_LIST.key);
                self.warnings.push(Mistake::at(&origin, what, "list some in the file, or remove this"));
            }
            return BudgetsPlan { webhook, ..BudgetsPlan::default() };
        };
        self.check_ground(list);
        if entries.is_empty() && self.mistakes.is_empty() {
            self.mistakes.push(Mistake::at(list, "`budgets` is empty", BUDGET_LIST.remedy()));
        }
        if entries.len() > MOST {
            let what = format!("{} budgets are listed", entries.len());
            let remedy = format!("keep {MOST}; one budget gives each tenant it covers a purse of its own");
            self.mistakes.push(Mistake::at(list, what, remedy));
        }
        let (mut budgets, mut terms): (Vec<Budget>, _) = (Vec::new(), Vec::new());
        for entry in entries {
            let budget = self.budget(entry);
            if !budget.name.is_empty() && budgets.iter().any(|earlier| earlier.name == budget.name) {
                let origin = entry.fields.get("name").map_or(&entry.origin, |name| &name.origin);
                let what = format!("two budgets are named `{}`", budget.name);
                self.mistakes.push(Mistake::at(origin, what, "give each a `name` of its own"));
            }
            terms.push(self.terms(entry, &budget));
            budgets.push(budget);
        }
        BudgetsPlan { budgets, terms, webhook }
    }

    /// Warns of budgets that no tenant is under, as the rules are now.
    pub(super) fn check_covers(&mut self, plan: &BudgetsPlan, rules: &Spec) {
        let written = self.written;
        let (Some(tenants), Some((_, entries))) = (rules.tenants(), &written.budgets) else { return };
        for (budget, entry) in plan.budgets.iter().zip(entries) {
            let lost: Vec<String> = (budget.tenants.iter())
                .filter(|glob| !tenants.iter().any(|tenant| glob.matches(tenant)))
                .map(|glob| format!("`{}`", glob.text().escape_debug()))
                .collect();
            if lost.is_empty() {
                continue;
            }
            let what = format!(
                "no tenant that the rules name is {}, of budget `{}`",
                lost.join(" or "),
                budget.name
            );
            let remedy = match rules.rules.is_empty() {
                true => "name tenants by rules (`tenants`): without any, everybody is the default tenant",
                false => "write the name as the tenant rules have it, or add a rule that gives it",
            };
            let origin = entry.fields.get("tenants").map_or(&entry.origin, |written| &written.origin);
            self.warnings.push(Mistake::at(origin, what, remedy));
        }
    }

    /// Money comes from prices, and is remembered by the ledger.
    fn check_ground(&mut self, list: &Origin) {
        let is_written = |key: &str| self.written.values.get(key).is_some_and(|value| !value.text.is_empty());
        if !is_written("prices") {
            let what = "budgets are listed, but there are no prices, so nothing would ever be spent";
            self.mistakes.push(Mistake::at(list, what, "name a price book by `prices`"));
        }
        if !is_written("ledger") {
            let what = "budgets are listed, but there is no ledger, so a restart forgets what was spent";
            self.warnings.push(Mistake::at(list, what, "name a file for it by `ledger`"));
        }
    }

    fn budget(&mut self, entry: &Entry) -> Budget {
        let name = match entry.fields.get("name") {
            Some(written) => self.name(written),
            None => {
                let what = "a budget has no `name`";
                self.mistakes.push(Mistake::at(&entry.origin, what, "add one: notices and refusals say it"));
                String::new()
            }
        };
        let hard = entry.fields.get("max_budget").and_then(|written| self.limit(written));
        let soft = entry.fields.get("soft_budget").and_then(|written| self.limit(written));
        if !entry.fields.contains_key("max_budget") && !entry.fields.contains_key("soft_budget") {
            let remedy = "add `max_budget`, `soft_budget` or both, in the price book's currency";
            self.mistakes.push(Mistake::at(&entry.origin, "a budget has no limit", remedy));
        }
        if let (Some(hard), Some(soft), Some(written)) = (hard, soft, entry.fields.get("soft_budget"))
            && soft >= hard
        {
            let what = "`soft_budget` is not below `max_budget`, so it would warn of nothing";
            self.mistakes.push(Mistake::at(&written.origin, what, "lower it, or remove it"));
        }
        let enforce = self.yes(entry, "enforce");
        if let Some(written) = entry.fields.get("enforce").filter(|_| enforce)
            && !entry.fields.contains_key("max_budget")
        {
            let what = "there is no `max_budget` to enforce";
            self.mistakes.push(Mistake::at(&written.origin, what, "add one, or remove this line"));
        }
        let refuse_unpriced = self.refuses(entry, "unpriced", enforce).unwrap_or(false);
        let shared = self.yes(entry, "shared");
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

    /// The terms of a budget for requests that cannot be metered in full.
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
        Terms {
            unknown_paths: unknown_paths.unwrap_or_default(),
            refuse_unreadable: refuse_unreadable.unwrap_or(budget.refuse_unpriced),
            refuse_uncountable: refuse_uncountable.unwrap_or(false),
        }
    }

    /// Returns whether a budget refuses what `key` names; `None` if it does not say.
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
            let what = "nothing is refused for a budget that is not enforced";
            let remedy = "add `enforce: true`, or remove this line";
            self.mistakes.push(Mistake::at(&written.origin, what, remedy));
        }
    }

    fn duration(&mut self, entry: &Entry) -> Period {
        let Some(written) = entry.fields.get("budget_duration") else {
            let remedy = format!("add it: one of {}", BUDGET_DURATIONS.join(", "));
            self.mistakes.push(Mistake::at(&entry.origin, "a budget has no `budget_duration`", remedy));
            return Period::Month;
        };
        let name = self.one_of(written, &BUDGET_DURATIONS);
        Period::ALL.into_iter().find(|period| period.name() == name).unwrap_or(Period::Month)
    }

    /// A sum in pico-units, exactly as it was written.
    fn limit(&mut self, written: &Value) -> Option<i128> {
        let text = &written.text;
        let pico = file::decimal(text).and_then(|units| units.checked_mul(Decimal::from(PICO)));
        match pico {
            Some(pico) if pico.fract().is_zero() && pico.is_sign_positive() && !pico.is_zero() => {
                pico.to_i128()
            }
            _ => {
                let what = format!("`{}` is no sum of money above 0", text.escape_debug());
                let remedy = "write it as in 250 or 0.50: at most 16 digits before the point and 12 after";
                self.mistakes.push(Mistake::at(&written.origin, what, remedy));
                None
            }
        }
    }

    fn yes(&mut self, entry: &Entry, key: &'static str) -> bool {
        entry.fields.get(key).is_some_and(|written| self.truth(written))
    }

    fn webhook(&mut self) -> Option<budget::Plan> {
        let (url, file) = (self.value(WEBHOOK), self.value(SECRET_FILE));
        if url.text.is_empty() {
            if !file.text.is_empty() {
                let what = format!("there is no `{WEBHOOK}` whose notices could be signed");
                self.warnings.push(Mistake::at(&file.origin, what, "name one, or remove this"));
            }
            return None;
        }
        let secret = self.secret(&file);
        match Endpoint::parse(&url.text) {
            Ok(endpoint) => {
                if endpoint.is_unencrypted() {
                    let what = "the webhook is http://, so that everybody on the way can read what tenants spend \
                                and the key that may be in the address";
                    self.warnings.push(Mistake::at(&url.origin, what, "use https:// beyond this machine"));
                }
                Some(budget::Plan::to(endpoint, secret))
            }
            Err(error) => {
                let what = format!("the webhook's address is no good: {}", error.what);
                self.mistakes.push(Mistake::at(&url.origin, what, error.remedy));
                None
            }
        }
    }

    fn secret(&mut self, file: &Value) -> Option<Secret> {
        if file.text.is_empty() {
            return None;
        }
        let secret = contents(&file.text)
            .map_err(|cause| cause.to_string())
            .and_then(|bytes| Secret::new(&bytes).map_err(|error| error.to_string()));
        secret
            .map_err(|cause| {
                let what = format!("no secret is in `{}`: {cause}", file.text.escape_debug());
                let remedy =
                    format!("put one there, as `openssl rand -hex 32` makes it, or remove {}", flag());
                self.mistakes.push(Mistake::at(&file.origin, what, remedy));
            })
            .ok()
    }
}

fn contents(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SECRET_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn flag() -> String {
    setting(SECRET_FILE).flag()
}

const WEBHOOK: &str = "budget_webhook";

const SECRET_FILE: &str = "budget_webhook_secret_file";

/// Bytes of a secret's file that are read: more than a secret may have.
const SECRET_FILE_BYTES: u64 = 8192;

/// Budgets that may be listed: each is a purse for each tenant it covers.
const MOST: usize = 64;

/// Parts of a unit of money.
const PICO: u64 = 1_000_000_000_000;

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
