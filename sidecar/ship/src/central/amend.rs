//! Entry of corrections in the store: those of a repricing, and adjustments.

use ledger::column::Stored;
use ledger::export::Origin;
use ledger::source::MadeCorrection;
use ledger::{Amendment, Calendar, month};
use postgres::Client;
use postgres::types::Type;

use crate::address::Address;
use crate::connect::connect;
use crate::error::ShipError;
use crate::schema;
use crate::send::{Columns, ensure_days};
use crate::values::{Id, Instant};

/// A connection that enters corrections, as the owner of the store's schema.
pub struct Amender {
    client: Client,
    calendar: Calendar,
}

impl std::fmt::Debug for Amender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Amender")
    }
}

impl Amender {
    /// Connects to the store.
    ///
    /// # Errors
    /// If it cannot be reached, its schema is missing or of another version, or the role does not own it.
    pub fn open(address: &Address) -> Result<Self, ShipError> {
        let mut client = connect(address)?;
        schema::check(&mut client)?;
        // Before anything else that the role may not do, so that the error names the owner.
        client.query_typed("SELECT tokenmeter.require_schema_owner('begin_amendment')", &[])?;
        let (calendar, _) = super::calendar(&mut client)?;
        Ok(Self { client, calendar })
    }

    /// Enters an amendment in one transaction: its audit event, and the corrections that the store does not have. They
    /// are billed in the month of their exchanges or, if that is closed, in the first open one; those of several months
    /// at once in the latest of these. Returns the number of new corrections.
    ///
    /// # Errors
    /// If the store cannot be written, or the role does not own its schema.
    pub fn amend(&mut self, amendment: &Amendment<'_>) -> Result<u64, ShipError> {
        let corrections = amendment.corrections;
        let days = || corrections.iter().map(|correction| correction.line.key.day);
        let current = self.calendar.month(amendment.at_us);
        let billed = days().map(month::of_day).max().unwrap_or(current).min(current);
        ensure_days(&mut self.client, days().collect())?;
        let mut transaction = self.client.transaction()?;
        let (at, what, who, detail) =
            (Instant(amendment.at_us), amendment.what, amendment.who, amendment.detail);
        let row = transaction.query_typed(
            "SELECT instance, act, corrections FROM tokenmeter.begin_amendment($1, $2, $3, $4, $5)",
            &[
                (&billed, Type::INT4),
                (&at, Type::TIMESTAMPTZ),
                (&what, Type::TEXT),
                (&who, Type::TEXT),
                (&detail, Type::TEXT),
            ],
        )?;
        let row = row.first().ok_or_else(|| ShipError::other("the central store began no amendment"))?;
        let (Id(instance), act, before): (Id, i64, i64) =
            (row.try_get("instance")?, row.try_get("act")?, row.try_get("corrections")?);
        let rates = amendment.rates.iter().copied();
        Columns::of(rates, &[]).insert(&mut transaction, None)?;
        let made: Vec<MadeCorrection> = corrections
            .iter()
            .map(|correction| MadeCorrection { act, correction: correction.clone() })
            .collect();
        let seqs: Vec<i64> = (before + 1..).take(made.len()).collect();
        let columns = Columns::of(made.iter(), &[]).numbered(&seqs);
        let new = columns.insert(&mut transaction, Some(Origin { instance, month: billed }))?;
        // The audit trail has no event of a repetition, which an auditor would take for a second charge.
        if new == 0 && !made.is_empty() {
            transaction.rollback()?;
            return Ok(0);
        }
        let end = before + seqs.len() as i64;
        transaction.execute_typed(
            &format!("UPDATE tokenmeter.file SET {} = $2 WHERE instance = $1", MadeCorrection::TABLE),
            &[(&Id(instance), Type::UUID), (&end, Type::INT8)],
        )?;
        transaction.commit()?;
        Ok(new)
    }
}
