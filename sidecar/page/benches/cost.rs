//! The CPU of the admin thread with a live page: `tests/bench/run page [MODELS] [TENANTS] [STREAMS]`. Prints a row of the
//! table in tests/bench/performance.md.
//!
//! Every model and tenant has traffic. The thread's CPU time is the kernel's, over ten seconds.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use live::{History, Now, Readiness, Recorder, Step};
use meter::Observer;
use metrics::{Format, Metrics, Options};
use page::{AllowedHosts, Content, Source};

#[path = "../../metrics/tests/page/records.rs"]
#[expect(dead_code, reason = "shared with the tests of the page's numbers")]
mod records;

struct Meter {
    metrics: Metrics,
    recorder: Recorder,
    /// The duration of the last sample.
    sample_ns: Arc<AtomicU64>,
}

impl Source for Meter {
    fn metrics(&self, accept: &str) -> Content {
        let (format, metrics) = (Format::accepted(accept), self.metrics.clone());
        let write = move |out: &mut dyn Write| metrics.scrape(format).write(format, out);
        Content { content_type: format.content_type(), write: Box::new(write) }
    }

    fn ready(&self) -> Readiness {
        Readiness::Ready
    }

    fn sample(&mut self) -> Now {
        let began = Instant::now();
        let now = self.recorder.sample(began, &self.metrics.snapshot());
        self.sample_ns.store(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        now
    }

    fn history(&self, scope: &str, step: Step) -> Option<History> {
        self.recorder.history(scope, step)
    }
}

/// Ends an exchange of every model and tenant on each of four workers, ten times a second.
fn drive(metrics: &Metrics, models: usize, tenants: usize, done: &AtomicBool) {
    let mut workers: Vec<_> = (0..4).map(|_| metrics.worker()).collect();
    for round in 0_usize.. {
        for at in 0..models.max(tenants) {
            let mut record = records::plain(&format!("model-{}", at % models));
            record.identity.tenant = format!("tenant-{}", at % tenants).into();
            record.timing.concurrency = (1 << (round % 8)) as f64;
            for worker in &mut workers {
                let slot = worker.model(&record.identity.model);
                worker.begin(slot);
                worker.live(slot, 11, 0);
                worker.end(slot, &record);
            }
        }
        if done.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the CPU time of the thread `admin` of this process.
fn admin_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this is Linux").flatten();
    let of_task = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let ns = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let ns: u64 = ns.split(' ').next()?.parse().ok()?;
        (name.trim() == "admin").then_some(ns)
    };
    Duration::from_nanos(tasks.filter_map(of_task).sum())
}

fn stream(address: SocketAddr) {
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (models, tenants, streams) = (number(0, 20), number(1, 50), number(2, 10));
    let metrics = Metrics::new(Options { models, ..Options::default() });
    let (done, sample_ns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let driver = {
        let (metrics, done) = (metrics.clone(), Arc::clone(&done));
        std::thread::spawn(move || drive(&metrics, models, tenants, &done))
    };
    let source = Meter { metrics, recorder: Recorder::default(), sample_ns: Arc::clone(&sample_ns) };
    let running = page::start(
        SocketAddr::from(([127, 0, 0, 1], 0)).into(),
        AllowedHosts::default(),
        page::CONNECTIONS,
        Box::new(source),
    )
    .expect("it listens");
    println!(
        "| models | tenants | no stream, % of a core | {streams} streams, % of a core | one sample, µs |"
    );
    println!("|---:|---:|---:|---:|---:|");
    let shares = [0, streams].map(|open| {
        (0..open).for_each(|_| stream(running.address()));
        // The histories of all scopes exist after a few samples.
        std::thread::sleep(Duration::from_secs(3));
        let (began, before) = (Instant::now(), admin_cpu());
        std::thread::sleep(Duration::from_secs(10));
        let share = (admin_cpu() - before).as_secs_f64() / began.elapsed().as_secs_f64();
        100.0 * share
    });
    let sample_us = sample_ns.load(Ordering::Relaxed) / 1000;
    println!("| {models} | {tenants} | {:.2} | {:.2} | {sample_us} |", shares[0], shares[1]);
    done.store(true, Ordering::Relaxed);
    drop(running);
    let _ = driver.join();
}
