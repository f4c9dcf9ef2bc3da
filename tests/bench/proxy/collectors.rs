//! The cost of a misbehaving collector for the traffic. For each fault in each round, tokenmeter exports everything it
//! can, once to a collector that works and once to one that does not, alternately; the load is the same, so the ratio
//! of their 99th percentiles is the cost of the fault. It should be 1.

use collector::{Collector, Fault};

use crate::child::{self, Child};
use crate::load::Target;
use crate::load::{Load, Seen};
use crate::options::Options;
use crate::peers::{RunDir, Running};
use crate::tls::Tls;
use crate::wire::Ask;
use crate::{Failure, cpu, quantile, rounds};

/// Sixteen streams at a time, 128 in all, fifty frames each, 10 ms between two: the frames of some six
/// seconds, and an export of each signal a second: as log records have it by default, and 5 and 60 times as
/// often as spans and metrics.
const LOAD: Load = Load::new(16, 8, Ask::Stream { text: 50, pause_us: 10_000, pad: 0 });

/// A part of this program: a collector in a process of its own, which ends with its parent.
pub(crate) fn serve(fault: &str) -> Result<(), Failure> {
    let known = Fault::ALL.into_iter().chain([Fault::None]);
    let fault = known.into_iter().find(|each| each.name() == fault).ok_or("no such fault")?;
    let collector = Collector::start(fault)?;
    child::say(&collector.url())?;
    loop {
        std::thread::park();
    }
}

/// A fault and its comparison, in one round.
struct Pair {
    fault: Fault,
    healthy: Seen,
    faulty: Seen,
}

/// Runs all rounds and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let folder = RunDir::new()?;
    let mut mock = Child::ourselves(child::ENDS_CORE, &["mock".to_owned()])?;
    let upstream = mock.line()?;
    let mut pairs = Vec::new();
    for round in 0..options.rounds {
        for &fault in &options.collectors {
            let measure = |fault| measure(options, &folder, &upstream, fault);
            let (healthy, faulty) = if round % 2 == 0 {
                let healthy = measure(Fault::None)?;
                (healthy, measure(fault)?)
            } else {
                let faulty = measure(fault)?;
                (measure(Fault::None)?, faulty)
            };
            let p99 = |seen: &Seen| seen.frame_p99.unwrap_or_default();
            eprintln!(
                "round {} {:<12} p99 {:>6.0} µs, healthy {:>6.0} µs, failed {}",
                round + 1,
                fault.name(),
                p99(&faulty),
                p99(&healthy),
                faulty.failed + healthy.failed
            );
            pairs.push(Pair { fault, healthy, faulty });
        }
    }
    println!("- Machine: {}", cpu::machine());
    println!("- {} rounds, {}", options.rounds, options.tokenmeter()?.version()?);
    print!("{}", table(&options.collectors, &pairs));
    match pairs.iter().map(|pair| pair.healthy.failed + pair.faulty.failed).sum() {
        0 => Ok(()),
        failed => Err(format!("{failed} replies failed; see above").into()),
    }
}

fn measure(options: &Options, folder: &RunDir, upstream: &str, fault: Fault) -> Result<Seen, Failure> {
    let mut collector =
        Child::ourselves(child::ENDS_CORE, &["collector".to_owned(), fault.name().to_owned()])?;
    let url = collector.line()?;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "1000"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "1000"),
        ("TOKENMETER_OTLP_SIGNALS", "metrics,traces,logs"),
    ];
    let running = Running::start(options.tokenmeter()?, upstream, folder, &environment, Tls::Off)?;
    for load in rounds::WARM_UP {
        rounds::load(load, &Target::clear(&running.address), || {})?;
    }
    rounds::load(LOAD, &Target::clear(&running.address), || {})
}

fn table(faults: &[Fault], pairs: &[Pair]) -> String {
    let mut out = String::from(
        "\n| collector | TTFT p50 × healthy | frame p50 × healthy | frame p99 × healthy | failed |\n|---|--:|--:|--:|--:|\n",
    );
    for &fault in faults {
        let of: Vec<&Pair> = pairs.iter().filter(|pair| pair.fault == fault).collect();
        let times = |time: fn(&Seen) -> Option<f64>| {
            let mut ratios: Vec<f64> =
                of.iter().filter_map(|pair| Some(time(&pair.faulty)? / time(&pair.healthy)?)).collect();
            match (quantile::of(&mut ratios, 0.5), ratios.as_slice()) {
                (Some(median), [least, .., most]) => format!("{median:.2} [{least:.2}–{most:.2}]"),
                (Some(median), _) => format!("{median:.2}"),
                (None, _) => "–".into(),
            }
        };
        let failed: u64 = of.iter().map(|pair| pair.faulty.failed).sum();
        out += &format!(
            "| {} | {} | {} | {} | {failed} |\n",
            fault.name(),
            times(|seen| seen.first_p50),
            times(|seen| seen.frame_p50),
            times(|seen| seen.frame_p99),
        );
    }
    out
}
