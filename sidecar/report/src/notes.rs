//! Notes beside a report on its omissions: gaps, rows that are known only as totals, exchanges without a price.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use ledger::LACKS_LOG;
use ledger::source::{Gap, Gone, Month, Range, Source, SourceError};
use ledger::{Calendar, GpuSums, LostCost};
use ledger::{month, period};
use price::Currency;
use text::{group_thousands, money};

use super::months::{self, MonthState};
use super::query::{Idle, Query, RowsFor};

/// Maximum models named in a note; the others are counted.
const NAMED_MAX: usize = 5;
/// Maximum models remembered for a note: names come from clients and are unlimited.
const REMEMBERED_MAX: usize = 10_000;

/// Notes beside a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The address of the central store to which the ledger is shipped, if the report is of the ledger's file and has a
    /// month that is not closed.
    pub ships_to: Option<String>,
    /// The gaps.
    pub gaps: Vec<Gap>,
    /// Absent months of the query's time, and those after it that may contain its late rows.
    pub gone: Vec<Gone>,
    /// Files copied without their log, from which rows of the query's time may be missing.
    pub without_log: Vec<PathBuf>,
    /// Exchanges that are known only as totals, because their rows could not be written to disk.
    pub shed: i128,
    /// Exchanges without rows that a report from rows left out and the query may select.
    pub left_out: i128,
    /// Exchanges without rows, which are reported on the ledger's day although the query has another time zone.
    pub other_days: i128,
    /// Exchanges without a price, by model.
    pub unpriced: BTreeMap<Arc<str>, i128>,
    /// Exchanges without a price, of further models.
    pub unpriced_other: i128,
    /// Exchanges whose responses state a service tier, speed or geography that has no price.
    pub unpriced_tiers: i128,
    /// Exchanges with unknown output tokens.
    pub uncounted: i128,
    /// Exchanges that were answered, at least in part, with an uncounted prompt that has a price.
    pub uncounted_prompts: i128,
    /// Exchanges whose server's token counts contradict one another, as far as their rows are stored.
    pub contradicted: i128,
    /// Exchanges with unknown GPU time and energy.
    pub unmeasured: i128,
    /// The reason why rows were read in place of daily totals; `None` if they were not.
    pub rows_for: Option<RowsFor>,
    /// True if exchanges without rows were repriced, so that their counts are under the first price.
    pub first_rates: bool,
    /// The months of the report's rows, or, if the query groups by them, of their bills; and whether they are closed.
    pub months: BTreeMap<Month, MonthState>,
    /// The cost of idle GPUs that is allocated to tenants of the report, and the cost that is not, if the query
    /// allocates.
    pub idle: Option<IdleCost>,
    /// Tenants without attributes, if the query asks for attributes.
    pub without_attributes: BTreeSet<Arc<str>>,
    /// Rows beyond the limit.
    pub not_listed: usize,
    /// The ledger's calendar.
    pub calendar: Calendar,
    /// The time zones of the report's days; `None` if all are of UTC.
    pub time_zone: Option<String>,
    /// As [`Source::mixed_zones`], for the months of the report.
    pub mixed_zones: Vec<(Month, String)>,
    /// The flag that names the current price file for `tokenmeter prices show`, if needed; `None` if it is unknown.
    pub prices_flag: Option<String>,
}

/// The cost of GPU use without an exchange, pico-dollars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleCost {
    /// The way of allocation.
    pub idle: Idle,
    /// The part that is allocated.
    pub allocated_pico: i128,
    /// The part of days on which no tenant has a share.
    pub left_pico: i128,
}

impl Notes {
    /// Records GPU use that is allocated.
    pub(crate) fn allocate(&mut self, idle: Idle, used: &GpuSums) {
        self.idle_cost(idle).allocated_pico += used.cost_pico();
    }

    /// Records GPU use that stays idle, if the query allocates.
    pub(crate) fn leave_idle(&mut self, idle: Idle, used: &GpuSums) {
        if idle != Idle::None {
            self.idle_cost(idle).left_pico += used.cost_pico();
        }
    }

    fn idle_cost(&mut self, idle: Idle) -> &mut IdleCost {
        self.idle.get_or_insert(IdleCost { idle, allocated_pico: 0, left_pico: 0 })
    }

    /// Records a tenant without attributes.
    pub(crate) fn without_attributes(&mut self, tenant: &Arc<str>) {
        if self.without_attributes.len() < REMEMBERED_MAX && !self.without_attributes.contains(tenant) {
            self.without_attributes.insert(Arc::clone(tenant));
        }
    }

    /// Adds the gaps and absent months of a query.
    pub(crate) fn missing(&mut self, source: &dyn Source, query: &Query) -> Result<(), SourceError> {
        self.time_zone = match &query.time_zone {
            Some(zone) => Some(zone.to_string()),
            None => (!self.calendar.is_utc()).then(|| self.calendar.to_string()),
        };
        self.mixed_zones = source.mixed_zones();
        self.mixed_zones.retain(|(month, _)| self.months.contains_key(month));
        self.gaps = source.gaps(&query.range)?;
        let billed = query.billed.map_or(query.range, |month| Range::of_month(&self.calendar, month));
        self.gaps.retain(|gap| gap.concerns(&billed));
        self.without_log = source.without_log(&billed)?;
        for (month, state) in &mut self.months {
            *state =
                MonthState::at(&self.calendar, *month, query.now_us, source.closure(*month)?.is_closed());
        }
        // A closed month never changes, even if the ledger is shipped later.
        if self.months.values().any(|state| *state != MonthState::Closed) {
            self.ships_to = source.ships_to()?;
        }
        self.gaps.sort_by_key(|gap| (gap.from_us, gap.until_us));
        self.gone = source.gone()?;
        self.gone.retain(|gone| {
            query.billed.is_none_or(|month| month == gone.month)
                && query.range.since_us < self.calendar.month_begin_us(gone.month + 1)
        });
        Ok(())
    }

    /// Counts exchanges without a price.
    pub(crate) fn unpriced(&mut self, model: &Arc<str>, exchanges: i128) {
        let full = self.unpriced.len() >= REMEMBERED_MAX;
        match self.unpriced.get_mut(model) {
            Some(count) => *count += exchanges,
            None if !full => {
                self.unpriced.insert(Arc::clone(model), exchanges);
            }
            None => self.unpriced_other += exchanges,
        }
    }

    /// Returns them as sentences.
    pub fn sentences(&self, range: &Range) -> Vec<String> {
        let mut said: Vec<_> = self.ships_to.iter().map(|store| of_shipped(store)).collect();
        said.extend(self.gone.iter().map(|gone| of_gone(gone, &self.calendar, range)));
        said.extend(self.without_log.iter().map(|file| format!("{}: {LACKS_LOG}", file.display())));
        for gap in self.gaps.iter().take(NAMED_MAX) {
            said.push(of_gap(gap, range));
        }
        if self.gaps.len() > NAMED_MAX {
            let more = match self.gaps.len() - NAMED_MAX {
                1 => "1 more gap; the view `gaps` lists it".to_owned(),
                more => format!("{more} more gaps; the view `gaps` lists them"),
            };
            said.push(format!("and {more}"));
        }
        if self.shed > 0 {
            said.push(format!(
                "{} known only as totals (class `shed`): the ledger's queue was full, or they failed and are of no known tenant",
                exchanges_are(self.shed)
            ));
        }
        if self.left_out > 0 {
            said.push(format!(
                "{} left out: {} not kept, and daily totals do not have this detail",
                exchanges_are(self.left_out),
                if self.left_out == 1 { "its row is" } else { "their rows are" }
            ));
        }
        if self.other_days > 0 {
            said.push(format!(
                "{} on a day of the ledger's time zone, not of the requested one: {} not kept",
                exchanges_are(self.other_days),
                if self.other_days == 1 { "its row is" } else { "their rows are" }
            ));
        }
        said.extend(self.of_unpriced());
        if self.unpriced_tiers > 0 {
            let (are, their) = if self.unpriced_tiers == 1 { ("is", "its") } else { ("are", "their") };
            said.push(format!(
                "{} {are} charged without the price of {their} service tier, speed or geography, which the price book \
                 lacks (`--by tier` shows `?`)",
                exchanges(self.unpriced_tiers)
            ));
        }
        if self.uncounted > 0 {
            let have = if self.uncounted == 1 { "has" } else { "have" };
            said.push(format!("{} {have} no output token count", exchanges(self.uncounted)));
        }
        if self.uncounted_prompts > 0 {
            let (have, their) = if self.uncounted_prompts == 1 { ("has", "its") } else { ("have", "their") };
            said.push(format!(
                "{} {have} no prompt token count, and {their} cost lacks the prompt (mostly clients that left early; \
                 `--usage continuous` counts it where the server supports it)",
                exchanges(self.uncounted_prompts)
            ));
        }
        if self.contradicted > 0 {
            let (have, their) = if self.contradicted == 1 { ("has", "its") } else { ("have", "their") };
            said.push(format!(
                "{} {have} token counts that contradict one another: {their} dearer reading is charged (the ledger's column \
                 `usage_disagreement`)",
                exchanges(self.contradicted)
            ));
        }
        if self.unmeasured > 0 {
            let have = if self.unmeasured == 1 { "has" } else { "have" };
            said.push(format!("{} {have} no GPU time and energy", exchanges(self.unmeasured)));
        }
        if self.first_rates {
            said.push(
                "some exchanges without rows were charged again at another price: their tokens and their \
                 first cost are under their first price, the differences under the later ones"
                    .to_owned(),
            );
        }
        said.extend(self.of_idle());
        said.extend(self.of_attributes());
        said.extend(self.rows_for.map(|reason| {
            let why = match reason {
                RowsFor::Time => "the period does not begin and end at midnight",
                RowsFor::Keys => "daily totals do not have one of the keys",
                RowsFor::Rates => "exchanges were charged again, and daily totals do not say which",
                RowsFor::TimeZone => "daily totals have the days of the ledger's time zone",
                RowsFor::Repeats => "daily totals do not say which requests were repeated",
                RowsFor::WhatIf => "daily totals lack values on which another price depends",
            };
            format!("made from rows: {why}")
        }));
        if self.not_listed > 0 {
            let (rows, are) = if self.not_listed == 1 { ("row", "is") } else { ("rows", "are") };
            let more = group_thousands(&self.not_listed.to_string());
            said.push(format!("{more} more {rows} {are} not listed; the total includes them"));
        }
        said.extend(self.time_zone.iter().map(|zone| format!("the days and months are those of {zone}")));
        said.extend(self.mixed_zones.iter().map(|(month, zones)| {
            let month = month::name(*month);
            format!(
                "the time zones of the ledger files of {month} are {zones}: each exchange is on the day of its ledger"
            )
        }));
        said.extend(months::sentence(self.months.iter()));
        said
    }

    fn of_idle(&self) -> Option<String> {
        let IdleCost { idle, allocated_pico, left_pico } = self.idle.as_ref()?;
        let how = match idle {
            Idle::Even => "each the same",
            Idle::None | Idle::Proportional => "in proportion to their GPU cost",
        };
        let mut said = format!(
            "{} USD of idle and unattributed GPU cost is allocated to the tenants with usage on its day, {how} \
             (`allocated`)",
            money(*allocated_pico)
        );
        if *left_pico != 0 {
            said.push_str(&format!("; {} USD of days without such usage stays idle", money(*left_pico)));
        }
        Some(said)
    }

    fn of_attributes(&self) -> Option<String> {
        let count = self.without_attributes.len();
        let named: Vec<_> = self
            .without_attributes
            .iter()
            .take(NAMED_MAX)
            .map(|tenant| tenant.escape_debug().to_string())
            .collect();
        let (noun, have) = if count == 1 { ("tenant", "has") } else { ("tenants", "have") };
        let least = if count == REMEMBERED_MAX { "at least " } else { "" };
        let more = if count > NAMED_MAX { ", …" } else { "" };
        (count > 0).then(|| {
            format!(
                "{least}{} {noun} {have} no entry in the attributes file: {}{more}",
                group_thousands(&count.to_string()),
                named.join(", ")
            )
        })
    }

    fn of_unpriced(&self) -> Option<String> {
        let mut models: Vec<_> = self.unpriced.iter().filter(|(_, count)| **count > 0).collect();
        let all = models.iter().map(|(_, count)| **count).sum::<i128>() + self.unpriced_other;
        if all == 0 {
            return None;
        }
        models.sort_by_key(|(model, count)| (-**count, Arc::clone(model)));
        let named: Vec<_> = models
            .iter()
            .take(NAMED_MAX)
            .map(|(model, count)| {
                format!("{} ({})", model.escape_debug(), group_thousands(&count.to_string()))
            })
            .collect();
        let have = if all == 1 { "has" } else { "have" };
        let said = format!("{} {have} no price, not in the cost: {}", exchanges(all), named.join(", "));
        let flag = match self.prices_flag.as_deref() {
            Some("") => String::new(),
            Some(flag) => format!(" {flag}"),
            None => " --prices FILE".to_owned(),
        };
        let model =
            models.first().and_then(|(model, _)| shell_word(model)).unwrap_or_else(|| "MODEL".to_owned());
        let why =
            format!("`tokenmeter prices show {model}{flag}` says why, unless the tokens were not counted");
        let left = models.len().saturating_sub(NAMED_MAX);
        // Beyond the remembered models there may be any number.
        let least = if self.unpriced_other > 0 { "at least " } else { "" };
        if left == 0 && self.unpriced_other == 0 {
            return Some(format!("{said}; {why}"));
        }
        let more = match left {
            0 => "others".to_owned(),
            1 => format!("{least}1 more model"),
            _ => format!("{least}{} more models", group_thousands(&left.to_string())),
        };
        Some(format!("{said} and {more}; `--by model,unpriced --where 'unpriced!='` lists all, {why}"))
    }
}

/// Quotes a text as one word of a shell command, or returns `None` if it should not be shown in one.
pub fn shell_word(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@+,=".contains(c);
    match text {
        "" => None,
        text if text.starts_with('-') || text.chars().any(|c| c.is_control() || c == '`') => None,
        text if text.chars().all(is_plain) => Some(text.to_owned()),
        text => Some(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

fn exchanges(count: i128) -> String {
    match count {
        1 => "1 exchange".to_owned(),
        _ => format!("{} exchanges", group_thousands(&count.to_string())),
    }
}

fn exchanges_are(count: i128) -> String {
    format!("{} {}", exchanges(count), if count == 1 { "is" } else { "are" })
}

fn of_shipped(store: &str) -> String {
    format!(
        "the ledger is shipped to {store}, where months are closed and charges corrected: take bills from that store, \
         not from this file"
    )
}

fn of_gone(gone: &Gone, calendar: &Calendar, range: &Range) -> String {
    let month = month::name(gone.month);
    let lacks = match calendar.month_begin_us(gone.month) < range.until_us {
        true => "its contents are not in the sums",
        false => "its late exchanges and corrections are not in the sums",
    };
    format!(
        "the file of {month} is gone ({}): {lacks}; put {} back from a copy",
        gone.why,
        gone.file.display()
    )
}

fn of_gap(gap: &Gap, range: &Range) -> String {
    let lost = match (gap.lost_rows, gap.totals_kept) {
        _ if range.until_us <= gap.from_us => {
            "late exchanges and corrections that were entered in it may be missing".to_owned()
        }
        (Some(1), true) => "1 row was lost; its totals are included".to_owned(),
        (Some(1), false) => "1 row was lost and is not included".to_owned(),
        (None, true) => "an unknown number of rows was lost; their totals are included".to_owned(),
        (None, false) => "what it lacks is not known".to_owned(),
        (Some(lost), true) => {
            format!("{} rows were lost; their totals are included", group_thousands(&lost.to_string()))
        }
        (Some(lost), false) => {
            format!("{} rows were lost and are not included", group_thousands(&lost.to_string()))
        }
    };
    format!(
        "gap from {} to {} ({}): {lost}{}",
        period::time(gap.from_us),
        period::time(gap.until_us),
        gap.why.escape_debug(),
        of_lost_cost(gap).unwrap_or_default()
    )
}

/// Returns what the lost rows of a gap cost; `None` if the gap has no number of rows, or their sums are included.
fn of_lost_cost(gap: &Gap) -> Option<String> {
    gap.lost_rows.filter(|_| !gap.totals_kept)?;
    let LostCost { unpriced_rows: Some(unpriced), cost_pico: Some(pico), currency } = gap.cost else {
        return Some(" (cost: not known)".to_owned());
    };
    let currency = currency.as_ref().map_or("", Currency::code);
    let amount = format!("{} {currency}", money(pico));
    Some(match unpriced {
        0 => format!(" (cost: {})", amount.trim_end()),
        _ => format!(
            " (cost: {}; without a price: {})",
            amount.trim_end(),
            group_thousands(&unpriced.to_string())
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{NAMED_MAX, Notes, REMEMBERED_MAX};
    use crate::Query;
    use crate::memory::Memory;
    use crate::tests::query;
    use ledger::LostCost;
    use ledger::source::{Gap, Range};
    use price::Currency;

    fn unpriced(models: usize) -> String {
        let mut notes = Notes::default();
        for model in 0..models {
            notes.unpriced(&format!("m{model}").into(), 2);
        }
        notes.sentences(&Range::ALL).join("; ")
    }

    #[test]
    fn models_beyond_the_named_are_counted() {
        let all = unpriced(NAMED_MAX);
        assert!(
            all.ends_with(
                "m4 (2); `tokenmeter prices show m0 --prices FILE` says why, unless the tokens were not counted"
            ),
            "{all}"
        );
        let list = "`--by model,unpriced --where 'unpriced!='` lists all";
        for (more, said) in [(1, "and 1 more model; "), (7, "and 7 more models; ")] {
            let all = unpriced(NAMED_MAX + more);
            assert!(all.contains("m1 (2)") && all.contains(&format!("{said}{list}")), "{all}");
        }
        let mut notes = Notes { unpriced_other: 9, ..Notes::default() };
        (0..NAMED_MAX + 2).for_each(|model| notes.unpriced(&format!("m{model}").into(), 1));
        let all = notes.sentences(&Range::ALL).join("; ");
        assert!(all.starts_with("16 exchanges have") && all.contains("and at least 2 more models"), "{all}");
    }

    #[test]
    fn models_beyond_the_remembered_are_one_sum() {
        let mut notes = Notes::default();
        for model in (0..REMEMBERED_MAX + 2).chain([0]) {
            notes.unpriced(&format!("m{model}").into(), 3);
        }
        assert_eq!((notes.unpriced.len(), notes.unpriced_other), (REMEMBERED_MAX, 6));
        assert_eq!((notes.unpriced["m0"], notes.unpriced["m1"]), (6, 3));
    }

    #[test]
    fn gaps_are_those_of_the_billed_month() {
        let october = 681;
        let last_us = ledger::month::begin_us(october + 1) - 2;
        let of = |from_us| Gap::unknown(from_us, from_us + 1, "crash");
        let memory = Memory { gaps: vec![of(last_us), of(last_us - 1)], ..Memory::default() };
        let noted = |billed| {
            let mut notes = Notes::default();
            notes.missing(&memory, &Query { billed, ..query(&[]) }).expect("memory is readable");
            notes.gaps.iter().map(|gap| gap.from_us).collect::<Vec<_>>()
        };
        for billed in [None, Some(october)] {
            assert_eq!(noted(billed), [last_us - 1, last_us]);
        }
    }

    #[test]
    fn hint_names_price_file_and_first_model() {
        for (model, flag, command) in [
            ("gpt-4o", Some("--prices prices.yaml"), "prices show gpt-4o --prices prices.yaml`"),
            ("gpt-4o", Some(""), "prices show gpt-4o`"),
            ("it's", Some(""), r"prices show 'it'\''s'`"),
            ("-x", None, "prices show MODEL --prices FILE`"),
            ("a`b", None, "prices show MODEL --prices FILE`"),
            ("a\n", None, "prices show MODEL --prices FILE`"),
        ] {
            let mut notes = Notes { prices_flag: flag.map(str::to_owned), ..Notes::default() };
            notes.unpriced(&model.into(), 1);
            let said = notes.sentences(&Range::ALL).join("; ");
            assert!(said.contains(command), "{command} is not in {said}");
        }
    }

    #[test]
    fn unpriced_models_are_named_by_count() {
        let unpriced = [("a".into(), 1), ("b".into(), 9), ("c".into(), 0)].into();
        let notes = Notes { unpriced, unpriced_other: 5, ..Notes::default() };
        let said = notes.sentences(&Range::ALL).join("; ");
        assert!(
            said.starts_with("15 exchanges have no price, not in the cost: b (9), a (1) and others; "),
            "{said}"
        );
    }

    #[test]
    fn omissions_are_counted() {
        let gap = Gap { lost_rows: Some(2), totals_kept: true, ..Gap::unknown(0, 1, "crash") };
        let named = Notes { gaps: vec![gap.clone(); NAMED_MAX], ..Notes::default() };
        let said = named.sentences(&Range::ALL);
        assert!(said.len() == NAMED_MAX && said.iter().all(|said| said.starts_with("gap from")), "{said:?}");
        for (notes, part) in [
            (Notes { gaps: vec![gap; NAMED_MAX + 7], ..Notes::default() }, "and 7 more gaps;"),
            (Notes { unmeasured: 3, ..Notes::default() }, "3 exchanges have no GPU time"),
            (Notes { not_listed: 1, ..Notes::default() }, "1 more row is not listed"),
            (Notes { not_listed: 9, ..Notes::default() }, "9 more rows are not listed"),
        ] {
            let said = notes.sentences(&Range::ALL).join("; ");
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
    }

    #[test]
    fn gap_states_cost_of_lost_rows() {
        let lost = |unpriced_rows, cost_pico, currency| {
            let cost = LostCost { unpriced_rows, cost_pico, currency };
            let gap = Gap { lost_rows: Some(4), cost, ..Gap::unknown(0, 1, "lost") };
            Notes { gaps: vec![gap], ..Notes::default() }.sentences(&Range::ALL).join("; ")
        };
        let eur = Some(Currency(*b"EUR"));
        for (said, end) in [
            (lost(Some(0), Some(1_250_000_000_001), eur), " (cost: 1.250000000001 EUR)"),
            (lost(Some(1_003), Some(5), eur), " (cost: 0.000000000005 EUR; without a price: 1,003)"),
            (lost(Some(4), Some(0), None), " (cost: 0.00; without a price: 4)"),
            (lost(None, None, None), " (cost: not known)"),
        ] {
            assert!(said.ends_with(&format!("(lost): 4 rows were lost and are not included{end}")), "{said}");
        }
    }

    #[test]
    fn gap_of_a_later_file_notes_late_exchanges() {
        let gap = Gap::unknown(10, 20, "restored");
        let notes = Notes { gaps: vec![gap], ..Notes::default() };
        let before = notes.sentences(&Range { since_us: 0, until_us: 10 }).join("; ");
        assert!(
            before.ends_with("late exchanges and corrections that were entered in it may be missing"),
            "{before}"
        );
        let own = notes.sentences(&Range { since_us: 0, until_us: 11 }).join("; ");
        assert!(own.ends_with("(restored): what it lacks is not known"), "{own}");
    }

    #[test]
    fn singular_is_used_for_one() {
        let gap = Gap { lost_rows: Some(1), totals_kept: true, ..Gap::unknown(0, 1, "crash") };
        let notes = Notes {
            gaps: vec![gap; NAMED_MAX + 1],
            shed: 1,
            left_out: 1,
            unpriced: [("m".into(), 1)].into(),
            uncounted: 1,
            ..Notes::default()
        };
        let said = notes.sentences(&Range::ALL).join("\n");
        for part in [
            "1 row was lost; its totals are included",
            "and 1 more gap; the view `gaps` lists it",
            "1 exchange is known only as totals (class `shed`): the ledger's queue was full",
            "1 exchange is left out: its row is not kept",
            "1 exchange has no price",
            "1 exchange has no output token count",
        ] {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
    }
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod by_rate;
