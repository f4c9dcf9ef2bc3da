//! Planned corrections: those that are to be entered, in a temporary file until the whole ledger is read, because a
//! file cannot be written while it is read.

use std::collections::HashMap;
use std::sync::Arc;

use price::Rate;
use rusqlite::Connection;

use crate::column::RowReader;
use crate::error::Error;
use crate::schema::SCHEMA;
use crate::source::{Correction, MadeCorrection, SourceError};
use crate::table::{self, CORRECTION};
use crate::{temporary, values};

/// Corrections that are to be entered, with their rates.
#[derive(Debug)]
pub struct PlannedCorrections {
    file: Connection,
    rates: HashMap<[u8; 16], Arc<Rate>>,
    count: i64,
    scratch: Vec<u8>,
}

impl PlannedCorrections {
    /// Creates an empty list.
    ///
    /// # Errors
    /// If the temporary file cannot be created.
    pub fn new() -> Result<Self, Error> {
        let file = temporary::open(&SCHEMA.tables())?;
        Ok(Self { file, rates: HashMap::new(), count: 0, scratch: Vec::new() })
    }

    /// Adds a correction.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn add(&mut self, correction: &Correction, rate: &Arc<Rate>) -> Result<(), Error> {
        self.rates.entry(rate.id).or_insert_with(|| Arc::clone(rate));
        self.count += 1;
        let made = MadeCorrection { act: 0, correction: correction.clone() };
        let values = values::numbered(self.count, &made)?;
        let digest = CORRECTION.digest(&values, &mut self.scratch);
        let mut insert = self.file.prepare_cached(CORRECTION.insert()).map_err(temporary::no_room)?;
        table::execute(&mut insert, &values, &digest).map(|_| ()).map_err(temporary::no_room)
    }

    /// Hands each correction with its rate to a callback, in the order in which they were added.
    ///
    /// # Errors
    /// If the temporary file cannot be read, or the callback's error.
    pub fn each(
        &self,
        mut to: impl FnMut(Correction, &Arc<Rate>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (mut reader, mut scratch) = (RowReader::new(), Vec::new());
        let mut statement = self
            .file
            .prepare(&format!("{} ORDER BY seq", CORRECTION.select()))
            .map_err(temporary::no_room)?;
        let mut rows = statement.query([]).map_err(temporary::no_room)?;
        while let Some(row) = rows.next().map_err(temporary::no_room)? {
            let (values, _) = CORRECTION.read(row, &mut scratch)?;
            let MadeCorrection { correction, .. } = values::read(&values, &mut reader)?;
            let rate = correction
                .line
                .key
                .rate
                .and_then(|id| self.rates.get(&id))
                .ok_or("a correction has no rate")?;
            to(correction, rate)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use price::Charge;

    use super::PlannedCorrections;
    use crate::corrections::{ChargeChange, id_of};
    use crate::source::Correction;
    use crate::testing::{NOON_US, rate, row};

    #[test]
    fn planned_corrections_keep_their_order_and_rates() {
        let mut planned = PlannedCorrections::new().unwrap();
        let mut expected = Vec::new();
        for (n, delta_pico) in [(2, 50), (1, -7)] {
            let (row, Charge::Priced { rate, .. }) = (row(n), rate(n)) else { panic!("it has a price") };
            let change = ChargeChange { billed: 0, rate: Some(rate.id), first_price: false, delta_pico };
            let id = id_of(&row.id, row.ended_us, 0);
            let line = change.line(&row);
            let correction =
                Correction { id, made_us: NOON_US, exchange: row.id, line, ended_us: row.ended_us };
            planned.add(&correction, &rate).unwrap();
            expected.push((correction, rate));
        }
        let mut found = Vec::new();
        planned
            .each(|correction, rate| {
                found.push((correction, rate.clone()));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, expected);
    }
}
