//! The cost of a frame through the C interface and through Rust's, in nanoseconds, and of a step of an engine.
//!
//! `cargo bench --profile dist -p tokenmeter-ffi`. Both sides alternate in short windows, and each figure is the best of its
//! windows, so that a busy machine spoils few of them; compare the ratio, not machines.

use std::hint::black_box;
use std::ptr;
use std::time::{Duration, Instant};

use exchange::{Exchange, Setup, TenantResolution, route};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use meter::{EngineStep, Tick};
use tokenmeter_ffi::engine::{OutputTokens, tm_output_tokens_add};
use tokenmeter_ffi::exchange::{
    Header, RequestInfo, tm_exchange_begin, tm_exchange_end, tm_exchange_request_complete,
    tm_exchange_response_body, tm_exchange_response_head,
};
use tokenmeter_ffi::handles::{ExchangeHandle, MeterHandle};
use tokenmeter_ffi::meter::{MeterOptions, tm_meter_new};
use tokenmeter_ffi::slice::Slice;
use tokenmeter_ffi::status::Status;
use usage::Cuts;

/// Frames of one stream.
const FRAMES: usize = 2_000;

fn main() {
    let frame = |n: usize| {
        format!(
            "data: {{\"id\":\"chatcmpl-8f14e45fceea167a5a36dedd4bea2543\",\"object\":\"chat.completion.chunk\",\
             \"created\":1793448000,\"model\":\"qwen3-8b\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{n}\"}},\
             \"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}}]}}\n\n"
        )
    };
    let body: Vec<u8> = (0..FRAMES).map(frame).collect::<String>().into_bytes();
    println!("{:<28} {:>12} {:>12} {:>9}", "bytes a read", "Rust, ns", "C, ns", "C / Rust");
    for read in [0, 1_024, 4_096, 16_384] {
        let reads = reads(&body, read);
        let (rust, c) = alternate(|| by_rust(&reads), || by_c(&reads));
        let name = if read == 0 { "a frame".to_owned() } else { read.to_string() };
        println!("{name:<28} {rust:>12.1} {c:>12.1} {:>9.2}", c / rust);
    }
    println!("\n{:<28} {:>12} {:>12} {:>9}", "exchanges in an engine step", "Rust, ns", "C, ns", "C / Rust");
    for batch in [1, 16, 256] {
        let (rust, c) = steps(batch);
        println!("{batch:<28} {rust:>12.1} {c:>12.1} {:>9.2}", c / rust);
    }
    println!("\nBoth are per frame, or per exchange and step.");
    println!(
        "memory of a running exchange with its meter's share: {} bytes",
        memory_of_exchange(&reads(&body, 0))
    );
}

/// The resident memory of many exchanges that have read a frame, each.
fn memory_of_exchange(reads: &[&[u8]]) -> u64 {
    const EXCHANGES: u64 = 20_000;
    let before = resident_bytes();
    let running: Vec<_> = (0..EXCHANGES).map(|_| c_exchange()).collect();
    for exchange in &running {
        // SAFETY: the slice is of a read.
        assert_eq!(unsafe { tm_exchange_response_body(*exchange, slice(reads[0]), 1) }, Status::Ok);
    }
    let each = (resident_bytes() - before) / EXCHANGES;
    for exchange in running {
        // SAFETY: no record is asked for.
        assert_eq!(unsafe { tm_exchange_end(exchange, 0, 2, ptr::null_mut()) }, Status::Ok);
    }
    each
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    pages * 4096
}

/// The body in reads of this many bytes; of a frame for 0.
fn reads(body: &[u8], read: usize) -> Vec<&[u8]> {
    if read > 0 {
        return body.chunks(read).collect();
    }
    let mut frames: Vec<&[u8]> = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\n\n") {
        let (frame, after) = rest.split_at(at + 2);
        frames.push(frame);
        rest = after;
    }
    frames
}

/// The best windows of two works that alternate, per frame.
fn alternate(mut one: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let deadline = Instant::now() + Duration::from_secs(3);
    let mut best = (f64::INFINITY, f64::INFINITY);
    while Instant::now() < deadline {
        best = (best.0.min(per_frame(&mut one)), best.1.min(per_frame(&mut other)));
    }
    best
}

fn per_frame(work: &mut impl FnMut()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / FRAMES as f64
}

fn rust_exchange() -> Exchange {
    let route = route(None, &Method::POST, "/v1/chat/completions").expect("a metered path");
    let mut exchange =
        Exchange::begin(route, &HeaderMap::new(), TenantResolution::default(), Setup::default(), Tick(0));
    exchange.request_complete(Tick(0));
    exchange.sent();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    exchange.response_head(200, &headers, None, Tick(0)).expect("an answer of a model");
    exchange
}

fn by_rust(reads: &[&[u8]]) {
    let mut exchange = Box::new(rust_exchange());
    let mut cuts = Cuts::default();
    for (at, read) in reads.iter().enumerate() {
        let output = exchange.response_body(black_box(read), Tick(at as u64 * 10_000_000), &mut cuts);
        black_box(output.expect("a body without a content coding"));
    }
}

fn slice(bytes: &[u8]) -> Slice {
    Slice { data: bytes.as_ptr(), length: bytes.len() }
}

fn c_exchange() -> ExchangeHandle {
    thread_local! {
        static METER: MeterHandle = {
            let options = MeterOptions { size: size_of::<MeterOptions>(), ..MeterOptions::default() };
            let mut meter = MeterHandle::default();
            // SAFETY: both point to values.
            assert_eq!(unsafe { tm_meter_new(&raw const options, &raw mut meter) }, Status::Ok);
            meter
        };
    }
    let request = RequestInfo {
        size: size_of::<RequestInfo>(),
        method: slice(b"POST"),
        path: slice(b"/v1/chat/completions"),
        ..RequestInfo::default()
    };
    let mut exchange = ExchangeHandle::default();
    let fields = [Header { name: slice(b"content-type"), value: slice(b"text/event-stream") }];
    let meter = METER.with(|meter| *meter);
    // SAFETY: all point to values.
    unsafe {
        assert_eq!(tm_exchange_begin(meter, &raw const request, &raw mut exchange), Status::Ok);
        assert_eq!(tm_exchange_request_complete(exchange, 0), Status::Ok);
        assert_eq!(tm_exchange_response_head(exchange, 200, fields.as_ptr(), 1, 0), Status::Ok);
    }
    exchange
}

fn by_c(reads: &[&[u8]]) {
    let exchange = c_exchange();
    for (at, read) in reads.iter().enumerate() {
        // SAFETY: the slice is of a read.
        let status =
            unsafe { tm_exchange_response_body(exchange, slice(black_box(read)), at as u64 * 10_000_000) };
        assert_eq!(status, Status::Ok);
    }
    // SAFETY: no record is asked for.
    assert_eq!(unsafe { tm_exchange_end(exchange, 0, 1, ptr::null_mut()) }, Status::Ok);
}

/// Steps of an engine with this many exchanges, by Rust and by one call each.
fn steps(batch: usize) -> (f64, f64) {
    let rounds = FRAMES / batch;
    let rust = || {
        let mut exchanges: Vec<_> = (0..batch).map(|_| Box::new(rust_exchange())).collect();
        for round in 0..rounds {
            for exchange in &mut exchanges {
                let step = EngineStep { choice: 0, tokens: 1, reasoning: 0 };
                black_box(exchange.engine_step(step, Tick(round as u64 * 10_000_000)));
            }
        }
    };
    let c = || {
        let step = |exchange| OutputTokens { exchange, choice: 0, tokens: 1, reasoning: 0, status: 0 };
        let mut all: Vec<_> = (0..batch).map(|_| step(c_exchange())).collect();
        for round in 0..rounds {
            // SAFETY: the array has so many elements.
            let status = unsafe { tm_output_tokens_add(all.as_mut_ptr(), batch, round as u64 * 10_000_000) };
            assert_eq!(status, Status::Ok);
        }
        for step in all {
            // SAFETY: no record is asked for.
            assert_eq!(unsafe { tm_exchange_end(step.exchange, 0, 1, ptr::null_mut()) }, Status::Ok);
        }
    };
    alternate(rust, c)
}
