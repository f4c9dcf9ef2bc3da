//! A store in memory, and random books to fill it: the naive twin of the stores on disk. Tests only.

use std::collections::HashMap;
use std::sync::Arc;

use chance::Chance;
use ledger::corrections::id_of;
use ledger::month;
use ledger::source::{
    Closure, Correction, DAY_US, DeviceTotal, Gap, Month, Range, Share, Source, SourceError, Used,
};
use ledger::{Calendar, Class, DailyTotal, GpuSums, Row, Sums, TotalKey};
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate, Unpriced};

use crate::Attributes;

/// A store in memory. Its rows are summed only when queried.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) rates: Vec<Arc<Rate>>,
    pub(crate) rows: Vec<(Month, Row, Option<Used>)>,
    /// Rows that ended before this day are not kept; their totals are.
    pub(crate) kept_since_us: i64,
    /// Daily totals without rows.
    pub(crate) shed: Vec<(Month, DailyTotal)>,
    pub(crate) corrections: Vec<(Month, Correction)>,
    pub(crate) devices: Vec<DeviceTotal>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) calendar: Calendar,
}

impl Source for Memory {
    fn calendar(&self) -> Calendar {
        self.calendar.clone()
    }

    fn daily_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let days = range.to_whole_days(&self.calendar).whole_days(&self.calendar);
        let mut sums: HashMap<String, (Month, DailyTotal)> = HashMap::new();
        let rows =
            self.rows.iter().map(|(billed, row, used)| (*billed, DailyTotal::of_row(row, used.as_ref())));
        let shed = self.shed.iter().cloned();
        let corrections = self.corrections.iter().map(|(billed, made)| (*billed, made.line.clone()));
        for (billed, line) in rows.chain(shed).chain(corrections) {
            if !days.contains(&line.key.day) {
                continue;
            }
            let key = format!(
                "{billed} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                line.key.day,
                line.key.tenant,
                line.key.principal,
                line.key.upstream,
                line.key.provider,
                line.key.model,
                line.key.ending,
                line.key.input_provenance,
                line.key.output_provenance,
                line.key.rate,
                line.key.class
            );
            match sums.get_mut(&key) {
                Some((_, sum)) => sum.sums.add(&line.sums),
                None => {
                    sums.insert(key, (billed, line));
                }
            }
        }
        sums.values().try_for_each(|(billed, line)| each(*billed, line))
    }

    fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError> {
        Ok(self.rates.clone())
    }

    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let kept = |us| range.holds(us) && us >= self.kept_since_us;
        let rows = self.rows.iter().filter(|(_, row, _)| kept(row.ended_us));
        rows.into_iter().try_for_each(|(billed, row, used)| each(*billed, row, used.as_ref()))
    }

    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let made = self.corrections.iter().filter(|(_, made)| range.holds(made.ended_us));
        made.into_iter().try_for_each(|(billed, made)| each(*billed, made))
    }

    fn first_price_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.daily_totals(range, &mut |billed, line| match line.key.class {
            Class::Correction if line.sums.exchanges > 0 => each(billed, line),
            _ => Ok(()),
        })
    }

    fn first_prices(
        &self,
        range: &Range,
        each: &mut dyn FnMut(
            Month,
            &Correction,
            Option<(Month, &Row, Option<&Used>)>,
        ) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.corrections(range, &mut |corrected, made| {
            if made.line.sums.exchanges == 0 {
                return Ok(());
            }
            let mut rows = self.rows.iter().filter(|(_, row, _)| row.ended_us >= self.kept_since_us);
            let row = rows.find(|(_, row, _)| row.id == made.exchange);
            each(corrected, made, row.map(|(billed, row, used)| (*billed, row, used.as_ref())))
        })
    }

    fn devices(&self, range: &Range) -> Result<Vec<DeviceTotal>, SourceError> {
        let days = range.to_whole_days(&self.calendar).whole_days(&self.calendar);
        Ok(self.devices.iter().filter(|line| days.contains(&line.day)).cloned().collect())
    }

    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, SourceError> {
        Ok(self.gaps.iter().filter(|gap| gap.concerns(range)).cloned().collect())
    }

    fn closure(&self, _: Month) -> Result<Closure, SourceError> {
        Ok(Closure::Open)
    }
}

/// Attributes of the tenants of random books; the twin has them by hand.
pub(crate) fn attributes() -> Arc<Attributes> {
    const TEXT: &str = "\
tenants:
- {tenant: acme, cost_center: 00417, department: Search, tags: {env: prod}}
- {tenant: acme, valid_from: 2026-10-31, cost_center: 00418, owner: ann}
- {tenant: beta, department: Search, owner: bob}
";
    Arc::new(Attributes::parse("attributes.yaml", TEXT).expect("it is right"))
}

/// The first day of random books: 2026-10-29, so that they cross the end of a month.
pub(crate) const FIRST_DAY: i32 = 20_755;
/// The number of days of random books.
pub(crate) const DAYS: u64 = 5;

/// A rate with its own id.
pub(crate) fn rate(version: &str, entry: &str, currency: &[u8; 3], unit: i64, per_request: i64) -> Arc<Rate> {
    let mut id = [0; 16];
    for (at, byte) in format!("{version}/{entry}/{unit}/{per_request}").bytes().enumerate() {
        id[at % 16] ^= byte.wrapping_mul(u8::try_from(at % 251).expect("small") | 1);
    }
    let mut per_token = [Some(unit); TokenType::ALL.len()];
    per_token[TokenType::InputCached as usize] = Some(unit / 10);
    per_token[TokenType::Output as usize] = Some(unit * 4);
    Arc::new(Rate {
        id,
        version: version.into(),
        book: format!("hash of {version}").into(),
        entry: entry.into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency(*currency),
        per_token,
        per_request,
    })
}

/// Returns the cost of tokens by a rate.
pub(crate) fn cost(rate: &Rate, tokens: &Tokens) -> i64 {
    let each = rate.per_token.iter().zip(tokens.by_type);
    let sum: i64 = each.map(|(unit, count)| unit.unwrap_or(0) * i64::try_from(count).expect("small")).sum();
    sum + rate.per_request
}

impl Memory {
    /// A random book: some rows without detail, some as overflow totals, some corrected, in two currencies.
    pub(crate) fn of_chance(seed: u64, count: u64) -> Self {
        Self::of_calendar(Calendar::default(), seed, count)
    }

    /// As [`Self::of_chance`], with the days of a calendar.
    pub(crate) fn of_calendar(calendar: Calendar, seed: u64, count: u64) -> Self {
        let mut chance = Chance::new(seed);
        let rates = vec![
            rate("2026-10", "llama*", b"USD", 150_000, 0),
            rate("2026-11", "llama*", b"USD", 170_000, 3),
            rate("2026-11", "qwen*", b"EUR", 90_000, 1_000_000),
        ];
        let mut memory = Self { rates: rates.clone(), calendar, ..Self::default() };
        for _ in 0..count {
            let mut row = row(&mut chance, &rates);
            let day = memory.calendar.day(row.ended_us);
            row.day = Some(day).filter(|day| *day != row.day());
            let used = (chance.below(4) > 0).then(|| Used {
                energy_nj: Some(chance.below(5_000_000_000)),
                gpu_ns: Some(chance.below(3_000_000_000)),
                gpu_hours_pico: i64::try_from(chance.below(1_000_000_000)).expect("small"),
                gpu_energy_pico: i64::try_from(chance.below(100_000_000)).expect("small"),
            });
            // Rows that arrive after their month was closed are billed in the next.
            let own = month::of_day(row.day());
            let billed = own + i32::from(chance.below(10) == 0);
            match chance.below(8) {
                0 => memory.shed.push((
                    billed,
                    DailyTotal {
                        key: TotalKey::of_row(&row, Class::Shed),
                        ..DailyTotal::of_row(&row, used.as_ref())
                    },
                )),
                _ => {
                    memory.correct(&mut chance, &row, billed);
                    memory.rows.push((billed, row, used));
                }
            }
        }
        for day in 0..i32::try_from(DAYS).expect("small") {
            for share in Share::ALL {
                memory.devices.push(DeviceTotal {
                    day: FIRST_DAY + day,
                    hw_id: "GPU-1".into(),
                    share,
                    sums: GpuSums {
                        energy_nj: i128::from(chance.below(1 << 40)),
                        gpu_ns: i128::from(chance.below(1 << 45)),
                        gpu_hours_pico: i128::from(chance.below(1 << 40)),
                        gpu_energy_pico: i128::from(chance.below(1 << 30)),
                    },
                });
            }
        }
        memory.kept_since_us =
            i64::from(FIRST_DAY) * DAY_US + i64::try_from(chance.below(2)).expect("small") * DAY_US;
        memory
    }

    /// As [`Self::of_chance`], but the energy of every third row arrived after the month of its exchange was closed: a
    /// total of the next month has it, and nothing else.
    pub(crate) fn with_late_energy(mut self) -> Self {
        for (billed, row, used) in self.rows.iter_mut().step_by(3) {
            let Some(used) = used.take() else { continue };
            let mut late = DailyTotal::of_row(row, Some(&used));
            late.sums = Sums { exchanges: 0, tokens: [0; TokenType::ALL.len()], cost_pico: 0, ..late.sums };
            self.shed.push((*billed + 1, late));
        }
        self
    }

    /// As [`Self::of_chance`], with a prefill leg before each exchange, at an upstream of its own, with unknown GPU
    /// use.
    pub(crate) fn with_legs(mut self) -> Self {
        let leg = |at: u128, row: &Row| Row {
            id: ExchangeId::new(u64::try_from(row.started_us).expect("after 1970") * 1000, at),
            role: meter::Role::Prefill,
            upstream: "prefill".into(),
            charge: Charge::Unpriced(Unpriced::Leg),
            ..row.clone()
        };
        let legs: Vec<_> =
            (0..).zip(&self.rows).map(|(at, (billed, row, _))| (*billed, leg(at, row), None)).collect();
        self.rows.extend(legs);
        self
    }

    fn correct(&mut self, chance: &mut Chance, row: &Row, billed: Month) {
        // Exchanges without a price are corrected more often, by one of two rates and in their own month or later.
        // Money of two currencies is never subtracted.
        let is_unpriced = matches!(row.charge, Charge::Unpriced(_));
        if chance.below(10) > if is_unpriced { 4 } else { 2 } || row.rate() == Some(self.rates[2].id) {
            return;
        }
        let (mut billed, mut before) = (billed, DailyTotal::of_row(row, None));
        for made in 0..=usize::from(chance.below(3) == 0) {
            let to = self.rates[usize::try_from(chance.below(2)).expect("small")].clone();
            let after = i128::from(cost(&to, &row.tokens));
            let (exchanges, cost_pico) =
                (u64::from(before.key.rate.is_none()), after - before.sums.cost_pico);
            let line = DailyTotal {
                key: TotalKey { rate: Some(to.id), class: Class::Correction, ..before.key.clone() },
                sums: Sums { exchanges, cost_pico, ..Sums::default() },
            };
            (before.key.rate, before.sums.cost_pico) = (line.key.rate, after);
            // The clock steps back between two corrections of one exchange.
            let made_us = row.ended_us + (40 - i64::try_from(made).expect("small")) * DAY_US;
            let id = id_of(&row.id, row.ended_us, made);
            billed += i32::from(chance.below(2) == 0);
            self.corrections
                .push((billed, Correction { id, made_us, exchange: row.id, line, ended_us: row.ended_us }));
        }
    }
}

/// Returns a provenance. Half of the numbers of `reported` are `engine`.
fn provenance(chance: &mut Chance) -> Provenance {
    let drawn = chance.below(12);
    match drawn {
        6 => Provenance::Engine,
        _ => Provenance::ALL[1..][(drawn % 6) as usize],
    }
}

fn row(chance: &mut Chance, rates: &[Arc<Rate>]) -> Row {
    let ended_us = i64::from(FIRST_DAY) * DAY_US
        + i64::try_from(chance.below(DAYS * u64::try_from(DAY_US).expect("positive"))).expect("small");
    let began_ns = u64::try_from(ended_us).expect("after 1970") * 1000;
    let maybe = |chance: &mut Chance, of: &[&str]| -> Option<Arc<str>> {
        (chance.below(3) > 0).then(|| chance.pick(of).into())
    };
    let [input_provenance, output_provenance] = [provenance(chance), provenance(chance)];
    let mut by_type = [0; TokenType::ALL.len()];
    for kind in TokenType::ALL {
        let known = if kind.is_input() { input_provenance } else { output_provenance };
        by_type[kind as usize] = match kind {
            _ if known == Provenance::None => 0,
            // Without a random number, so that a seed gives the same values for the other types.
            TokenType::InputCacheWrite1h => by_type[TokenType::InputCacheWrite as usize] / 3,
            TokenType::InputCachedAudio => by_type[TokenType::InputAudio as usize] / 4,
            TokenType::InputCachedImage => by_type[TokenType::InputImage as usize] / 5,
            _ => chance.below(5000),
        };
    }
    let tokens = Tokens { input_provenance, output_provenance, by_type };
    let model = chance.pick(&["llama-3", "llama-3-70b", "qwen-3", "unlisted/model"]);
    let rate = match model {
        "qwen-3" => Some(rates[2].clone()),
        "unlisted/model" => None,
        _ => Some(rates[usize::try_from(chance.below(2)).expect("small")].clone()),
    };
    let charge = match rate {
        Some(rate) => Charge::Priced { cost: cost(&rate, &tokens), rate },
        None => Charge::Unpriced(Unpriced::Model),
    };
    Row {
        id: ExchangeId::new(began_ns, chance.next().into()),
        started_us: ended_us,
        ended_us,
        tenant: chance.pick(&["acme", "beta", "default", "=evil(),\"\n"]).into(),
        principal: maybe(chance, &["key-1", "key-2"]),
        consumer: maybe(chance, &["user-1", "user-2", "user-3"]),
        upstream: chance.pick(&["a", "b"]).into(),
        provider: "vllm".into(),
        dialect: chance.pick(&["openai_chat", "anthropic"]).into(),
        model: model.into(),
        response_model: maybe(chance, &["llama-3-0101", "qwen-3-0202"]),
        ending: chance.pick(&["complete", "length", "client_abort", "error_status"]).into(),
        status: 200,
        streamed: true,
        tokens,
        duration_us: 1000,
        charge,
        ..Row::default()
    }
}
