//! The sign-off of a closed month: its sums and its digest, as a JSON file for the operator's records.
//!
//! Law: all of it can be computed again from the month's file; money is exact, in decimals.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use meter::TokenType;
use price::{Currency, Rate};
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use text::{money, nano};

use crate::column::RowReader;
use crate::difference::Difference;
use crate::error::Error;
use crate::file;
use crate::files;
use crate::source::Month;
use crate::table::{CORRECTION, ENERGY, EXCHANGE, GAP, LINE, RATE};
use crate::{Class, DailyTotal, GpuSums, digest, month, time_zone, values};

/// A sign-off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignOff {
    /// The month.
    pub month: Month,
    /// Its digest, in hexadecimal.
    pub digest: String,
    /// The document.
    pub document: Value,
}

impl SignOff {
    /// Computes the sign-off from a closed month's file.
    pub(crate) fn of(connection: &Connection, path: &Path) -> Result<Self, Error> {
        let fact = |name: &str| {
            file::number(connection, name)?
                .ok_or_else(|| Error::corrupt(format!("its table `fact` has no `{name}`")))
        };
        let month =
            Month::try_from(fact("month")?).map_err(|_| Error::corrupt("its month is out of range"))?;
        let digest = file::bytes(connection, "digest")?.ok_or_else(|| Error::corrupt("it has no digest"))?;
        let digest = digest::hex(&digest);
        let previous = file::bytes(connection, "previous")?.map(|previous| digest::hex(&previous));
        let entered = |table| Ok::<_, Error>(file::table_digest(connection, table)?.entered);
        let mut document = json!({
            "month": month::name(month),
            "file": path.file_name().unwrap_or_default().to_string_lossy(),
            "closed_at": utc(fact("closed_us")?),
            "closed_by": file::text(connection, "closed_by")?,
            "digest": digest,
            "previous_digest": previous,
            "rows": entered(&EXCHANGE)?,
            "energy_rows": entered(&ENERGY)?,
            "correction_rows": entered(&CORRECTION)?,
            "gaps": entered(&GAP)?,
        });
        let zone = time_zone::of(connection)?.zone(month).clone();
        if !zone.is_utc() {
            document["time_zone"] = zone.name().into();
        }
        if let (Some(document), Value::Object(sums)) = (document.as_object_mut(), sums(connection, month)?) {
            document.extend(sums);
        }
        Ok(Self { month, digest, document })
    }

    /// Writes a read-only file, completely or not at all.
    pub(crate) fn write(&self, to: &Path) -> Result<(), Error> {
        let new = files::beside(to, ".new");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = files::make(&new)?;
        let text = serde_json::to_string_pretty(&self.document).map_err(std::io::Error::from)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        let mut permissions = file.metadata()?.permissions();
        permissions.set_readonly(true);
        file.set_permissions(permissions)?;
        file.sync_all()?;
        files::rename(&new, to)?;
        Ok(())
    }

    /// Returns the difference between a signed file and the month as it is now, if there is one.
    pub(crate) fn differs_from(&self, signed: &Path) -> Option<Difference> {
        let problem = |problem: String| Some(Difference::SignOff { path: signed.to_owned(), problem });
        let text = match fs::read_to_string(signed) {
            Ok(text) => text,
            Err(error) => return problem(format!("cannot be read: {error}")),
        };
        let Ok(Value::Object(signed_off)) = serde_json::from_str::<Value>(&text) else {
            return problem("is not JSON".to_owned());
        };
        let expected = self.document.as_object()?;
        let differing: Vec<&str> = expected
            .iter()
            .filter(|(name, value)| signed_off.get(*name) != Some(value))
            .map(|(name, _)| &**name)
            .collect();
        if differing.is_empty() {
            return None;
        }
        problem(format!("differs from the month in: {}", differing.join(", ")))
    }
}

/// Returns the sums of the daily totals.
fn sums(connection: &Connection, month: Month) -> Result<Value, Error> {
    let mut reader = RowReader::new();
    let mut sums = MonthSums::new(month);
    file::whole(connection, &RATE, |values| {
        sums.rate(&values::read(values, &mut reader)?);
        Ok(())
    })?;
    file::whole(connection, &LINE, |values| sums.add(&values::read(values, &mut reader)?))?;
    Ok(sums.document())
}

/// The sums of the daily totals that are billed in a month.
#[derive(Clone, Debug)]
pub struct MonthSums {
    month: Month,
    currencies: BTreeMap<[u8; 16], Currency>,
    exchanges: u64,
    shed: u64,
    unpriced: i128,
    tokens: [u128; TokenType::ALL.len()],
    cost: BTreeMap<Currency, i128>,
    gpu: GpuSums,
}

impl MonthSums {
    /// Returns the sums of a month without daily totals.
    pub fn new(month: Month) -> Self {
        Self {
            month,
            currencies: BTreeMap::new(),
            exchanges: 0,
            shed: 0,
            unpriced: 0,
            tokens: [0; TokenType::ALL.len()],
            cost: BTreeMap::new(),
            gpu: GpuSums::default(),
        }
    }

    /// Records the currency of a rate. Precedes the daily totals with that rate.
    pub fn rate(&mut self, rate: &Rate) {
        self.currencies.insert(rate.id, rate.currency);
    }

    /// Adds a daily total.
    ///
    /// # Errors
    /// If its rate is not known.
    pub fn add(&mut self, line: &DailyTotal) -> Result<(), Error> {
        match line.key.class {
            // The count of a correction is of exchanges that got their first price. Those of another month were
            // counted as unpriced when that was closed.
            Class::Correction if month::of_day(line.key.day) == self.month => {
                self.unpriced -= i128::from(line.sums.exchanges)
            }
            Class::Correction => {}
            Class::Shed | Class::Usage => {
                self.exchanges += line.sums.exchanges;
                self.shed += if line.key.class == Class::Shed { line.sums.exchanges } else { 0 };
                self.unpriced += if line.key.rate.is_none() { line.sums.exchanges.into() } else { 0 };
            }
        }
        for (sum, count) in self.tokens.iter_mut().zip(line.sums.tokens) {
            *sum += u128::from(count);
        }
        if let Some(rate) = line.key.rate {
            let currency = self
                .currencies
                .get(&rate)
                .ok_or_else(|| Error::corrupt("the rate of a daily total is absent"))?;
            *self.cost.entry(*currency).or_default() += line.sums.cost_pico;
        }
        self.gpu.add(&line.sums.gpu);
        Ok(())
    }

    /// Returns the sums as part of a sign-off.
    pub fn document(&self) -> Value {
        let cost: Map<String, Value> = self
            .cost
            .iter()
            .map(|(currency, pico)| (currency.code().to_owned(), money(*pico).to_string().into()))
            .collect();
        let tokens = TokenType::ALL.iter().zip(self.tokens);
        let tokens: Map<String, Value> =
            tokens.map(|(kind, sum)| (kind.name().to_owned(), sum.to_string().into())).collect();
        json!({
            "exchanges": self.exchanges,
            "shed_exchanges": self.shed,
            "unpriced_exchanges": self.unpriced,
            "tokens": tokens,
            "cost": cost,
            "gpu_hours_cost_usd": money(self.gpu.gpu_hours_pico).to_string(),
            "gpu_energy_cost_usd": money(self.gpu.gpu_energy_pico).to_string(),
            "energy_joules": nano(self.gpu.energy_nj).to_string(),
        })
    }
}

/// Returns an instant, in microseconds since 1970, in RFC 3339 in UTC.
pub fn utc(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us).map_or_else(|_| us.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use meter::TokenType;
    use price::{Currency, Rate};
    use serde_json::json;

    use super::{sums, utc};
    use crate::corrections::{ChargeChange, id_of};
    use crate::file::File;
    use crate::source::{Correction, DAY_US, Used};
    use crate::testing::{Contents, NOON_US, Place, rate, row, write_month};
    use crate::{Class, DailyTotal, Row, month};

    #[test]
    fn instants_are_utc() {
        assert_eq!(utc(1_793_491_200_000_000), "2026-11-01T00:00:00Z");
    }

    /// The exchanges of the month of a sign-off: all, those without rows, and those without a price.
    fn counts(place: &Place) -> [serde_json::Value; 3] {
        let file = File::open_read(&place.ledger()).unwrap();
        let sums = sums(&file.connection, month::of(NOON_US)).unwrap();
        ["exchanges", "shed_exchanges", "unpriced_exchanges"].map(|name| sums[name].clone())
    }

    /// The exchanges of another month were counted there.
    #[test]
    fn first_prices_of_the_month_are_not_unpriced() {
        let place = Place::new();
        let price::Charge::Priced { rate, .. } = rate(0) else { panic!("it has a price") };
        let billed = month::of(NOON_US);
        let rows = [7, 14].map(|n| (billed, row(n), None));
        let early = [21, 28].map(|n| Row { ended_us: NOON_US - 31 * DAY_US, ..row(n) });
        let made = [&rows[0].1, &early[0], &early[1]].map(|row| {
            let change = ChargeChange { billed, rate: Some(rate.id), first_price: true, delta_pico: 5 };
            let id = id_of(&row.id, row.ended_us, 0);
            let line = change.line(row);
            Correction { id, made_us: NOON_US, exchange: row.id, line, ended_us: row.ended_us }
        });
        let contents = Contents {
            rates: &[rate],
            rows: rows.iter().collect(),
            corrections: made.iter().collect(),
            ..Contents::default()
        };
        write_month(&place.ledger(), billed, true, &contents);
        assert_eq!(counts(&place), [json!(2), json!(0), json!(1)]);
    }

    #[test]
    fn sums_of_a_month_by_hand() {
        let place = Place::new();
        let price::Charge::Priced { rate: dollars, .. } = rate(0) else { panic!("it has a price") };
        let euros = Arc::new(Rate { id: [9; 16], currency: Currency(*b"EUR"), ..(*dollars).clone() });
        let used = |energy_nj, gpu_hours_pico, gpu_energy_pico| {
            Some(Used { energy_nj: Some(energy_nj), gpu_ns: Some(1), gpu_hours_pico, gpu_energy_pico })
        };
        let mut rows = [(2, used(1_500_000_000, 3, 7)), (4, used(500_000_001, 4, 9)), (3, None)]
            .map(|(n, used)| (month::of(NOON_US), row(n), used));
        rows[0].1.tokens.by_type[TokenType::InputImage as usize] = 6;
        rows[2].1.charge = price::Charge::Priced { rate: Arc::clone(&euros), cost: 5 };
        let rates = [dollars, euros];
        let contents = Contents { rates: &rates, rows: rows.iter().collect(), ..Contents::default() };
        write_month(&place.ledger(), month::of(NOON_US), true, &contents);
        let file = File::open_read(&place.ledger()).unwrap();
        let expected = json!({
            "exchanges": 3,
            "shed_exchanges": 0,
            "unpriced_exchanges": 0,
            "tokens": {
                "input": "9",
                "input_cached": "0",
                "input_cache_write": "0",
                "input_cache_write_1h": "0",
                "input_audio": "0",
                "input_image": "6",
                "input_video": "0",
                "input_cached_audio": "0",
                "input_cached_image": "0",
                "output": "12",
                "output_reasoning": "0",
                "output_audio": "0",
                "output_image": "0",
                "output_video": "0",
            },
            "cost": { "EUR": "0.000000000005", "USD": "0.000000000002" },
            "gpu_hours_cost_usd": "0.000000000007",
            "gpu_energy_cost_usd": "0.000000000016",
            "energy_joules": "2.000000001",
        });
        assert_eq!(sums(&file.connection, month::of(NOON_US)).unwrap(), expected);
    }

    #[test]
    fn exchanges_of_overflow_totals_are_shed() {
        let place = Place::new();
        let price::Charge::Priced { rate, .. } = rate(1) else { panic!("it has a price") };
        let billed = month::of(NOON_US);
        let shed = [1, 3, 7].map(|n| {
            let mut total = DailyTotal::of_row(&row(n), None);
            total.key.class = Class::Shed;
            total
        });
        let used = (billed, row(5), None);
        let contents = Contents {
            rates: &[rate],
            rows: vec![&used],
            shed: shed.iter().collect(),
            ..Contents::default()
        };
        write_month(&place.ledger(), billed, true, &contents);
        assert_eq!(counts(&place), [json!(4), json!(3), json!(1)]);
    }
}
