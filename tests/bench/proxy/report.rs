//! The report: for each scenario a table of medians over the rounds with their extremes; values are compared within a
//! round first.

use std::fmt::Write;

use crate::peers::Proxy;
use crate::quantile;
use crate::rounds::Run;
use crate::scenario::{Kind, Scenario};

/// One run, on one line.
pub(crate) fn progress(run: &Run) -> String {
    let wrong = run.seen.wrong.as_deref().unwrap_or("none");
    format!(
        "round {} {:<8} {:<12} {:>7.2} µs CPU a frame, {:>8.0} frames/s, {} replies, failed: {wrong}, others {:.0} %",
        run.round + 1,
        run.scenario,
        name(run.proxy),
        cpu_us(run),
        run.seen.frames as f64 / run.seen.seconds,
        run.seen.replies,
        run.others * 100.0
    )
}

/// All tables.
pub(crate) fn tables(scenarios: &[Scenario], proxies: &[Proxy], runs: &[Run]) -> String {
    let mut out = String::new();
    for scenario in scenarios {
        let of: Vec<&Run> = runs.iter().filter(|run| run.scenario == scenario.name).collect();
        let mut others: Vec<f64> = of.iter().map(|run| run.others * 100.0).collect();
        let worst = others.iter().copied().fold(0.0, f64::max);
        let frames: u64 = of.iter().map(|run| run.seen.frames).sum();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "\n### {}: {}\n\n{} frames in all, every byte compared{}. Others on the machine: median {:.0} %, at most {worst:.0} %.\n",
            scenario.name,
            scenario.what,
            frames,
            if proxies.iter().any(|proxy| proxy.rewrites()) {
                ", or every text where a proxy rewrites"
            } else {
                ""
            },
            quantile::of(&mut others, 0.5).unwrap_or(0.0)
        );
        table(&mut out, scenario, proxies, &of);
    }
    out
}

/// A column: its title and its value for a run, given the runs of its round.
type Column = (&'static str, fn(&Run, &Round<'_>) -> Option<f64>, usize);

/// The runs of one scenario in one round.
struct Round<'a>(Vec<&'a Run>);

impl Round<'_> {
    fn of(&self, proxy: Option<Proxy>) -> Option<&Run> {
        self.0.iter().find(|run| run.proxy == proxy).copied()
    }
}

fn table(out: &mut String, scenario: &Scenario, proxies: &[Proxy], runs: &[&Run]) {
    let columns = columns(scenario.kind);
    let titles: Vec<&str> = columns.iter().map(|(title, ..)| *title).collect();
    let _ = writeln!(out, "| proxy | {} | failed |", titles.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(columns.len() + 1));
    let direct = (!scenario.kind.is_memory()).then_some(None);
    for proxy in direct.into_iter().chain(proxies.iter().copied().map(Some)) {
        let own: Vec<&&Run> = runs.iter().filter(|run| run.proxy == proxy).collect();
        let cells = columns.iter().map(|(_, value, digits)| {
            let values = own.iter().filter_map(|run| {
                let round = Round(runs.iter().filter(|other| other.round == run.round).copied().collect());
                value(run, &round)
            });
            spread(values.collect(), *digits)
        });
        let cells: Vec<String> = cells.collect();
        let failed: u64 = own.iter().map(|run| run.seen.failed).sum();
        let _ = writeln!(out, "| {} | {} | {failed} |", name(proxy), cells.join(" | "));
    }
}

fn columns(kind: Kind) -> Vec<Column> {
    let against_haproxy: Column = ("× haproxy-http", |run, round| ratio(run, round, Proxy::Haproxy), 2);
    let against_nginx: Column = ("× nginx", |run, round| ratio(run, round, Proxy::Nginx), 2);
    let against_floor: Column = ("× floor", |run, round| ratio(run, round, Proxy::Floor), 2);
    let throughput: fn(&Run, &Round<'_>) -> Option<f64> = |run, round| {
        let rate = |run: &Run| run.seen.frames as f64 / run.seen.seconds;
        Some(rate(run) / rate(round.of(None)?))
    };
    let rate: fn(&Run, &Round<'_>) -> Option<f64> =
        |run, _| Some(run.seen.frames as f64 / run.seen.seconds / 1000.0);
    let idle_mib: Column = ("idle MiB", |run, _| Some(run.memory.first()?.resident_kib as f64 / 1024.0), 1);
    let own_mib: Column = ("of its own", |run, _| Some(run.memory.first()?.own_kib as f64 / 1024.0), 1);
    let cpu: fn(&Run, &Round<'_>) -> Option<f64> = |run, _| run.proxy.map(|_| cpu_us(run));
    let busiest: Column =
        ("busiest thread µs", |run, _| run.proxy.map(|_| per_frame_us(run, run.busiest_thread_ns)), 2);
    let added_p50: Column = ("p50 added µs", |run, round| added(run, round, |run| run.seen.frame_p50), 0);
    let added_p99: Column = ("p99 added µs", |run, round| added(run, round, |run| run.seen.frame_p99), 0);
    let p99_against_haproxy: fn(&Run, &Round<'_>) -> Option<f64> = |run, round| {
        run.proxy?;
        Some(run.seen.frame_p99? / round.of(Some(Proxy::Haproxy))?.seen.frame_p99?)
    };
    match kind {
        Kind::Paced => vec![
            ("CPU µs/frame", cpu, 1),
            busiest,
            against_haproxy,
            against_nginx,
            against_floor,
            ("TTFT added µs", |run, round| added(run, round, |run| run.seen.first_p50), 0),
            added_p50,
            added_p99,
        ],
        Kind::Full => vec![
            ("CPU µs/frame", cpu, 2),
            busiest,
            against_haproxy,
            against_nginx,
            against_floor,
            ("1,000 frames/s", rate, 0),
            ("× direct", throughput, 2),
            added_p50,
            added_p99,
            ("p99 × haproxy-http", p99_against_haproxy, 1),
        ],
        Kind::Requests => vec![
            ("CPU µs/request", cpu, 1),
            busiest,
            against_haproxy,
            against_nginx,
            against_floor,
            ("p50 added µs", |run, round| added(run, round, |run| run.seen.whole_p50), 0),
            ("p99 added µs", |run, round| added(run, round, |run| run.seen.whole_p99), 0),
            ("1,000 requests/s", rate, 1),
            ("× direct", throughput, 2),
        ],
        Kind::Memory => vec![
            ("start ms", |run, _| Some(run.start?.as_secs_f64() * 1e3), 0),
            idle_mib,
            own_mib,
            ("KiB/stream at 100", |run, _| added_kib(run, 1, 100.0), 1),
            ("KiB/stream at 1,000", |run, _| added_kib(run, 2, 1000.0), 1),
        ],
        Kind::Idle => vec![
            idle_mib,
            own_mib,
            ("KiB/connection at 1,000", |run, _| added_kib(run, 1, 1000.0), 1),
            ("KiB/connection at 8,000", |run, _| added_kib(run, 2, 8000.0), 1),
        ],
        Kind::Cancel => vec![
            ("p50 added µs", |run, round| added(run, round, |run| ended_after(run, 0.5)), 0),
            ("p99 added µs", |run, round| added(run, round, |run| ended_after(run, 0.99)), 0),
        ],
    }
}

/// The memory that each of these streams or connections added, without pages of files.
fn added_kib(run: &Run, at: usize, count: f64) -> Option<f64> {
    let idle = run.memory.first()?.own_kib;
    Some((run.memory.get(at)?.own_kib as f64 - idle as f64) / count)
}

fn ended_after(run: &Run, share: f64) -> Option<f64> {
    quantile::of(&mut run.ended_after_us.clone(), share).map(f64::from)
}

fn cpu_us(run: &Run) -> f64 {
    per_frame_us(run, run.proxy_cpu_ns)
}

fn per_frame_us(run: &Run, ns: u64) -> f64 {
    ns as f64 / 1000.0 / run.seen.frames.max(1) as f64
}

fn ratio(run: &Run, round: &Round<'_>, to: Proxy) -> Option<f64> {
    run.proxy?;
    Some(cpu_us(run) / cpu_us(round.of(Some(to))?))
}

/// The overhead of a proxy; for direct, the base value.
fn added(run: &Run, round: &Round<'_>, time: fn(&Run) -> Option<f64>) -> Option<f64> {
    match run.proxy {
        Some(_) => Some(time(run)? - time(round.of(None)?)?),
        None => time(run),
    }
}

fn spread(mut values: Vec<f64>, digits: usize) -> String {
    let Some(median) = quantile::of(&mut values, 0.5) else { return "–".into() };
    match values.as_slice() {
        [least, .., most] => format!("{median:.digits$} [{least:.digits$}–{most:.digits$}]"),
        _ => format!("{median:.digits$}"),
    }
}

fn name(proxy: Option<Proxy>) -> &'static str {
    proxy.map_or("direct", Proxy::name)
}
