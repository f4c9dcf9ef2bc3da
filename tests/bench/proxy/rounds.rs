//! Alternation. In each round every scenario is run without a proxy and then with each of them, one after the other,
//! starting with another proxy each round; so the compared values were measured within seconds, and no proxy is always
//! first.

use std::time::{Duration, Instant};

use crate::child::{self, Child};
use crate::cpu::{self, Memory};
use crate::load::{FLOWING, Load, Seen, Target};
use crate::options::Options;
use crate::peers::{Proxy, RunDir, Running};
use crate::scenario::{Kind, Scenario};
use crate::tls::Tls;
use crate::wire::{self, Ask};
use crate::{Failure, report};

/// The pause before a reading, in which sockets close and heaps settle.
const SETTLE: Duration = Duration::from_millis(100);
/// The pause before memory is read, in which a second frame passes.
const A_FRAME_LATER: Duration = Duration::from_millis(1200);
/// A worker of tokenmeter accepts 4,096 connections by default; the scenario `idle` has more.
const MANY: [(&str, &str); 1] = [("TOKENMETER_CONNECTIONS", "10000")];
/// The warm-up load of every proxy.
pub(crate) const WARM_UP: [Load; 2] =
    [Load::new(4, 50, Ask::Json), Load::new(4, 5, Ask::Stream { text: 100, pause_us: 0, pad: 0 })];

/// One scenario, once, through one proxy.
pub(crate) struct Run {
    /// The round.
    pub(crate) round: u32,
    /// The scenario's name.
    pub(crate) scenario: &'static str,
    /// The proxy; `None` is direct.
    pub(crate) proxy: Option<Proxy>,
    /// The results of the load.
    pub(crate) seen: Seen,
    /// CPU of the proxy's processes; 0 for direct.
    pub(crate) proxy_cpu_ns: u64,
    /// CPU of the thread that used the most: in a proxy with one worker, the forwarding thread.
    pub(crate) busiest_thread_ns: u64,
    /// The share of the machine that other processes used, 0 to 1.
    pub(crate) others: f64,
    /// Memory without streams, then at each load of a memory scenario.
    pub(crate) memory: Vec<Memory>,
    /// From the start of the proxy's process to its first accepted connection.
    pub(crate) start: Option<Duration>,
    /// From the client's end of a held stream to the upstream's, microseconds.
    pub(crate) ended_after_us: Vec<u32>,
}

/// Runs all selected scenarios and prints the report.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    require_two_cores()?;
    let versions: Vec<String> =
        options.proxies.iter().map(|proxy| proxy.version()).collect::<Result<_, _>>()?;
    println!("- Machine: {}", cpu::machine());
    println!("- {}", versions.join("; "));
    for tls in &options.tls {
        measure(options, *tls)?;
    }
    Ok(())
}

/// Runs all selected scenarios with TLS on these connections, and prints their tables.
fn measure(options: &Options, tls: Tls) -> Result<(), Failure> {
    let proxies: Vec<Proxy> =
        options.proxies.iter().copied().filter(|proxy| tls == Tls::Off || proxy.has_tls()).collect();
    let before = cpu::load_average();
    let mut bench = Bench::new(options, tls)?;
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for scenario in &options.scenarios {
            let mut turns: Vec<_> = proxies.iter().copied().map(Some).collect();
            let first = round as usize % turns.len().max(1);
            turns.rotate_left(first);
            if !scenario.kind.is_memory() {
                turns.insert(0, None);
            }
            for proxy in turns {
                let run = bench.measure(round, scenario, proxy)?;
                eprintln!("{}", report::progress(&run));
                runs.push(run);
            }
        }
    }
    drop(bench);
    println!(
        "- TLS: {}; {} rounds; load average {before} before, {} after; cores {}",
        tls.name(),
        options.rounds,
        cpu::load_average(),
        if options.spin { "kept awake: read only p50 times" } else { "free to halt" }
    );
    print!("{}", report::tables(&options.scenarios, &proxies, &runs));
    match runs.iter().map(|run| run.seen.failed).sum() {
        0 => Ok(()),
        failed => Err(format!("{failed} replies failed; see above").into()),
    }
}

fn require_two_cores() -> Result<(), Failure> {
    match std::thread::available_parallelism()?.get() {
        0..2 => Err("two cores are needed: one for the ends, one for the proxy".into()),
        _ => Ok(()),
    }
}

/// The state common to all runs.
struct Bench {
    tls: Tls,
    folder: RunDir,
    mock: Child,
    upstream: String,
    spinners: Vec<Child>,
}

impl Bench {
    fn new(options: &Options, tls: Tls) -> Result<Self, Failure> {
        let folder = RunDir::new()?;
        let mut words = vec!["mock".to_owned()];
        words.extend(tls.of_upstream().then(|| folder.certificate.folder()));
        let mut mock = Child::ourselves(child::ENDS_CORE, &words)?;
        let upstream = mock.line()?;
        let mut spinners = Vec::new();
        if options.spin {
            let program = std::env::current_exe()?.to_string_lossy().into_owned();
            for core in [child::ENDS_CORE, child::PROXY_CORE] {
                let idle = ["chrt", "--idle", "0"];
                spinners.push(Child::start(core, &idle, &program, &["spin".to_owned()], None)?);
            }
        }
        Ok(Self { tls, folder, mock, upstream, spinners })
    }

    fn measure(&mut self, round: u32, scenario: &Scenario, proxy: Option<Proxy>) -> Result<Run, Failure> {
        let running = match proxy {
            Some(proxy) => Some(Running::start(proxy, &self.upstream, &self.folder, &MANY, self.tls)?),
            None => None,
        };
        let direct = self.tls.of_upstream().then_some(&self.folder.certificate);
        let direct = Target { tls: direct, ..Target::clear(&self.upstream) };
        let target = running.as_ref().map_or(direct, Running::target);
        let mut tokens = 0;
        let mut memory = Vec::new();
        if scenario.kind.is_memory() {
            std::thread::sleep(SETTLE);
            memory.extend(running.as_ref().map(|running| cpu::memory(&running.child.tree())));
        } else {
            for load in WARM_UP {
                let seen = self::load(load, &target, || {})?;
                tokens += seen.replies * load.tokens();
            }
            std::thread::sleep(SETTLE);
        }
        let tree = running.as_ref().map(|running| running.child.tree()).unwrap_or_default();
        let began = Instant::now();
        let (busy, ours) = (cpu::machine_busy_ns(), self.ours_ns());
        let threads_before = cpu::threads_ns(&tree);
        let mut sum = Seen::default();
        for &load in scenario.loads {
            let seen = self::load(load, &target, || {
                if scenario.kind.is_memory() {
                    std::thread::sleep(A_FRAME_LATER);
                    memory.push(cpu::memory(&tree));
                }
            })?;
            tokens += seen.replies * load.tokens();
            sum = add(sum, seen);
        }
        let mut ended_after_us = Vec::new();
        for left in &sum.left_at_us {
            ended_after_us.push(wire::since_us(*left, self.mock.line()?.parse()?));
        }
        std::thread::sleep(SETTLE);
        let mut threads = cpu::threads_ns(&tree);
        for (id, ns) in &mut threads {
            *ns = ns.saturating_sub(threads_before.get(id).copied().unwrap_or(0));
        }
        let proxy_cpu_ns: u64 = threads.values().sum();
        let busiest_thread_ns = threads.values().copied().max().unwrap_or(0);
        let ours = self.ours_ns().saturating_sub(ours) + proxy_cpu_ns + sum.cpu_ns;
        let busy = cpu::machine_busy_ns().saturating_sub(busy);
        let cores = std::thread::available_parallelism()?.get() as f64;
        let others = busy.saturating_sub(ours) as f64 / (began.elapsed().as_nanos() as f64 * cores);
        // The client of a held stream may leave between any two frames, so the count is not known.
        if let (Some(running), 0, false) = (&running, sum.failed, scenario.kind == Kind::Cancel) {
            running.check_counted(tokens)?;
        }
        Ok(Run {
            round,
            scenario: scenario.name,
            proxy,
            seen: sum,
            proxy_cpu_ns,
            busiest_thread_ns,
            others,
            memory,
            start: running.map(|running| running.start),
            ended_after_us,
        })
    }

    /// CPU time of processes that outlive a run: the mock and the spinners.
    fn ours_ns(&self) -> u64 {
        let children = self.spinners.iter().chain([&self.mock]);
        children.map(|child| cpu::on_cpu_ns(&child.tree())).sum()
    }
}

/// Runs one load against `target`; `flowing` is called once every connection has had its first text.
pub(crate) fn load(load: Load, target: &Target<'_>, flowing: impl FnOnce()) -> Result<Seen, Failure> {
    let mut child = Child::ourselves(child::ENDS_CORE, &load.words(target))?;
    let mut line = child.line()?;
    if line == FLOWING {
        flowing();
        line = child.line()?;
    }
    Ok(serde_json::from_str(&line)?)
}

/// Two loads of one scenario; times are the later one's.
fn add(sum: Seen, seen: Seen) -> Seen {
    Seen {
        frames: sum.frames + seen.frames,
        replies: sum.replies + seen.replies,
        failed: sum.failed + seen.failed,
        wrong: sum.wrong.or(seen.wrong),
        seconds: sum.seconds + seen.seconds,
        cpu_ns: sum.cpu_ns + seen.cpu_ns,
        ..seen
    }
}
