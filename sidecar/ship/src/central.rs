//! The central store as a source of reports: the same values as from ledger files, summed over all nodes
//! that ship there.

mod amend;
mod close;
mod parts;
mod verify;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ledger::column::RowReader;
use ledger::source::{
    Closure, Correction, DAY_US, DeviceTotal, Gap, MadeCorrection, Month, Range, Source, SourceError, Used,
};
use ledger::{Calendar, Class, DailyTotal, Row, Sums, TotalKey, Zone, month};
use meter::{ExchangeId, TokenType};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row as Columns};
use price::Rate;

pub use amend::Amender;
pub use close::close;
pub use verify::Verdict;

use crate::address::Address;
use crate::columns;
use crate::connect::connect;
use crate::error::ShipError;
use crate::schema;
use crate::values::{Day, Id, Instant, LAST_DAY};

/// The spend of one tenant on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantSpend {
    /// The tenant.
    pub tenant: Arc<str>,
    /// Days since 1970-01-01.
    pub day: i32,
    /// The spend in the given ledger files, in pico-units.
    pub own: i128,
    /// The spend in all ledger files, in pico-units.
    pub all: i128,
}

/// A central store, open for a report. It reads one snapshot, so that all parts of a report agree.
pub struct Central {
    client: Mutex<Client>,
    calendar: Calendar,
    mixed_zones: Vec<(Month, String)>,
}

impl Central {
    /// Opens the store.
    ///
    /// # Errors
    /// If it cannot be reached, or its schema is missing or of another version.
    pub fn open(address: &Address) -> Result<Self, ShipError> {
        let mut client = begin(address)?;
        let (calendar, mixed_zones) = calendar(&mut client)?;
        Ok(Self { client: Mutex::new(client), calendar, mixed_zones })
    }

    /// Returns the spend in a currency by tenant and day, since a day: in the ledger files `own`, and in all.
    /// `own` is called after the snapshot is taken, so that every file of this process in the snapshot is
    /// in its result.
    ///
    /// # Errors
    /// If the store cannot be read, or `own` fails.
    pub fn spent(
        address: &Address,
        since: i32,
        currency: &str,
        own: impl FnOnce() -> Result<Vec<[u8; 16]>, SourceError>,
    ) -> Result<Vec<TenantSpend>, SourceError> {
        let (calendar, mixed_zones) = Default::default();
        let central = Self { client: Mutex::new(begin(address)?), calendar, mixed_zones };
        central.each("SELECT FROM tokenmeter.version LIMIT 1", &[], |_| Ok(()))?;
        let own: Vec<Id> = own()?.into_iter().map(Id).collect();
        let sql = "SELECT l.day - date '1970-01-01' AS day, l.tenant, sum(l.cost_pico)::text AS total, \
                   coalesce(sum(l.cost_pico) FILTER (WHERE l.instance = ANY ($3) OR f.late_of = ANY ($3)), 0)::text AS own \
                   FROM tokenmeter.line l JOIN tokenmeter.rate r ON r.id = l.rate \
                   LEFT JOIN tokenmeter.file f ON f.instance = l.instance \
                   WHERE l.day >= date '1970-01-01' + $1 AND r.currency = $2 GROUP BY 1, 2";
        let currency = currency.to_owned();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&since, Type::INT4), (&currency, Type::TEXT), (&own, Type::UUID_ARRAY)];
        let mut all = Vec::new();
        central.each(sql, &parameters, |row| {
            let pico =
                |column: &str| -> Result<i128, SourceError> { Ok(row.try_get::<_, &str>(column)?.parse()?) };
            all.push(TenantSpend {
                tenant: row.try_get::<_, &str>("tenant")?.into(),
                day: row.try_get("day")?,
                own: pico("own")?,
                all: pico("total")?,
            });
            Ok(())
        })?;
        Ok(all)
    }

    /// Runs a query, and calls `each` with each row as it arrives.
    fn each(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
        mut each: impl FnMut(&Columns) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let parameters = parameters.iter().map(|(value, kind)| (*value, kind.clone()));
        let mut rows = client.query_typed_raw(sql, parameters).map_err(ShipError::from)?;
        while let Some(row) = rows.next().map_err(ShipError::from)? {
            each(&row)?;
        }
        Ok(())
    }

    /// Reads the daily totals of a range for which a condition on `tokenmeter.line l` holds.
    fn totals_where(
        &self,
        condition: &str,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let ((first, last), mut reader) = (self.days(range), RowReader::new());
        let sql = format!(
            "SELECT {} AS billed, day, tenant, principal, upstream, \
             provider, model, ending, input_provenance, output_provenance, rate, class, {} \
             FROM tokenmeter.line l LEFT JOIN tokenmeter.file f USING (instance) \
             WHERE day BETWEEN $1 AND $2 AND {condition} \
             GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12",
            billed_month("l.day", "f"),
            counts()
        );
        self.each(&sql, &[(&first, Type::DATE), (&last, Type::DATE)], |row| {
            each(row.try_get("billed")?, &columns::read(row, &mut reader)?)
        })
    }

    /// Reads the corrections of a range for which a condition on `tokenmeter.correction x` holds.
    fn corrections_where(
        &self,
        condition: &str,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let sql = format!(
            "SELECT {} AS billed, x.* \
             FROM tokenmeter.correction x LEFT JOIN tokenmeter.file f USING (instance) \
             WHERE {} AND {condition}",
            billed_month(&day_of("x"), "f"),
            within("x")
        );
        let mut reader = RowReader::new();
        self.each(&sql, &self.bounds(range).parameters(), |row| {
            let made: MadeCorrection = columns::read(row, &mut reader)?;
            each(row.try_get("billed")?, &made.correction)
        })
    }

    /// Returns the first and the last day of a range, within the limits of the store.
    fn days(&self, range: &Range) -> (Day, Day) {
        let days = range.days(&self.calendar);
        (Day(*days.start()), Day(*days.end()))
    }

    /// Returns the bounds of the rows of a range: its days if it consists of whole days, and otherwise its instants.
    fn bounds(&self, range: &Range) -> Bounds {
        let (first, last) = self.days(range);
        match range.is_whole_days(&self.calendar) {
            // In ledger files of other zones, these days have other instants.
            true => Bounds {
                since: Instant(range.since_us.saturating_sub(ZONES_MAX_US)),
                until: Instant(range.until_us.saturating_add(ZONES_MAX_US)),
                first,
                last,
            },
            false => Bounds {
                since: Instant(range.since_us),
                until: Instant(range.until_us),
                first: Day(0),
                last: Day(LAST_DAY),
            },
        }
    }

    fn rates_by_id(&self) -> Result<HashMap<[u8; 16], Arc<Rate>>, SourceError> {
        Ok(self.rates()?.into_iter().map(|rate| (rate.id, rate)).collect())
    }
}

impl std::fmt::Debug for Central {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Central")
    }
}

impl Source for Central {
    /// The zone of a month is that of most of its ledger files.
    fn calendar(&self) -> Calendar {
        self.calendar.clone()
    }

    fn mixed_zones(&self) -> Vec<(Month, String)> {
        self.mixed_zones.clone()
    }

    fn daily_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.totals_where("true", range, each)
    }

    fn has_repriced(&self, range: &Range) -> Result<bool, SourceError> {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM tokenmeter.correction x \
             WHERE {} AND NOT x.unpriced AND x.exchange <> x.id) AS has",
            within("x")
        );
        let mut has = false;
        self.each(&sql, &self.bounds(range).parameters(), |row| {
            has = row.try_get("has")?;
            Ok(())
        })?;
        Ok(has)
    }

    fn first_price_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.totals_where("class = 'correction' AND exchanges > 0", range, each)
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
        let rates = self.rates_by_id()?;
        let mut reader = RowReader::with_rates(|id| Ok(rates.get(id).cloned()));
        let sql = format!(
            "SELECT {} AS billed, {} AS corrected, c.id AS correction, c.made_at, \
             c.rate AS first_rate, c.delta_pico, x.*, {USED} \
             FROM tokenmeter.correction c LEFT JOIN tokenmeter.file g ON g.instance = c.instance \
             JOIN tokenmeter.exchange x ON x.ended_at = c.ended_at AND x.id = c.exchange \
             LEFT JOIN tokenmeter.file f ON f.instance = x.instance {JOIN_ENERGY} \
             WHERE c.unpriced AND {}",
            billed_month(&day_of("x"), "f"),
            billed_month(&day_of("x"), "g"),
            within("c"),
        );
        self.each(&sql, &self.bounds(range).parameters(), |columns| {
            let row = columns::read(columns, &mut reader)?;
            let (used, correction) = (used(columns)?, first_price(columns, &row)?);
            let billed = columns.try_get("billed")?;
            each(columns.try_get("corrected")?, &correction, Some((billed, &row, used.as_ref())))
        })?;
        let without_row = "x.unpriced AND NOT EXISTS (SELECT FROM tokenmeter.exchange r \
                           WHERE r.ended_at = x.ended_at AND r.id = x.exchange)";
        self.corrections_where(without_row, range, &mut |corrected, made| each(corrected, made, None))
    }

    fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError> {
        let (mut rates, mut reader) = (Vec::new(), RowReader::new());
        self.each("SELECT * FROM tokenmeter.rate ORDER BY id", &[], |row| {
            rates.push(Arc::new(columns::read(row, &mut reader)?));
            Ok(())
        })?;
        Ok(rates)
    }

    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let rates = self.rates_by_id()?;
        let mut reader = RowReader::with_rates(|id| Ok(rates.get(id).cloned()));
        let sql = format!(
            "SELECT {} AS billed, x.*, {USED} \
             FROM tokenmeter.exchange x LEFT JOIN tokenmeter.file f USING (instance) {JOIN_ENERGY} \
             WHERE {}",
            billed_month(&day_of("x"), "f"),
            within("x")
        );
        self.each(&sql, &self.bounds(range).parameters(), |row| {
            each(row.try_get("billed")?, &columns::read(row, &mut reader)?, used(row)?.as_ref())
        })
    }

    /// The index `exchange_disagreement` has these rows.
    fn contradicted(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let rates = self.rates_by_id()?;
        let mut reader = RowReader::with_rates(|id| Ok(rates.get(id).cloned()));
        let sql = format!(
            "SELECT {} AS billed, x.* \
             FROM tokenmeter.exchange x LEFT JOIN tokenmeter.file f USING (instance) \
             WHERE x.usage_disagreement IS NOT NULL AND x.usage_disagreement <> 'cached_excess' AND {}",
            billed_month(&day_of("x"), "f"),
            within("x")
        );
        self.each(&sql, &self.bounds(range).parameters(), |row| {
            each(row.try_get("billed")?, &columns::read(row, &mut reader)?)
        })
    }

    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.corrections_where("true", range, each)
    }

    /// A month that was passed over, because the store had no file of it, is closed without a digest.
    fn closure(&self, month: Month) -> Result<Closure, SourceError> {
        if self.closed_until()? < Some(month) {
            return Ok(Closure::Open);
        }
        let signed = self.closing(month)?.and_then(|closing| closing.signed);
        let mut instances: Vec<Arc<str>> =
            self.closed_files(month)?.values().map(|file| ledger::digest::hex(&file.digest).into()).collect();
        instances.sort_unstable();
        Ok(Closure::Closed {
            digest: signed.map(|(digest, _)| ledger::digest::hex(&digest).into()),
            instances,
        })
    }

    fn devices(&self, range: &Range) -> Result<Vec<DeviceTotal>, SourceError> {
        let (first, last) = self.days(range);
        let sql = "SELECT day, hw_id, share, sum(energy_nj)::text AS energy_nj, \
                   sum(gpu_ns)::text AS gpu_ns, sum(gpu_hours_pico)::text AS gpu_hours_pico, \
                   sum(gpu_energy_pico)::text AS gpu_energy_pico FROM tokenmeter.device \
                   WHERE day BETWEEN $1 AND $2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
        let (mut devices, mut reader) = (Vec::new(), RowReader::new());
        self.each(sql, &[(&first, Type::DATE), (&last, Type::DATE)], |row| {
            devices.push(columns::read(row, &mut reader)?);
            Ok(())
        })?;
        Ok(devices)
    }

    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, SourceError> {
        // A lost file concerns every earlier month, so only the end of a gap selects here.
        let sql = "SELECT since AS from_at, until AS until_at, why, lost_rows, totals_kept, \
                   unpriced_rows, trunc(cost * 1000000000000)::text AS cost_pico, currency FROM tokenmeter.gaps \
                   WHERE until >= $1 ORDER BY since, until, instance, why";
        let (mut gaps, mut reader) = (Vec::<Gap>::new(), RowReader::new());
        self.each(sql, &[(&Instant(range.since_us), Type::TIMESTAMPTZ)], |row| {
            let gap: Gap = columns::read(row, &mut reader)?;
            if gap.concerns(range) {
                gaps.push(gap);
            }
            Ok(())
        })?;
        Ok(gaps)
    }
}

/// Reads the GPU use of an exchange, if it is known.
fn used(row: &Columns) -> Result<Option<Used>, SourceError> {
    if !row.try_get::<_, bool>("used")? {
        return Ok(None);
    }
    Ok(Some(Used {
        energy_nj: row.try_get::<_, Option<i64>>("energy_nj")?.map(i64::unsigned_abs),
        gpu_ns: row.try_get::<_, Option<i64>>("gpu_ns")?.map(i64::unsigned_abs),
        gpu_hours_pico: row.try_get("gpu_hours_pico")?,
        gpu_energy_pico: row.try_get("gpu_energy_pico")?,
    }))
}

/// Reads the correction that gave a row its first price.
fn first_price(columns: &Columns, row: &Row) -> Result<Correction, SourceError> {
    let rate = columns.try_get::<_, Id>("first_rate")?.0;
    Ok(Correction {
        id: ExchangeId(columns.try_get::<_, Id>("correction")?.0),
        made_us: columns.try_get::<_, Instant>("made_at")?.0,
        exchange: row.id,
        line: DailyTotal {
            key: TotalKey { rate: Some(rate), ..TotalKey::of_row(row, Class::Correction) },
            sums: Sums {
                exchanges: 1,
                cost_pico: columns.try_get::<_, i64>("delta_pico")?.into(),
                ..Sums::default()
            },
        },
        ended_us: row.ended_us,
    })
}

/// The bounds of the rows of a range, by instant and by day.
struct Bounds {
    since: Instant,
    until: Instant,
    first: Day,
    last: Day,
}

impl Bounds {
    /// Returns the parameters of [`within`], from `$1` on.
    fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 4] {
        [
            (&self.since, Type::TIMESTAMPTZ),
            (&self.until, Type::TIMESTAMPTZ),
            (&self.first, Type::DATE),
            (&self.last, Type::DATE),
        ]
    }
}

/// Returns the SQL condition that a row of a table is within [`Bounds`].
fn within(table: &str) -> String {
    format!("{table}.ended_at >= $1 AND {table}.ended_at < $2 AND {} BETWEEN $3 AND $4", day_of(table))
}

/// Returns the SQL of the day of a row of a table with the columns `day` and `ended_at`.
fn day_of(table: &str) -> String {
    format!("coalesce({table}.day, ({table}.ended_at AT TIME ZONE 'UTC')::date)")
}

/// Connects and begins a read-only transaction, whose first statement takes the snapshot.
fn begin(address: &Address) -> Result<Client, ShipError> {
    let mut client = connect(address)?;
    schema::check(&mut client)?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    Ok(client)
}

/// Returns the calendar of the store's ledger files, and the result of [`Source::mixed_zones`]. Each row has the day of
/// its file; the zone of most files of a month decides where the month begins and ends in reports.
fn calendar(client: &mut Client) -> Result<(Calendar, Vec<(Month, String)>), ShipError> {
    let sql = "SELECT month, array_agg(zone ORDER BY files DESC, zone) AS zones \
               FROM (SELECT month, coalesce(time_zone, 'UTC') AS zone, count(*) AS files FROM tokenmeter.file \
               WHERE late_of IS NULL AND NOT is_central GROUP BY 1, 2) f GROUP BY 1 ORDER BY 1";
    let (mut zones, mut mixed) = (Vec::<(Option<Month>, Zone)>::new(), Vec::new());
    for row in client.query_typed(sql, &[])? {
        let month = month::of_day(row.try_get::<_, Day>("month")?.0);
        let names: Vec<String> = row.try_get("zones")?;
        let known = names.iter().find_map(|name| Zone::named(name).ok());
        if names.len() > 1 || known.is_none() {
            mixed.push((month, names.join(", ")));
        }
        let zone = known.unwrap_or(Zone::UTC);
        if zones.last().is_none_or(|(_, last)| *last != zone) {
            zones.push((Some(month).filter(|_| !zones.is_empty()), zone));
        }
    }
    Ok((Calendar::with_zones(zones), mixed))
}

/// A bound of the difference between the instants of one day in two time zones.
const ZONES_MAX_US: i64 = 2 * DAY_US;

/// Returns the SQL of the month in which a charge of a day is billed, counted from January 1970: the day's own, or that
/// of the ledger file, a row of `file` by this name, if later. `greatest` ignores the NULL of an unknown file.
fn billed_month(day: &str, file: &str) -> String {
    let months =
        |date: &str| format!("extract(year FROM {date})::int * 12 + extract(month FROM {date})::int");
    format!("greatest({}, {}) - 23641", months(day), months(&format!("{file}.month")))
}

/// SQL of the columns of `energy`: the GPU use of an exchange.
const USED: &str = "e.id IS NOT NULL AS used, e.energy_nj, e.gpu_ns, e.gpu_hours_pico, e.gpu_energy_pico";

/// SQL that joins `energy` to `tokenmeter.exchange x`.
const JOIN_ENERGY: &str = "LEFT JOIN tokenmeter.energy e ON e.ended_at = x.ended_at AND e.id = x.id \
                           AND e.instance = x.instance AND e.class = 'usage'";

/// Returns the SQL of a daily total's sums.
fn counts() -> String {
    let mut sums = String::new();
    for kind in TokenType::ALL {
        sums.push_str(&format!("sum({0})::bigint AS {0}, ", kind.name()));
    }
    sums.push_str(
        "sum(exchanges)::bigint AS exchanges, sum(cost_pico)::text AS cost_pico, \
         sum(energy_exchanges)::bigint AS energy_exchanges, sum(energy_nj)::text AS energy_nj, \
         sum(gpu_ns)::text AS gpu_ns, sum(gpu_hours_pico)::text AS gpu_hours_pico, \
         sum(gpu_energy_pico)::text AS gpu_energy_pico",
    );
    sums
}
