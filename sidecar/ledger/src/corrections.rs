//! The corrections of a range by the exchange that they correct. They are in a temporary file, because there may be as
//! many as exchanges.

use meter::ExchangeId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::source::{Correction, Month, Range, Source, SourceError};
use crate::temporary::{self, no_room};
use crate::{Class, DailyTotal, Row, Sums, TotalKey};

/// Corrections by exchange.
#[derive(Debug)]
pub struct Corrections {
    file: Connection,
    count: u64,
}

/// Returns the id of the next correction of an exchange that has `made` already. Every process makes the same id, so
/// that of two concurrent corrections one is entered, also if their price books differ.
pub fn id_of(exchange: &ExchangeId, ended_us: i64, made: usize) -> ExchangeId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tokenmeter correction");
    hasher.update(&exchange.0).update(&u32::try_from(made).unwrap_or(u32::MAX).to_le_bytes());
    let mut chance = [0; 16];
    hasher.finalize_xof().fill(&mut chance);
    ExchangeId::new(u64::try_from(ended_us).unwrap_or(0).saturating_mul(1000), u128::from_le_bytes(chance))
}

/// A correction without the data of its exchange: the month, the rate and the amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeChange {
    /// The month in which it is billed.
    pub billed: Month,
    /// The rate that holds from then on.
    pub rate: Option<[u8; 16]>,
    /// True if the exchange had no price before.
    pub first_price: bool,
    /// The difference, pico-units.
    pub delta_pico: i128,
}

impl ChargeChange {
    /// Returns the daily total of the correction of a row.
    pub fn line(&self, row: &Row) -> DailyTotal {
        let key = TotalKey { rate: self.rate, ..TotalKey::of_row(row, Class::Correction) };
        let exchanges = u64::from(self.first_price);
        DailyTotal { key, sums: Sums { exchanges, cost_pico: self.delta_pico, ..Sums::default() } }
    }
}

impl Corrections {
    /// Reads the corrections of exchanges that ended within a range.
    ///
    /// # Errors
    /// If the source cannot be read, or the temporary file cannot be written.
    pub fn read(source: &dyn Source, range: &Range) -> Result<Self, SourceError> {
        let file = temporary::open(TABLE)?;
        let mut count = 0;
        {
            let mut insert = file.prepare(INSERT).map_err(no_room)?;
            source.corrections(range, &mut |billed, made| {
                let line = &made.line;
                let delta = i64::try_from(line.sums.cost_pico)?;
                insert
                    .execute(params![
                        made.exchange.0,
                        made.made_us,
                        made.id.0,
                        billed,
                        line.key.rate,
                        line.sums.exchanges > 0,
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

    /// Returns the corrections of a row in the order of entry: by their ids, because clocks may have been wrong.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn of(&self, row: &Row) -> Result<Vec<ChargeChange>, SourceError> {
        if self.count == 0 {
            return Ok(Vec::new());
        }
        let mut find = self.file.prepare_cached(FIND).map_err(no_room)?;
        let made = find.query_map([row.id.0], |found| {
            let made = ChargeChange {
                billed: found.get(1)?,
                rate: found.get(2)?,
                first_price: found.get(3)?,
                delta_pico: found.get::<_, i64>(4)?.into(),
            };
            Ok((found.get::<_, [u8; 16]>(0)?, made))
        });
        let mut made: Vec<_> = made.and_then(Iterator::collect).map_err(no_room)?;
        if made.len() > 1 {
            let ids: Vec<_> = (0..made.len()).map(|before| id_of(&row.id, row.ended_us, before).0).collect();
            // If a file with earlier ones is lost, later ones have ids beyond these and stay last, as found.
            made.sort_by_key(|(id, _)| ids.iter().position(|is| is == id).unwrap_or(ids.len()));
        }
        Ok(made.into_iter().map(|(_, made)| made).collect())
    }

    /// Notes that the row of an exchange exists.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn see(&self, exchange: &ExchangeId) -> Result<(), SourceError> {
        self.file.prepare_cached(SEE).and_then(|mut see| see.execute([exchange.0])).map_err(no_room)?;
        Ok(())
    }

    /// Returns true if some corrections are of exchanges without a row.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn has_unseen(&self) -> Result<bool, SourceError> {
        Ok(self.file.query_row(HAS_UNSEEN, [], |found| found.get(0)).map_err(no_room)?)
    }

    /// Returns true if the exchange of a correction had no price when it was charged first; `None` if its row was seen.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn unseen_unpriced(&self, made: &Correction) -> Result<Option<bool>, SourceError> {
        let mut find = self.file.prepare_cached(UNSEEN_UNPRICED).map_err(no_room)?;
        Ok(find.query_row([made.exchange.0], |found| found.get(0)).optional().map_err(no_room)?)
    }
}

const TABLE: &str = "
CREATE TABLE made (
  exchange BLOB, made_us INTEGER, id BLOB, billed INTEGER, rate BLOB, first_price INTEGER, delta_pico INTEGER,
  is_seen INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (exchange, billed, made_us, id)
) WITHOUT ROWID";

const INSERT: &str = "INSERT INTO made VALUES (?, ?, ?, ?, ?, ?, ?, 0)";

const FIND: &str = "SELECT id, billed, rate, first_price, delta_pico FROM made WHERE exchange = ? ORDER BY billed, made_us, id";

const SEE: &str = "UPDATE made SET is_seen = 1 WHERE exchange = ?";

const HAS_UNSEEN: &str = "SELECT EXISTS (SELECT 1 FROM made WHERE NOT is_seen)";

const UNSEEN_UNPRICED: &str =
    "SELECT max(first_price) FROM made WHERE exchange = ? AND NOT is_seen HAVING count(*) > 0";

#[cfg(test)]
mod tests {
    use meter::ExchangeId;

    use super::{ChargeChange, Corrections, id_of};
    use crate::source::{Correction, Range};
    use crate::testing::{Contents, NOON_US, Place, rate, row, write_month};
    use crate::{Row, Store, month};

    /// Ledgers hold these ids: with others, a correction would be entered twice.
    #[test]
    fn id_depends_on_exchange_and_number() {
        let ids = [([1; 16], 0), ([1; 16], 1), ([2; 16], 0)];
        let ids = ids.map(|(exchange, made)| id_of(&ExchangeId(exchange), NOON_US, made).to_string());
        assert_eq!(
            ids,
            [
                "01a13f6e-fa00-76ff-8c71-93bae6b613ba",
                "01a13f6e-fa00-7afa-bab6-07d9b1dd52be",
                "01a13f6e-fa00-7f61-8cdd-17326f5d7ff0"
            ]
        );
    }

    fn correction(of: &Row, made: usize, made_us: i64, change: &ChargeChange) -> Correction {
        let id = id_of(&of.id, of.ended_us, made);
        Correction { id, made_us, exchange: of.id, line: change.line(of), ended_us: of.ended_us }
    }

    #[test]
    fn corrections_of_a_row_are_in_the_order_of_entry() {
        let place = Place::new();
        let (corrected, other) = (row(7), row(1));
        let price::Charge::Priced { rate, .. } = rate(0) else { panic!("it has a price") };
        let billed = month::of(NOON_US);
        let changes = [(true, 50), (false, -7)].map(|(first_price, delta_pico)| ChargeChange {
            billed,
            rate: Some(rate.id),
            first_price,
            delta_pico,
        });
        // The clock went back between them.
        let made = [
            correction(&corrected, 0, NOON_US + 2, &changes[0]),
            correction(&corrected, 1, NOON_US + 1, &changes[1]),
        ];
        let contents = Contents { rates: &[rate], corrections: made.iter().collect(), ..Contents::default() };
        write_month(&place.ledger(), billed, true, &contents);
        let store = Store::open_read(&place.ledger()).unwrap();
        let found = Corrections::read(&store, &Range::ALL).unwrap();
        assert_eq!(
            (found.of(&corrected).unwrap(), found.of(&other).unwrap()),
            (changes.to_vec(), Vec::new())
        );

        let unseen = || (found.has_unseen().unwrap(), found.unseen_unpriced(&made[1]).unwrap());
        assert_eq!(unseen(), (true, Some(true)));
        found.see(&corrected.id).unwrap();
        assert_eq!(unseen(), (false, None));
    }
}
