//! The sections as lines: a title, a line of headings, and rows.

use live::curve::{Basis, ConcurrencyPoint, ModelCurves};
use live::{Engine, Gpu, Upstream};
use ratatui::text::Line;
use text::printable;

use crate::dashboard::{Dashboard, Section, TableView};
use crate::headline::{label, plain};
use crate::number::{age, bytes, count, energy, known, percent, real, time};
use crate::scopes::{Column, MODELS, TENANTS, cells, heads, sorted};
use crate::style::Tone;
use crate::table::{Cell, Head, Layout};

/// A section as lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Its title.
    pub(crate) title: String,
    /// The headings of its table, which stay when the rows scroll.
    pub(crate) head: Option<Line<'static>>,
    /// Its rows.
    pub(crate) rows: Vec<Line<'static>>,
    /// The selected row.
    pub(crate) selected: Option<usize>,
}

impl Part {
    /// Returns its height in lines.
    pub(crate) fn height(&self) -> usize {
        1 + usize::from(self.head.is_some()) + self.rows.len()
    }
}

impl Dashboard {
    /// Returns a section as lines of about `width` columns.
    pub(crate) fn part(&self, section: Section, width: usize) -> Part {
        match section {
            Section::Models => self.scopes("models", section, MODELS, &self.models, width),
            Section::Tenants => self.scopes("tenants", section, TENANTS, &self.tenants, width),
            Section::Curve => self.curve_part(width),
            Section::Servers => {
                let rows =
                    self.now.upstreams.iter().map(|upstream| server(upstream, self.now.at_unix_ms)).collect();
                self.table("servers", SERVERS, rows, width)
            }
            Section::Gpus => self.gpus(width),
            Section::Meter => self.meter(width),
        }
    }

    fn scopes(
        &self,
        name: &str,
        section: Section,
        columns: &[Column],
        view: &TableView,
        width: usize,
    ) -> Part {
        let scopes = self.rows(section);
        let rows: Vec<_> = scopes.iter().map(|scope| cells(columns, scope)).collect();
        let heads = heads(columns);
        let layout = Layout::of(&heads, &rows, width);
        let more = match self.now.unlisted {
            0 => String::new(),
            more => format!(", and {} models and tenants that are not listed", count(more)),
        };
        Part {
            title: format!("{name} {}{more}", scopes.len()),
            head: Some(layout.head(&heads, sorted(view), self.colours)),
            rows: rows.iter().map(|row| layout.line(row, self.colours)).collect(),
            selected: (!scopes.is_empty()).then(|| view.position(&scopes)),
        }
    }

    fn table(&self, title: &str, heads: &[Head], rows: Vec<Vec<Cell>>, width: usize) -> Part {
        let layout = Layout::of(heads, &rows, width);
        Part {
            title: title.to_owned(),
            head: Some(layout.head(heads, None, self.colours)),
            rows: rows.iter().map(|row| layout.line(row, self.colours)).collect(),
            selected: None,
        }
    }

    fn curve_part(&self, width: usize) -> Part {
        let Some(curve) = self.curve() else {
            let rows = vec![self.line([label("none yet: a range needs requests at that concurrency")])];
            return Part { title: "degradation curve".into(), rows, ..Part::default() };
        };
        let fastest = curve.by_concurrency.iter().filter_map(|point| point.speed_tokens_per_second.p50);
        let fastest = fastest.fold(0.0, f64::max);
        let rows = curve.by_concurrency.iter().map(|point| curve_row(point, fastest)).collect();
        let mut part = self.table(&curve_title(curve), CURVE, rows, width);
        for knee in &curve.knees {
            let tone = if knee.basis == Basis::Configured { Tone::Plain } else { Tone::Dim };
            part.rows.push(self.line([("knee ".to_owned(), Tone::Dim), (printable(&knee.words), tone)]));
        }
        let model = self.now.models.iter().find(|scope| scope.name == curve.model);
        let in_flight = known(model.and_then(|model| model.point.in_flight), real);
        part.rows.push(self.line([label(KNEE)]));
        part.rows.push(self.line([label(KNEE_REMEDY), plain(in_flight)]));
        part
    }

    fn gpus(&self, width: usize) -> Part {
        let rows = self.now.gpus.iter().map(gpu).collect();
        let mut part = self.table("GPUs", GPUS, rows, width);
        if let Some(shares) = &self.now.energy {
            let joules = |joules: f64| plain(energy(joules));
            let groups = vec![
                vec![label("energy of exchanges "), joules(shares.attributed_joules)],
                vec![label("of exchanges in flight "), joules(shares.pending_joules)],
                vec![label("idle "), joules(shares.idle_joules)],
                vec![label("unattributed "), joules(shares.unattributed_joules)],
            ];
            part.rows.extend(self.flow(groups, width));
        }
        part
    }

    fn meter(&self, width: usize) -> Part {
        let meter = &self.now.meter;
        let lost = |number: u64| {
            let tone = if number > 0 { Tone::Warn } else { Tone::Plain };
            (count(number), tone)
        };
        let mut groups = vec![
            vec![
                label("time added to an exchange p50 "),
                plain(known(meter.overhead_p50_seconds, time)),
                label(" p99 "),
                plain(known(meter.overhead_p99_seconds, time)),
            ],
            vec![label("CPU "), plain(format!("{} cores", known(meter.cpu_cores, real)))],
            vec![label("memory "), plain(known(meter.resident_bytes, bytes))],
            vec![label("connections "), plain(count(meter.connections))],
            vec![label("lost telemetry "), lost(meter.dropped)],
            vec![label("forwarded unmetered "), lost(meter.passthrough)],
            vec![label("refused by the proxy "), plain(count(meter.refused))],
        ];
        if let Some(ledger) = &self.now.ledger {
            let state = match ledger.up {
                true => (format!("{} rows", count(ledger.rows)), Tone::Plain),
                false => ("cannot be written".to_owned(), Tone::Bad),
            };
            let lag = plain(time(ledger.commit_lag_seconds));
            groups.push(vec![
                label("ledger "),
                state,
                label(" behind "),
                lag,
                label(" lost rows "),
                lost(ledger.lost_rows),
            ]);
        }
        let endings = self.now.endings.iter().filter(|(_, exchanges)| **exchanges > 0);
        groups.extend(endings.map(|(name, exchanges)| {
            vec![label(&format!("ending {} ", printable(name))), plain(count(*exchanges))]
        }));
        Part { title: "the meter’s own cost".into(), rows: self.flow(groups, width), ..Part::default() }
    }
}

fn curve_title(curve: &ModelCurves) -> String {
    let at = curve.upstream.as_ref().map(|upstream| format!(" at {}", printable(upstream)));
    format!("degradation curve: {}{}", printable(&curve.model), at.unwrap_or_default())
}

fn curve_row(point: &ConcurrencyPoint, fastest: f64) -> Vec<Cell> {
    let speed = point.speed_tokens_per_second.p50;
    let all = point.aggregate_tokens_per_second_estimate;
    vec![
        Cell::text(printable(&point.concurrency)),
        Cell::of(speed, real),
        Cell::text(bar(speed.unwrap_or(0.0), fastest)),
        Cell::of(point.first_token_seconds.p50, time),
        Cell::of(all, |all| format!("~{}", real(all))),
        Cell::count(point.exchanges),
    ]
}

/// Returns a bar of [`BAR_COLUMNS`], in eighths of a column.
fn bar(value: f64, most: f64) -> String {
    let eighths = if most > 0.0 { (value / most * (8 * BAR_COLUMNS) as f64).round() as usize } else { 0 };
    let eighths = eighths.min(8 * BAR_COLUMNS);
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8).copied());
    let blank = BAR_COLUMNS - bar.chars().count();
    bar + &" ".repeat(blank)
}

fn server(upstream: &Upstream, at_unix_ms: u64) -> Vec<Cell> {
    let up = match upstream.up {
        Some(true) => Cell::text("up").with(Tone::Good),
        Some(false) => Cell::text("down").with(Tone::Bad),
        None => Cell::of(None, real),
    };
    let unread = Engine::default();
    let engine = upstream.engine.as_ref().unwrap_or(&unread);
    let kind = engine.kind.as_deref().map_or_else(|| "-".to_owned(), printable);
    let page = match &upstream.engine {
        // The server's own numbers are as old as the last read.
        Some(Engine { up: true, read_unix_ms: Some(read), .. }) => {
            Cell::text(format!("{} ago", age(at_unix_ms.saturating_sub(*read))))
        }
        Some(engine) if engine.up => Cell::text("read"),
        Some(_) => Cell::text("failed").with(Tone::Warn),
        None => Cell::of(None, real),
    };
    vec![
        Cell::text(printable(&upstream.name)),
        up,
        Cell::of(engine.running_requests, real),
        Cell::of(engine.waiting_requests, real).warned(),
        Cell::of(engine.kv_cache_usage_ratio, percent),
        Cell::of(engine.prefix_cache_hit_ratio, percent),
        page,
        Cell::text(kind),
        Cell::text(printable(&upstream.url)),
    ]
}

fn gpu(gpu: &Gpu) -> Vec<Cell> {
    let up = match gpu.up {
        true => Cell::text("up").with(Tone::Good),
        false => Cell::text("stale").with(Tone::Warn),
    };
    let of = |number: Option<f64>, most: Option<f64>, text: fn(f64) -> String| match most {
        Some(most) => Cell::of(number, |number| format!("{} of {}", text(number), text(most))),
        None => Cell::of(number, text),
    };
    vec![
        Cell::text(printable(&gpu.name)),
        up,
        Cell::of(gpu.utilization_ratio, percent),
        of(gpu.memory_used_bytes, gpu.memory_limit_bytes, bytes),
        of(gpu.power_watts, gpu.power_limit_watts, |watts| format!("{} W", real(watts))),
        Cell::of(gpu.temperature_celsius, |degrees| format!("{} °C", real(degrees))),
        Cell::text(printable(&gpu.id)),
    ]
}

const SERVERS: &[Head] = &[
    ("", 8),
    ("state", 5),
    ("running", 7),
    ("waiting", 7),
    ("KV cache", 8),
    ("prefix cache hits", 17),
    ("read", 7),
    ("kind", 6),
    ("URL", 8),
];

const GPUS: &[Head] = &[("", 8), ("state", 5), ("use", 5), ("memory", 8), ("power", 8), ("", 5), ("id", 4)];

const CURVE: &[Head] = &[
    ("at once", 7),
    ("speed", 8),
    ("half of the requests reach", 0),
    ("first token", 11),
    ("together", 8),
    ("requests", 8),
];

/// The meaning of the knee, in 80 columns.
const KNEE: &str = "the knee: up to this many at once, at least half of the requests keep the speed;";

/// The remedy beyond it, before the number of requests in flight.
const KNEE_REMEDY: &str = "beyond it, send fewer requests at once, or add a server; in flight now ";

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 24;
