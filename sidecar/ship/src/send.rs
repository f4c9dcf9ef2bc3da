//! Sends one batch to the store, in one transaction: the file's row, the rates, the rows, then the file's cursor.
//! Rows that the store has are left alone, so that a batch may be sent twice.
//!
//! Columns are sent as arrays in unnamed statements: one round trip per table, and no session state, so that a
//! connection pooler may stand between.

use std::borrow::Cow;

use ledger::column::Stored;
use ledger::export::{Cursor, Origin, ShipBatch};
use ledger::{DailyTotal, Range};
use postgres::types::{ToSql, Type};
use postgres::{Client, Row, Transaction};

use crate::columns;
use crate::error::ShipError;
use crate::values::{Id, Instant, LAST_DAY, text, utc_day};

/// The advisory lock that `ensure_months` takes to create a partition.
const PARTITION_LOCK: i64 = 7_954_884_599_196_870_001;

/// Sends a batch. Returns the number of its exchanges that were new to the store.
pub(crate) fn send(
    client: &mut Client,
    origin: Origin,
    host: &str,
    batch: &ShipBatch,
) -> Result<u64, ShipError> {
    ensure_months(client, batch)?;
    let mut transaction = client.transaction()?;
    hold_partitions(&mut transaction)?;
    let of_rows = begin(&mut transaction, origin, host, batch)?;
    rates(&mut transaction, of_rows, batch)?;
    let (rows, seqs) = (batch.rows.iter(), &batch.row_seqs);
    let new = Columns::of(rows, &[]).numbered(seqs).insert(&mut transaction, Some(of_rows))?;
    let (energy, seqs) = (batch.energy.iter(), &batch.energy_seqs);
    Columns::of(energy, &[]).numbered(seqs).insert(&mut transaction, Some(of_rows))?;
    acts(&mut transaction, of_rows, batch)?;
    let (corrections, seqs) = (batch.corrections.iter(), &batch.correction_seqs);
    Columns::of(corrections, &[]).numbered(seqs).insert(&mut transaction, Some(of_rows))?;
    gaps(&mut transaction, of_rows, batch)?;
    daily_totals(&mut transaction, origin, "put_shed", &batch.shed)?;
    // After the rows, because their triggers add to the same daily totals.
    daily_totals(&mut transaction, origin, "put_usage", &batch.usage)?;
    devices(&mut transaction, origin, batch)?;
    progress(&mut transaction, origin, host, batch)?;
    transaction.commit()?;
    Ok(new)
}

fn ensure_months(client: &mut Client, batch: &ShipBatch) -> Result<(), ShipError> {
    // Rows are in the partition of their UTC day, and their totals in that of their day by the ledger's time zone.
    let rows = batch.rows.iter().flat_map(|row| [utc_day(row.ended_us), row.day()]);
    let energy = batch.energy.iter().flat_map(|one| {
        let utc_day = utc_day(one.ended_us);
        [utc_day, one.day.unwrap_or(utc_day)]
    });
    let corrections = batch.corrections.iter().map(|made| made.correction.line.key.day);
    let totals = batch.shed.iter().chain(&batch.usage).map(|line| line.key.day);
    ensure_days(client, rows.chain(energy).chain(corrections).chain(totals).collect())
}

/// Creates the missing partitions of days.
pub(crate) fn ensure_days(client: &mut Client, mut days: Vec<i32>) -> Result<(), ShipError> {
    days.iter_mut().for_each(|day| *day = (*day).clamp(0, LAST_DAY));
    days.sort_unstable();
    days.dedup();
    if !days.is_empty() {
        client.query_typed("SELECT tokenmeter.ensure_months($1)", &[(&days, Type::INT4_ARRAY)])?;
    }
    Ok(())
}

/// Waits until no partition is being created, and blocks new ones until the transaction ends. A session that
/// reads the list of partitions while another attaches one may keep the old list (PostgreSQL builds it from one
/// snapshot and misses an invalidation that arrives meanwhile): its later rows would find no partition.
fn hold_partitions(to: &mut Transaction<'_>) -> Result<(), ShipError> {
    to.batch_execute(&format!(
        "{STATEMENT_TIMEOUT}; SELECT pg_catalog.pg_advisory_xact_lock_shared({PARTITION_LOCK})"
    ))?;
    Ok(())
}

/// Locks the file's row, and checks that the store still has everything before the batch. Returns the file that takes the
/// rows: another one if the file's month is closed.
fn begin(
    to: &mut Transaction<'_>,
    origin: Origin,
    host: &str,
    batch: &ShipBatch,
) -> Result<Origin, ShipError> {
    let (host, previous) = (text(host), batch.previous.map(|origin| Id(origin.instance)));
    let Range { since_us, until_us } = Range::of_month(&batch.calendar, origin.month);
    let (zone, since, until) =
        (batch.calendar.zone(origin.month).name(), Instant(since_us), Instant(until_us));
    let row = to.query_typed(
        "SELECT exchange, energy, correction, act, gap, tokenmeter.open_file($1) AS of_rows, \
         tokenmeter.set_time_zone($1, $6, $7, $8) \
         FROM tokenmeter.begin($1, $2, $3, $4, $5)",
        &[
            (&Id(origin.instance), Type::UUID),
            (&origin.month, Type::INT4),
            (&host, Type::TEXT),
            (&batch.is_rest, Type::BOOL),
            (&previous, Type::UUID),
            (&zone, Type::TEXT),
            (&since, Type::TIMESTAMPTZ),
            (&until, Type::TIMESTAMPTZ),
        ],
    )?;
    let row = row.first().ok_or_else(|| ShipError::other("the central store began no batch"))?;
    match batch.after.is_beyond(cursor(row)) {
        true => Err(ShipError::store_is_behind()),
        false => Ok(Origin { instance: row.try_get::<_, Id>("of_rows")?.0, ..origin }),
    }
}

/// Returns the cursor in a file's row.
pub(crate) fn cursor(row: &Row) -> Cursor {
    Cursor {
        exchange: row.get("exchange"),
        energy: row.get("energy"),
        correction: row.get("correction"),
        act: row.get("act"),
        gap: row.get("gap"),
    }
}

/// Sends rates, which all files share, and the price books by which this file has them.
fn rates(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
    let mut columns = Columns::of(batch.rates.iter().map(|rate| &**rate), &[]);
    columns.insert(to, None)?;
    columns.keep("file_rate", &["id", "version", "book"]);
    columns.insert(to, Some(origin)).map(drop)
}

fn acts(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
    let columns = Columns::of(batch.acts.iter().map(|(_, act)| act), &[]);
    let seqs: Vec<i64> = batch.acts.iter().map(|(seq, _)| *seq).collect();
    columns.numbered(&seqs).insert(to, Some(origin)).map(drop)
}

fn gaps(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
    let columns = Columns::of(batch.gaps.iter().map(|(_, gap)| gap), &[]);
    let seqs: Vec<i64> = batch.gaps.iter().map(|(seq, _)| *seq).collect();
    columns.numbered(&seqs).insert(to, Some(origin)).map(drop)
}

/// Sends totals by a function of the store, which knows their class.
fn daily_totals(
    to: &mut Transaction<'_>,
    origin: Origin,
    put: &'static str,
    all: &[DailyTotal],
) -> Result<(), ShipError> {
    Columns::of(all.iter(), &["day", "class"]).call(
        to,
        put,
        origin,
        all.iter().map(|line| line.key.day.clamp(0, LAST_DAY)),
    )
}

fn devices(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
    let all = &batch.devices;
    Columns::of(all.iter(), &["day"]).call(to, "put_device", origin, all.iter().map(|line| line.day))
}

fn progress(
    to: &mut Transaction<'_>,
    origin: Origin,
    host: &str,
    batch: &ShipBatch,
) -> Result<(), ShipError> {
    let next = batch.next;
    let host = text(host);
    let last = batch.rows.last().map(|row| Id(row.id.0));
    let last_act = batch.acts.last().map(|(_, act)| Instant(act.at_us));
    let is_end = batch.is_rest && batch.is_empty();
    let is_ended = batch.is_clean;
    to.query_typed(
        "SELECT tokenmeter.progress($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        &[
            (&Id(origin.instance), Type::UUID),
            (&origin.month, Type::INT4),
            (&host, Type::TEXT),
            (&next.exchange, Type::INT8),
            (&next.energy, Type::INT8),
            (&next.correction, Type::INT8),
            (&next.act, Type::INT8),
            (&next.gap, Type::INT8),
            (&last, Type::UUID),
            (&last_act, Type::TIMESTAMPTZ),
            (&is_end, Type::BOOL),
            (&is_ended, Type::BOOL),
        ],
    )?;
    Ok(())
}

/// Named columns of one length, sent as arrays.
pub(crate) struct Columns {
    table: &'static str,
    rows: usize,
    names: Vec<Cow<'static, str>>,
    values: Vec<(Box<dyn ToSql + Sync>, Type)>,
}

impl Columns {
    /// Returns the columns of rows, without those named in `without`.
    pub(crate) fn of<'r, T: Stored>(
        rows: impl ExactSizeIterator<Item = &'r T> + Clone,
        without: &[&str],
    ) -> Self {
        let sent = T::columns().iter().filter(|column| !without.contains(&column.name));
        let (names, values) =
            sent.map(|column| (columns::name(column), columns::array(column, rows.clone()))).unzip();
        Self { table: T::TABLE, rows: rows.len(), names, values }
    }

    /// Returns the columns with the rows' numbers in their file; a row without one gets none.
    pub(crate) fn numbered(mut self, seqs: &[i64]) -> Self {
        let seqs: Vec<Option<i64>> = (0..self.rows).map(|at| seqs.get(at).copied()).collect();
        self.names.push("seq".into());
        self.values.push((Box::new(seqs), Type::INT8_ARRAY));
        self
    }

    /// Keeps the named columns, for another table.
    fn keep(&mut self, table: &'static str, names: &[&str]) {
        self.table = table;
        let is_kept: Vec<bool> = self.names.iter().map(|name| names.contains(&&**name)).collect();
        let mut kept = is_kept.iter();
        self.names.retain(|_| kept.next() == Some(&true));
        let mut kept = is_kept.iter();
        self.values.retain(|_| kept.next() == Some(&true));
    }

    /// Inserts rows that the table does not have. Returns their number.
    pub(crate) fn insert(&self, to: &mut Transaction<'_>, origin: Option<Origin>) -> Result<u64, ShipError> {
        if self.rows == 0 {
            return Ok(0);
        }
        let (first, id) = if origin.is_some() { ("instance, ", "$1, ") } else { ("", "") };
        let arrays = self.arrays(if origin.is_some() { 2 } else { 1 });
        let (table, names) = (self.table, self.names.join(", "));
        let sql = format!(
            "INSERT INTO tokenmeter.{table} ({first}{names}) SELECT {id}x.* FROM unnest({arrays}) AS x \
             ON CONFLICT DO NOTHING"
        );
        let instance = origin.map(|origin| Id(origin.instance));
        Ok(to.execute_typed(&sql, &self.parameters(instance.as_ref()))?)
    }

    /// Calls a function of the store once for each row, with its file, its day and its columns as a JSON object.
    fn call(
        &self,
        to: &mut Transaction<'_>,
        function: &str,
        origin: Origin,
        days: impl Iterator<Item = i32>,
    ) -> Result<(), ShipError> {
        let days: Vec<i32> = days.collect();
        if days.is_empty() {
            return Ok(());
        }
        let at_days = self.names.len() + 2;
        let sql = format!(
            "SELECT tokenmeter.{function}($1, x.day, to_jsonb(x) - 'day') FROM unnest({}, ${at_days}) AS x ({}, day)",
            self.arrays(2),
            self.names.join(", ")
        );
        let instance = Id(origin.instance);
        let mut parameters = self.parameters(Some(&instance));
        parameters.push((&days, Type::INT4_ARRAY));
        to.query_typed(&sql, &parameters)?;
        Ok(())
    }

    fn arrays(&self, first: usize) -> String {
        let place = |(at, (_, kind)): (usize, &(_, Type))| {
            let cast = if *kind == columns::SUM { "::numeric[]" } else { "" };
            format!("${}{cast}", first + at)
        };
        self.values.iter().enumerate().map(place).collect::<Vec<_>>().join(", ")
    }

    fn parameters<'a>(&'a self, instance: Option<&'a Id>) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
        let mut all: Vec<(&(dyn ToSql + Sync), Type)> = Vec::with_capacity(self.values.len() + 1);
        if let Some(instance) = instance {
            all.push((instance, Type::UUID));
        }
        all.extend(self.values.iter().map(|(value, kind)| (value.as_ref(), kind.clone())));
        all
    }
}

/// Statement timeout: a statement that takes longer waits for a lock that its holder forgot.
const STATEMENT_TIMEOUT: &str = "SET LOCAL statement_timeout = '120s'";
