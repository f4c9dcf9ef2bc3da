//! The cost of accounting for the traffic: tenant rules, prices, and a ledger on a real disk. In each round tokenmeter
//! is measured with them and without, alternately, under the same load; the medians of both sides over all rounds are
//! compared.

use std::fs;
use std::path::{Path, PathBuf};

use crate::child::{self, Child};
use crate::load::Seen;
use crate::load::Target;
use crate::options::Options;
use crate::peers::{RunDir, Running};
use crate::scenario::{Kind, Scenario};
use crate::tls::Tls;
use crate::{Failure, cpu, quantile, rounds};

/// The selectable scenarios that are relevant here: short replies, and paced streams.
const THESE: [&str; 4] = ["short", "brief", "lat16", "lat64"];

/// Tenant rules. The load sends no identity, so all rules are tried, and the body is read.
const TENANTS: &str = "\
trusted_peers: [127.0.0.1]
hash_end_users: false
hash_principals: false
rules:
  - header: x-team
  - body: user
  - peer: [10.0.0.0/8]
    tenant: batch
default: nobody
";

const PRICES: &str = "\
version: bench
currency: USD
unit: per_million
models:
  - {name: bench, input: 0.10, cached_input: 0.05, output: 0.40}
  - {pattern: '*', input: 0.50, cached_input: 0.25, output: 1.50}
";

/// One run.
struct Run {
    scenario: &'static str,
    books: bool,
    seen: Seen,
    cpu_us: f64,
}

/// Runs all rounds and prints the table.
pub(crate) fn run(options: &Options, folder: &Path) -> Result<(), Failure> {
    let place = RunDir::new()?;
    let own = OnDisk(folder.join(format!("bench-books-{}", std::process::id())));
    fs::create_dir_all(&own.0)?;
    for (name, text) in [("tenants.yaml", TENANTS), ("prices.yaml", PRICES)] {
        fs::write(own.0.join(name), text)?;
    }
    let mut mock = Child::ourselves(child::ENDS_CORE, &["mock".to_owned()])?;
    let upstream = mock.line()?;
    let scenarios: Vec<&Scenario> =
        options.scenarios.iter().filter(|scenario| THESE.contains(&scenario.name)).collect();
    if scenarios.is_empty() {
        return Err(format!("--ledger: name some of {}", THESE.join(", ")).into());
    }
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for scenario in &scenarios {
            for turn in 0..2 {
                let books = (round + turn) % 2 == 1;
                let run = measure(options, &place, &own.0, &upstream, scenario, books)?;
                eprintln!(
                    "round {} {:<6} {:<7} p99 {:>6.0} µs, {:>6.1} µs CPU, failed {}",
                    round + 1,
                    scenario.name,
                    if books { "books" } else { "without" },
                    p99(&run.seen).unwrap_or_default(),
                    run.cpu_us,
                    run.seen.failed
                );
                runs.push(run);
            }
        }
    }
    println!("- Machine: {}", cpu::machine());
    println!("- {} rounds, {}", options.rounds, options.tokenmeter()?.version()?);
    print!("{}", table(&scenarios, &runs));
    match runs.iter().map(|run| run.seen.failed).sum() {
        0 => Ok(()),
        failed => Err(format!("{failed} replies failed; see above").into()),
    }
}

/// A folder that is removed when dropped.
struct OnDisk(PathBuf);

impl Drop for OnDisk {
    fn drop(&mut self) {
        // An error here loses nothing of value.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn measure(
    options: &Options,
    place: &RunDir,
    folder: &Path,
    upstream: &str,
    scenario: &Scenario,
    books: bool,
) -> Result<Run, Failure> {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    // A new ledger each time, so that every run starts with an empty file.
    for name in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
        if name.file_name().is_some_and(|name| name.to_string_lossy().starts_with("spend.db")) {
            fs::remove_file(name)?;
        }
    }
    let (ledger, prices, tenants) = (path("spend.db"), path("prices.yaml"), path("tenants.yaml"));
    let all = [
        ("TOKENMETER_LEDGER", ledger.as_str()),
        ("TOKENMETER_PRICES", &prices),
        ("TOKENMETER_TENANTS", &tenants),
    ];
    let environment = if books { &all[..] } else { &[] };
    let running = Running::start(options.tokenmeter()?, upstream, place, environment, Tls::Off)?;
    let mut tokens = 0;
    for load in rounds::WARM_UP {
        tokens += rounds::load(load, &Target::clear(&running.address), || {})?.replies * load.tokens();
    }
    let tree = running.child.tree();
    let before = cpu::on_cpu_ns(&tree);
    let &[load] = scenario.loads else { return Err("a scenario of one load".into()) };
    let seen = rounds::load(load, &Target::clear(&running.address), || {})?;
    let cpu_us = (cpu::on_cpu_ns(&tree) - before) as f64 / 1e3 / units(scenario, &seen);
    tokens += seen.replies * load.tokens();
    if seen.failed == 0 {
        running.check_counted(tokens)?;
    }
    let run = Run { scenario: scenario.name, books, seen, cpu_us };
    if books && !fs::exists(&ledger)? {
        return Err("there is no ledger: nothing was measured".into());
    }
    Ok(run)
}

/// The unit of CPU time: frames of streams, else replies.
fn units(scenario: &Scenario, seen: &Seen) -> f64 {
    (if scenario.kind == Kind::Requests { seen.replies } else { seen.frames }).max(1) as f64
}

/// Per frame, or per whole reply.
fn p99(seen: &Seen) -> Option<f64> {
    seen.frame_p99.or(seen.whole_p99)
}

fn p50(seen: &Seen) -> Option<f64> {
    seen.frame_p50.or(seen.whole_p50)
}

fn table(scenarios: &[&Scenario], runs: &[Run]) -> String {
    let mut out = String::from(
        "\n| | p99 µs without | with | × | p50 µs without | with | × | CPU µs without | with | failed |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for scenario in scenarios {
        let of = |books: bool, value: fn(&Run) -> Option<f64>| -> Vec<f64> {
            let these = runs.iter().filter(|run| run.scenario == scenario.name && run.books == books);
            these.filter_map(value).collect()
        };
        let both = |value: fn(&Run) -> Option<f64>, digits: usize| {
            let [mut without, mut with] = [of(false, value), of(true, value)];
            let ratio = quantile::of(&mut with, 0.5).zip(quantile::of(&mut without, 0.5));
            let ratio = ratio.map_or("–".to_owned(), |(with, without)| format!("{:.2}", with / without));
            (spread(&without, digits), spread(&with, digits), ratio)
        };
        let (p99s, p50s) = (both(|run| p99(&run.seen), 0), both(|run| p50(&run.seen), 0));
        let cpu = both(|run| Some(run.cpu_us), 1);
        let failed: u64 =
            runs.iter().filter(|run| run.scenario == scenario.name).map(|run| run.seen.failed).sum();
        out += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {failed} |\n",
            scenario.name, p99s.0, p99s.1, p99s.2, p50s.0, p50s.1, p50s.2, cpu.0, cpu.1
        );
    }
    out
}

/// The median of sorted values, with minimum and maximum.
fn spread(sorted: &[f64], digits: usize) -> String {
    let mut values = sorted.to_vec();
    match (quantile::of(&mut values, 0.5), values.as_slice()) {
        (Some(median), [least, .., most]) => {
            format!("{median:.digits$} [{least:.digits$}–{most:.digits$}]")
        }
        (Some(median), _) => format!("{median:.digits$}"),
        (None, _) => "–".into(),
    }
}
