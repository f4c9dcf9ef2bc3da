//! The sampling thread: exchanges go in and come out, also at its end.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpu::{
    AttributionReading, Ended, ExporterPlan, GpusReading, Hooks, Plan, Prices, Settled, SourceChoice,
    SourceName, Upstream, start,
};
use meter::{Load, LoadReading, Tick};
use scrape::Fetcher;

use super::stub::Stub;

fn plan(stub: &Stub) -> Plan {
    Plan {
        source: SourceChoice::Nvml,
        nvml_library: Some(stub.library()),
        exporter: None,
        upstreams: vec![Upstream { name: "a".into(), gpus: None }],
        period: Duration::from_millis(100),
        stale_periods: 5,
        prices: Prices::default(),
        tenants: 10,
        models: 10,
    }
}

enum Event {
    Settled(Settled<u32>),
    Attribution(AttributionReading),
    Gpus(GpusReading),
}

fn hooks(cell: &Arc<Mutex<Load>>, say: Sender<Event>) -> Hooks<u32> {
    let (origin, cell) = (Instant::now(), Arc::clone(cell));
    let (attribution, gpus) = (say.clone(), say.clone());
    Hooks {
        now: Box::new(move || Tick(u64::try_from(origin.elapsed().as_nanos()).expect("centuries"))),
        load: Box::new(move |_, at| cell.lock().expect("not poisoned").read(at)),
        reading: Box::new(move |reading| drop(gpus.send(Event::Gpus(reading)))),
        attribution: Box::new(move |reading| drop(attribution.send(Event::Attribution(reading)))),
        settled: Box::new(move |settled| drop(say.send(Event::Settled(settled)))),
    }
}

/// Returns the next wanted event.
fn next<V>(said: &Receiver<Event>, wanted: impl Fn(Event) -> Option<V>) -> V {
    loop {
        let said = said.recv_timeout(Duration::from_secs(60)).expect("an event within a minute");
        if let Some(value) = wanted(said) {
            return value;
        }
    }
}

fn a_device_is_seen(said: &Receiver<Event>) {
    next(said, |said| if let Event::Gpus(gpus) = said { (gpus.gpus.len() == 1).then_some(()) } else { None });
}

#[test]
fn every_exchange_comes_back_also_at_shutdown() {
    let mut stub = Stub::new();
    stub.set("count", 1);
    stub.set("0.uuid", "GPU-0");
    stub.set("0.energy", 1000);
    let (say, said) = channel();
    let cell = Arc::new(Mutex::new(Load::default()));
    let running = start(plan(&stub), hooks(&cell, say)).expect("it begins");
    a_device_is_seen(&said);

    // A tick long after the clock's: only its share matters here.
    let far = Tick(u64::MAX / 2);
    let entered = cell.lock().unwrap().enter(far);
    let left = cell.lock().unwrap().leave(far, &entered);
    let ended = |context| Ended {
        upstream: 0,
        model: "m".into(),
        tenant: "t".into(),
        entered,
        left,
        output_tokens: 1,
        context,
    };
    running.notices().ended(ended(7)).expect("there is room");
    let settled = next(&said, |said| if let Event::Settled(settled) = said { Some(settled) } else { None });
    assert_eq!((settled.context, settled.used.map(|used| used.energy_nj)), (7, Some(Some(0))));
    let settled = next(&said, |said| match said {
        Event::Attribution(reading) if reading.settled > 0 => Some(reading.settled),
        _ => None,
    });
    assert_eq!(settled, 1);

    let notices = running.notices();
    notices.ended(ended(8)).expect("there is room");
    drop(running);
    let settled = next(&said, |said| if let Event::Settled(settled) = said { Some(settled) } else { None });
    assert_eq!(settled.context, 8);
    assert_eq!(notices.ended(ended(9)), Err(9), "the thread has ended");
}

#[test]
fn panic_loses_no_exchange() {
    let mut stub = Stub::new();
    stub.set("count", 1);
    stub.set("0.uuid", "GPU-0");
    stub.set("0.energy", 1000);
    let (say, said) = channel();
    let cell = Arc::new(Mutex::new(Load::default()));
    let mut hooks = hooks(&cell, say);
    let (reads, load) = (AtomicU32::new(0), hooks.load);
    hooks.load = Box::new(move |upstream, at| {
        assert!(reads.fetch_add(1, Ordering::Relaxed) < 4, "a defect, on purpose");
        load(upstream, at)
    });
    let running = start(plan(&stub), hooks).expect("it begins");
    a_device_is_seen(&said);
    let entered = cell.lock().expect("not poisoned").enter(Tick(0));
    // It ends later than any sample.
    let far = Tick(u64::MAX / 2);
    let left = cell.lock().expect("not poisoned").clone().leave(far, &entered);
    let notices = running.notices();
    let mut taken = Vec::new();
    // Until the thread takes no more.
    for context in 0.. {
        let (model, tenant) = ("m".into(), "t".into());
        let ended = Ended { upstream: 0, model, tenant, entered, left, output_tokens: 1, context };
        match notices.ended(ended) {
            Ok(()) => taken.push(context),
            Err(_) => break,
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    assert!(!taken.is_empty());
    drop(running);
    let mut last = None;
    let mut settled = Vec::new();
    for said in said {
        match said {
            Event::Settled(back) => settled.push(back),
            Event::Gpus(gpus) => last = Some(gpus),
            Event::Attribution(_) => {}
        }
    }
    let last = last.expect("there is a reading");
    assert!(last.broken && last.failed > 0, "{last:?}");
    assert!(last.gpus.iter().all(|gpu| !gpu.up), "sampling has ended: {last:?}");
    let mut back: Vec<u32> = settled
        .into_iter()
        .map(|settled| {
            assert_eq!(settled.used, None);
            settled.context
        })
        .collect();
    back.sort_unstable();
    assert_eq!(back, taken, "each once");
}

#[test]
fn exchange_returns_at_once_without_a_device() {
    let stub = Stub::new();
    let (say, said) = channel();
    let cell = Arc::new(Mutex::new(Load::default()));
    let running = start(plan(&stub), hooks(&cell, say)).expect("it begins");
    let gpus = next(&said, |said| if let Event::Gpus(gpus) = said { Some(gpus) } else { None });
    assert_eq!((gpus.gpus.len(), gpus.failed), (0, 1));
    let (entered, left) = (LoadReading::default(), LoadReading::default());
    let (model, tenant) = ("m".into(), "t".into());
    let ended = Ended { upstream: 0, model, tenant, entered, left, output_tokens: 1, context: 5 };
    assert_eq!(running.notices().ended(ended), Err(5));
}

#[test]
fn auto_uses_the_first_available_source() {
    let mut stub = Stub::new();
    stub.set("count", 1);
    stub.set("0.uuid", "GPU-0");
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let exporter = ExporterPlan {
        fetcher: Fetcher::http("127.0.0.1", closed.port(), ""),
        path: "/metrics".to_owned(),
        hostname: None,
        prefix: String::new(),
    };
    let nowhere = PathBuf::from("/nonexistent/libnvidia-ml.so.1");
    for (source, library, exporter, expected) in [
        (SourceChoice::Auto, stub.library(), Some(&exporter), SourceName::Nvml),
        (SourceChoice::Auto, nowhere.clone(), Some(&exporter), SourceName::Dcgm),
        (SourceChoice::Auto, nowhere.clone(), None, SourceName::Nvml),
        (SourceChoice::Exporter, stub.library(), Some(&exporter), SourceName::Dcgm),
        (SourceChoice::Nvml, nowhere.clone(), Some(&exporter), SourceName::Nvml),
    ] {
        let (say, said) = channel();
        let plan = Plan { source, nvml_library: Some(library), exporter: exporter.cloned(), ..plan(&stub) };
        let running = start(plan, hooks(&Arc::default(), say)).expect("it begins");
        let gpus = next(&said, |said| if let Event::Gpus(gpus) = said { Some(gpus) } else { None });
        assert_eq!(gpus.source, expected, "{source:?} with {exporter:?}");
        drop(running);
    }
}

#[test]
fn slow_answer_is_a_failed_sample() {
    let mut stub = Stub::new();
    stub.set("count", 1);
    stub.set("0.uuid", "GPU-0");
    let (say, said) = channel();
    let mut hooks = hooks(&Arc::default(), say);
    let ticks = AtomicU32::new(0);
    hooks.now = Box::new(move || Tick(u64::from(ticks.fetch_add(1, Ordering::Relaxed)) * 1_100_000_000));
    let running = start(plan(&stub), hooks).expect("it begins");
    let gpus = next(&said, |said| if let Event::Gpus(gpus) = said { Some(gpus) } else { None });
    assert_eq!((gpus.gpus.len(), gpus.failed), (0, 1), "its moment is unknown");
    drop(running);
}

#[test]
fn shutdown_does_not_wait_for_a_silent_exporter() {
    let exporter = TcpListener::bind("127.0.0.1:0").expect("a port");
    let plan = Plan {
        source: SourceChoice::Exporter,
        exporter: Some(ExporterPlan {
            fetcher: Fetcher::http("127.0.0.1", exporter.local_addr().expect("it has one").port(), ""),
            path: "/metrics".to_owned(),
            hostname: None,
            prefix: String::new(),
        }),
        ..plan(&Stub::new())
    };
    let (say, said) = channel();
    let running = start(plan, hooks(&Arc::default(), say)).expect("it begins");
    let (_asked, _) = exporter.accept().expect("it is asked");
    let begun = Instant::now();
    drop(running);
    assert!(begun.elapsed() < Duration::from_secs(4), "each answer may take 5 s");
    let gpus = said.into_iter().find_map(|said| if let Event::Gpus(gpus) = said { Some(gpus) } else { None });
    let gpus = gpus.expect("a last reading");
    assert_eq!((gpus.failed, gpus.broken), (1, false), "one sample that never came, and no more");
}

#[test]
fn impossible_plan_is_rejected_at_start() {
    let stub = Stub::new();
    let cell = Arc::default();
    let two = vec![Upstream { name: "a".into(), gpus: None }, Upstream { name: "b".into(), gpus: None }];
    let error =
        start(Plan { upstreams: two, ..plan(&stub) }, hooks(&cell, channel().0)).expect_err("a lacks gpus");
    assert!(error.to_string().contains("a does not set its gpus"), "{error}");
    let exporter = Plan { source: SourceChoice::Exporter, ..plan(&stub) };
    let error = start(exporter, hooks(&cell, channel().0)).expect_err("no exporter");
    assert!(error.to_string().contains("no exporter is configured"), "{error}");
}
