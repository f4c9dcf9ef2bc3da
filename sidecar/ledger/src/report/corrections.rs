//! The corrections of a range, found by the exchange that they correct, in a temporary file: there may be as many as
//! there are exchanges.

use meter::ExchangeId;
use rusqlite::{Connection, params};

use super::pieces::line_of;
use super::source::{Month, Range, Source, Trouble};
use crate::temporary::{self, no_room};
use crate::{Class, Line, Row};

/// Corrections by exchange.
pub(crate) struct Corrections {
    file: Connection,
    count: u64,
}

/// A correction of one exchange: what the exchange itself does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// The month it is billed in.
    pub(crate) billed: Month,
    /// The rate that holds from then on.
    pub(crate) rate: Option<[u8; 16]>,
    /// Whether the exchange had no price before.
    pub(crate) first_price: bool,
    /// The difference, pico-units.
    pub(crate) delta_pico: i128,
}

impl Made {
    /// Returns the line of the correction of a row.
    pub(crate) fn line(&self, row: &Row) -> Line {
        Line {
            rate: self.rate,
            class: Class::Correction,
            exchanges: u64::from(self.first_price),
            tokens: Default::default(),
            cost_pico: self.delta_pico,
            ..line_of(row, None)
        }
    }
}

impl Corrections {
    /// Reads those of exchanges that ended within a range.
    ///
    /// # Errors
    /// If the source cannot be read, or the temporary file cannot be written.
    pub(crate) fn read(source: &dyn Source, range: &Range) -> Result<Self, Trouble> {
        let file = temporary::open(TABLE)?;
        let mut count = 0;
        {
            let mut insert = file.prepare(INSERT).map_err(no_room)?;
            source.corrections(range, &mut |billed, made| {
                let line = &made.line;
                let delta = i64::try_from(line.cost_pico)?;
                insert
                    .execute(params![
                        made.exchange.0,
                        made.made_us,
                        made.id.0,
                        billed,
                        line.rate,
                        line.exchanges > 0,
                        delta
                    ])
                    .map_err(no_room)?;
                count += 1;
                Ok(())
            })?;
        }
        file.execute_batch("COMMIT").map_err(no_room)?;
        Ok(Self { file, count })
    }

    /// Returns those of an exchange, in the order in which they were made.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub(crate) fn of(&self, exchange: &ExchangeId) -> Result<Vec<Made>, Trouble> {
        if self.count == 0 {
            return Ok(Vec::new());
        }
        let mut find = self.file.prepare_cached(FIND).map_err(no_room)?;
        let made = find.query_map([exchange.0], |row| {
            Ok(Made {
                billed: row.get(0)?,
                rate: row.get(1)?,
                first_price: row.get(2)?,
                delta_pico: row.get::<_, i64>(3)?.into(),
            })
        });
        Ok(made.and_then(Iterator::collect).map_err(no_room)?)
    }
}

const TABLE: &str = "
CREATE TABLE made (
  exchange BLOB, made_us INTEGER, id BLOB, billed INTEGER, rate BLOB, first_price INTEGER, delta_pico INTEGER,
  PRIMARY KEY (exchange, made_us, id)
) WITHOUT ROWID";

const INSERT: &str = "INSERT INTO made VALUES (?, ?, ?, ?, ?, ?, ?)";

const FIND: &str =
    "SELECT billed, rate, first_price, delta_pico FROM made WHERE exchange = ? ORDER BY made_us, id";
