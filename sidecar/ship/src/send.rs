//! Sends one batch to the store, in one transaction: the file's row, the rates, the rows, then the file's cursor.
//! Rows that the store has are left alone, so that a batch may be sent twice.
//!
//! Columns are sent as arrays in unnamed statements: one round trip per table, and no session state, so that a
//! connection pooler may stand between.

use ledger::DailyTotal;
use ledger::export::{Cursor, Energy, Origin, ShipBatch};
use ledger::source::{Correction, Gap};
use meter::TokenType;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row, Transaction};
use price::Charge;

use crate::error::ShipError;
use crate::values::{Id, Instant, day, text};

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
    begin(&mut transaction, origin, host, batch)?;
    rates(&mut transaction, batch)?;
    let new = exchanges(&mut transaction, origin, batch)?;
    energy(&mut transaction, origin, &batch.energy)?;
    acts(&mut transaction, origin, batch)?;
    corrections(&mut transaction, origin, &batch.corrections)?;
    gaps(&mut transaction, origin, &batch.gaps)?;
    lines(&mut transaction, origin, "put_shed", &batch.shed)?;
    // After the rows, because their triggers add to the same lines.
    lines(&mut transaction, origin, "put_usage", &batch.usage)?;
    devices(&mut transaction, origin, batch)?;
    progress(&mut transaction, origin, host, batch)?;
    transaction.commit()?;
    Ok(new)
}

fn ensure_months(client: &mut Client, batch: &ShipBatch) -> Result<(), ShipError> {
    let mut days: Vec<i32> = batch.rows.iter().map(|row| day(row.ended_us)).collect();
    days.extend(batch.energy.iter().map(|one| day(one.ended_us)));
    days.extend(batch.corrections.iter().map(|(_, one)| day(one.ended_us)));
    days.extend(batch.shed.iter().chain(&batch.usage).map(|line| line.key.day));
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

/// Locks the file's row, and checks that the store still has everything before the batch.
fn begin(to: &mut Transaction<'_>, origin: Origin, host: &str, batch: &ShipBatch) -> Result<(), ShipError> {
    let host = text(host);
    let row = to.query_typed(
        "SELECT exchange, energy, correction, act, gap FROM tokenmeter.begin($1, $2, $3, $4)",
        &[
            (&Id(origin.instance), Type::UUID),
            (&origin.month, Type::INT4),
            (&host, Type::TEXT),
            (&batch.is_rest, Type::BOOL),
        ],
    )?;
    let there = row.first().map(cursor).unwrap_or_default();
    if batch.after.is_beyond(there) { Err(ShipError::store_is_behind()) } else { Ok(()) }
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

fn rates(to: &mut Transaction<'_>, batch: &ShipBatch) -> Result<(), ShipError> {
    let all = &batch.rates;
    let mut columns = Columns::default();
    columns.add("id", Type::UUID_ARRAY, all.iter().map(|r| Id(r.id)));
    columns.add("version", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.version)));
    columns.add("book", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.book)));
    columns.add("entry", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.entry)));
    columns.add("tier", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.tier)));
    columns.add("above_input_tokens", Type::INT8_ARRAY, all.iter().map(|r| signed(r.above_input_tokens)));
    columns.add("currency", Type::TEXT_ARRAY, all.iter().map(|r| r.currency.code().to_owned()));
    for kind in TokenType::ALL {
        columns.add(kind.name(), Type::INT8_ARRAY, all.iter().map(|r| r.per_token[kind as usize]));
    }
    columns.add("per_request", Type::INT8_ARRAY, all.iter().map(|r| r.per_request));
    columns.insert(to, "rate", None, all.len()).map(drop)
}

fn exchanges(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<u64, ShipError> {
    let all = &batch.rows;
    let mut columns = Columns::default();
    columns.add("ended_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|r| Instant(r.ended_us)));
    columns.add("id", Type::UUID_ARRAY, all.iter().map(|r| Id(r.id.0)));
    columns.add("started_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|r| Instant(r.started_us)));
    columns.add("tenant", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.tenant)));
    columns.add("principal", Type::TEXT_ARRAY, all.iter().map(|r| r.principal.as_deref().map(text)));
    columns.add("consumer", Type::TEXT_ARRAY, all.iter().map(|r| r.consumer.as_deref().map(text)));
    columns.add("upstream", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.upstream)));
    columns.add("provider", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.provider)));
    columns.add("dialect", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.dialect)));
    columns.add("model", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.model)));
    columns.add(
        "response_model",
        Type::TEXT_ARRAY,
        all.iter().map(|r| r.response_model.as_deref().map(text)),
    );
    columns.add("response_id", Type::TEXT_ARRAY, all.iter().map(|r| r.response_id.as_deref().map(text)));
    columns.add("service_tier", Type::TEXT_ARRAY, all.iter().map(|r| r.service_tier.as_deref().map(text)));
    columns.add("ending", Type::TEXT_ARRAY, all.iter().map(|r| text(&r.ending)));
    columns.add("status", Type::INT4_ARRAY, all.iter().map(|r| i32::from(r.status)));
    columns.add("streamed", Type::BOOL_ARRAY, all.iter().map(|r| r.streamed));
    for kind in TokenType::ALL {
        columns.add(
            kind.name(),
            Type::INT8_ARRAY,
            all.iter().map(|r| signed(r.tokens.by_type[kind as usize])),
        );
    }
    columns.add("input_provenance", Type::TEXT_ARRAY, all.iter().map(|r| r.tokens.input_provenance.name()));
    columns.add("output_provenance", Type::TEXT_ARRAY, all.iter().map(|r| r.tokens.output_provenance.name()));
    columns.add("duration_us", Type::INT8_ARRAY, all.iter().map(|r| r.duration_us));
    columns.add("first_token_us", Type::INT8_ARRAY, all.iter().map(|r| r.first_token_us));
    columns.add(
        "rate",
        Type::UUID_ARRAY,
        all.iter().map(|r| match &r.charge {
            Charge::Priced { rate, .. } => Some(Id(rate.id)),
            Charge::Unpriced(_) => None,
        }),
    );
    columns.add("cost_pico", Type::INT8_ARRAY, all.iter().map(|r| r.charge.cost()));
    columns.add(
        "unpriced",
        Type::TEXT_ARRAY,
        all.iter().map(|r| match &r.charge {
            Charge::Priced { .. } => None,
            Charge::Unpriced(why) => Some(why.name()),
        }),
    );
    columns.add("trace", Type::UUID_ARRAY, all.iter().map(|r| r.trace.map(Id)));
    columns.add("role", Type::TEXT_ARRAY, all.iter().map(|r| r.role.is_leg().then(|| r.role.name())));
    columns.add("request_id", Type::TEXT_ARRAY, all.iter().map(|r| r.request_id.as_deref().map(text)));
    columns.add("upstream_attempts", Type::INT4_ARRAY, all.iter().map(|r| i32::from(r.upstream_attempts)));
    columns.add("cached_excess", Type::INT8_ARRAY, all.iter().map(|r| signed(r.cached_excess)));
    columns.insert(to, "exchange", Some(origin), all.len())
}

fn energy(to: &mut Transaction<'_>, origin: Origin, all: &[Energy]) -> Result<(), ShipError> {
    let mut columns = Columns::default();
    columns.add("ended_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|e| Instant(e.ended_us)));
    columns.add("id", Type::UUID_ARRAY, all.iter().map(|e| Id(e.id.0)));
    columns.add("energy_nj", Type::INT8_ARRAY, all.iter().map(|e| e.used.energy_nj.map(signed)));
    columns.add("gpu_ns", Type::INT8_ARRAY, all.iter().map(|e| e.used.gpu_ns.map(signed)));
    columns.add("gpu_hours_pico", Type::INT8_ARRAY, all.iter().map(|e| e.used.gpu_hours_pico));
    columns.add("gpu_energy_pico", Type::INT8_ARRAY, all.iter().map(|e| e.used.gpu_energy_pico));
    columns.add("class", Type::TEXT_ARRAY, all.iter().map(|e| e.class.name()));
    columns.insert(to, "energy", Some(origin), all.len()).map(drop)
}

fn acts(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
    let all = &batch.acts;
    let mut columns = Columns::default();
    columns.add("seq", Type::INT8_ARRAY, all.iter().map(|a| a.seq));
    columns.add("at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|a| Instant(a.at_us)));
    columns.add("what", Type::TEXT_ARRAY, all.iter().map(|a| text(&a.what)));
    columns.add("who", Type::TEXT_ARRAY, all.iter().map(|a| text(&a.who)));
    columns.add("detail", Type::TEXT_ARRAY, all.iter().map(|a| text(&a.detail)));
    columns.insert(to, "act", Some(origin), all.len()).map(drop)
}

fn corrections(to: &mut Transaction<'_>, origin: Origin, all: &[(i64, Correction)]) -> Result<(), ShipError> {
    let mut columns = Columns::default();
    columns.add("id", Type::UUID_ARRAY, all.iter().map(|(_, c)| Id(c.id.0)));
    columns.add("made_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|(_, c)| Instant(c.made_us)));
    columns.add("act", Type::INT8_ARRAY, all.iter().map(|(act, _)| *act));
    columns.add("exchange", Type::UUID_ARRAY, all.iter().map(|(_, c)| Id(c.exchange.0)));
    columns.add("ended_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|(_, c)| Instant(c.ended_us)));
    columns.add("tenant", Type::TEXT_ARRAY, all.iter().map(|(_, c)| text(&c.line.key.tenant)));
    columns.add(
        "principal",
        Type::TEXT_ARRAY,
        all.iter().map(|(_, c)| c.line.key.principal.as_deref().map(text)),
    );
    columns.add("upstream", Type::TEXT_ARRAY, all.iter().map(|(_, c)| text(&c.line.key.upstream)));
    columns.add("provider", Type::TEXT_ARRAY, all.iter().map(|(_, c)| text(&c.line.key.provider)));
    columns.add("model", Type::TEXT_ARRAY, all.iter().map(|(_, c)| text(&c.line.key.model)));
    columns.add("ending", Type::TEXT_ARRAY, all.iter().map(|(_, c)| text(&c.line.key.ending)));
    columns.add(
        "input_provenance",
        Type::TEXT_ARRAY,
        all.iter().map(|(_, c)| c.line.key.input_provenance.name()),
    );
    columns.add(
        "output_provenance",
        Type::TEXT_ARRAY,
        all.iter().map(|(_, c)| c.line.key.output_provenance.name()),
    );
    columns.add("unpriced", Type::BOOL_ARRAY, all.iter().map(|(_, c)| c.line.sums.exchanges > 0));
    columns.add("rate", Type::UUID_ARRAY, all.iter().map(|(_, c)| c.line.key.rate.map(Id))); // The file holds it in 64 bits.
    columns.add("delta_pico", Type::INT8_ARRAY, all.iter().map(|(_, c)| c.line.sums.cost_pico as i64));
    columns.insert(to, "correction", Some(origin), all.len()).map(drop)
}

fn gaps(to: &mut Transaction<'_>, origin: Origin, all: &[(i64, Gap)]) -> Result<(), ShipError> {
    let mut columns = Columns::default();
    columns.add("seq", Type::INT8_ARRAY, all.iter().map(|(seq, _)| *seq));
    columns.add("from_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|(_, g)| Instant(g.from_us)));
    columns.add("until_at", Type::TIMESTAMPTZ_ARRAY, all.iter().map(|(_, g)| Instant(g.until_us)));
    columns.add("why", Type::TEXT_ARRAY, all.iter().map(|(_, g)| text(&g.why)));
    columns.add("lost_rows", Type::INT8_ARRAY, all.iter().map(|(_, g)| g.lost_rows.map(signed)));
    columns.add("totals_kept", Type::BOOL_ARRAY, all.iter().map(|(_, g)| g.totals_kept));
    columns.insert(to, "gap", Some(origin), all.len()).map(drop)
}

fn lines(
    to: &mut Transaction<'_>,
    origin: Origin,
    put: &'static str,
    all: &[DailyTotal],
) -> Result<(), ShipError> {
    let mut columns = Columns::default();
    columns.add("tenant", Type::TEXT_ARRAY, all.iter().map(|l| text(&l.key.tenant)));
    columns.add(
        "principal",
        Type::TEXT_ARRAY,
        all.iter().map(|l| text(l.key.principal.as_deref().unwrap_or(""))),
    );
    columns.add("upstream", Type::TEXT_ARRAY, all.iter().map(|l| text(&l.key.upstream)));
    columns.add("provider", Type::TEXT_ARRAY, all.iter().map(|l| text(&l.key.provider)));
    columns.add("model", Type::TEXT_ARRAY, all.iter().map(|l| text(&l.key.model)));
    columns.add("ending", Type::TEXT_ARRAY, all.iter().map(|l| text(&l.key.ending)));
    columns.add("input_provenance", Type::TEXT_ARRAY, all.iter().map(|l| l.key.input_provenance.name()));
    columns.add("output_provenance", Type::TEXT_ARRAY, all.iter().map(|l| l.key.output_provenance.name()));
    columns.add("rate", Type::UUID_ARRAY, all.iter().map(|l| Id(l.key.rate.unwrap_or_default())));
    columns.add("exchanges", Type::INT8_ARRAY, all.iter().map(|l| signed(l.sums.exchanges)));
    for kind in TokenType::ALL {
        columns.add(kind.name(), Type::INT8_ARRAY, all.iter().map(|l| signed(l.sums.tokens[kind as usize])));
    }
    columns.add("cost_pico", Type::TEXT_ARRAY, all.iter().map(|l| l.sums.cost_pico.to_string()));
    columns.add("energy_exchanges", Type::INT8_ARRAY, all.iter().map(|l| signed(l.sums.energy_exchanges)));
    columns.add("energy_nj", Type::TEXT_ARRAY, all.iter().map(|l| l.sums.gpu.energy_nj.to_string()));
    columns.add("gpu_ns", Type::TEXT_ARRAY, all.iter().map(|l| l.sums.gpu.gpu_ns.to_string()));
    columns.add(
        "gpu_hours_pico",
        Type::TEXT_ARRAY,
        all.iter().map(|l| l.sums.gpu.gpu_hours_pico.to_string()),
    );
    columns.add(
        "gpu_energy_pico",
        Type::TEXT_ARRAY,
        all.iter().map(|l| l.sums.gpu.gpu_energy_pico.to_string()),
    );
    columns.call(to, put, origin, all.iter().map(|l| l.key.day))
}

fn devices(to: &mut Transaction<'_>, origin: Origin, batch: &ShipBatch) -> Result<(), ShipError> {
    let all = &batch.devices;
    let mut columns = Columns::default();
    columns.add("hw_id", Type::TEXT_ARRAY, all.iter().map(|d| text(&d.hw_id)));
    columns.add("share", Type::TEXT_ARRAY, all.iter().map(|d| d.share.name()));
    columns.add("energy_nj", Type::TEXT_ARRAY, all.iter().map(|d| d.sums.energy_nj.to_string()));
    columns.add("gpu_ns", Type::TEXT_ARRAY, all.iter().map(|d| d.sums.gpu_ns.to_string()));
    columns.add("gpu_hours_pico", Type::TEXT_ARRAY, all.iter().map(|d| d.sums.gpu_hours_pico.to_string()));
    columns.add("gpu_energy_pico", Type::TEXT_ARRAY, all.iter().map(|d| d.sums.gpu_energy_pico.to_string()));
    columns.call(to, "put_device", origin, all.iter().map(|d| d.day))
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
    let last_act = batch.acts.last().map(|act| Instant(act.at_us));
    let is_end = batch.is_rest && batch.is_empty();
    to.query_typed(
        "SELECT tokenmeter.progress($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
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
        ],
    )?;
    Ok(())
}

/// Named columns of one length, sent as arrays.
#[derive(Default)]
struct Columns {
    names: Vec<&'static str>,
    values: Vec<(Box<dyn ToSql + Sync>, Type)>,
}

impl Columns {
    fn add<T: ToSql + Sync + 'static>(
        &mut self,
        name: &'static str,
        kind: Type,
        values: impl Iterator<Item = T>,
    ) {
        self.names.push(name);
        self.values.push((Box::new(values.collect::<Vec<T>>()), kind));
    }

    /// Inserts rows that the table does not have. Returns their number.
    fn insert(
        &self,
        to: &mut Transaction<'_>,
        table: &str,
        origin: Option<Origin>,
        rows: usize,
    ) -> Result<u64, ShipError> {
        if rows == 0 {
            return Ok(0);
        }
        let (first, id) = if origin.is_some() { ("instance, ", "$1, ") } else { ("", "") };
        let arrays = self.arrays(if origin.is_some() { 2 } else { 1 });
        let names = self.names.join(", ");
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
        let list: Vec<String> = (first..first + self.names.len()).map(|at| format!("${at}")).collect();
        list.join(", ")
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

/// Returns a count that was read from a signed 64-bit column.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Statement timeout: a statement that takes longer waits for a lock that its holder forgot.
const STATEMENT_TIMEOUT: &str = "SET LOCAL statement_timeout = '120s'";
