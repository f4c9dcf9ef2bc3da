//! The cost of reading a stream, in nanoseconds per frame: the scanner (content, usage and finish located), the scanner
//! with the meter, and for comparison copying the same bytes, searching for frame ends, and parsing.
//!
//! `cargo run --profile dist -p tokenmeter-bench --bin bench-scan`. Each figure is the best of many short windows, so
//! that a busy machine spoils few of them; compare rows, not machines.

mod dialects;
mod frames;

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use meter::{Body, Meter, Tick};
use scan::{Dialect, Event, Framing, Scanner, Sink};
use serde::Deserialize;
use usage::{AddedOptions, Editor, UsageFilter};

use frames::Stream;

fn main() {
    println!("state per exchange: scanner {} B, meter {} B\n", size_of::<Scanner>(), size_of::<Meter>());
    for stream in Stream::all() {
        println!("{} ({} B a frame, {} B a read)", stream.name, stream.frame_bytes(), stream.read_bytes);
        let ns = |work: &mut dyn FnMut(&Stream)| best(&stream, work);
        row("copy the bytes", ns(&mut copy));
        row("memmem: frame ends", ns(&mut frame_ends));
        row("memmem: frame ends and the content key", ns(&mut content_keys));
        row("scan", ns(&mut scan_only));
        row("scan and meter", ns(&mut scan_and_meter));
        row("serde_json, typed and borrowed", ns(&mut serde_typed));
        row("serde_json, a tree", ns(&mut serde_tree));
        let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
        stream.reads().for_each(|read| scanner.feed(read, &mut Count::default()));
        let work = scanner.work();
        let share = 100.0 * work.matched as f64 / work.fed as f64;
        println!("  {share:.0} % of the bytes were known by their shape\n");
    }
    every_dialect();
    edited();
}

/// One row for each dialect, whole frames in a read.
fn every_dialect() {
    println!(
        "{:<22} {:>7} {:>9} {:>15} {:>9}",
        "dialect", "B/frame", "scan ns", "scan, meter ns", "by shape"
    );
    for (dialect, framing, frame) in dialects::FRAMES {
        let stream = Stream::new(dialect.name(), 65_536, frame);
        let scanned = best(&stream, &mut |stream| {
            let mut scanner = Scanner::new(dialect, framing);
            let mut count = Count::default();
            stream.reads().for_each(|read| scanner.feed(read, &mut count));
            black_box(count.0);
        });
        let metered = best(&stream, &mut |stream| {
            let mut scanner = Scanner::new(dialect, framing);
            let mut meter = Meter::new(dialect, Tick(0), 1_000_000_000);
            meter.answered(200, Body::Frames);
            for (tick, read) in stream.reads().enumerate() {
                scanner.feed(read, &mut meter.read(Tick(tick as u64 * 10_000_000)));
            }
            black_box(meter.live_output());
        });
        let mut scanner = Scanner::new(dialect, framing);
        stream.reads().for_each(|read| scanner.feed(read, &mut Count::default()));
        let share = 100.0 * scanner.work().matched as f64 / scanner.work().fed as f64;
        let (name, bytes) = (dialect.name(), stream.frame_bytes());
        println!("{name:<22} {bytes:>7} {scanned:>9.1} {metered:>15.1} {share:>7.0} %");
    }
    println!();
}

/// The cost of the usage policies: one frame per read, as with paced streams.
fn edited() {
    println!("scan, meter and edit, a frame a read");
    let end = Some(AddedOptions { include: true, continuous: false, timings: false });
    for (what, added, frame, cuts) in [
        ("observe: nothing added", None, frames::vllm as fn(usize, &str) -> String, false),
        ("inject", end, frames::vllm, true),
        ("inject: each frame's null stays", end, frames::openai, false),
        ("inject: each frame's null cut out", end, frames::openai, true),
        ("inject: each frame's zeros stay", end, frames::ollama, false),
        ("inject: each frame's zeros cut out", end, frames::ollama, true),
        (
            "continuous: each frame's count cut out",
            Some(AddedOptions { include: true, continuous: true, timings: false }),
            frames::vllm_running,
            false,
        ),
    ] {
        let stream = Stream::new(what, 0, frame);
        let ns = best(&stream, &mut |stream| {
            let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
            let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1_000_000_000);
            meter.answered(200, Body::Frames);
            let (mut watch, mut editor) = (UsageFilter::new(added, false), Editor::new());
            if cuts {
                watch = watch.without_placeholders();
            }
            watch.arm(&mut scanner);
            for (tick, read) in stream.reads().enumerate() {
                let slice = Bytes::copy_from_slice(read);
                scanner.feed(&slice, &mut watch.listen(&mut meter.read(Tick(tick as u64 * 10_000_000))));
                black_box(editor.edit(slice, watch.cuts(&scanner)));
            }
            black_box(meter.live_output());
        });
        row(what, ns);
    }
}

fn row(what: &str, ns_per_frame: f64) {
    println!("  {what:<42} {ns_per_frame:8.1} ns a frame");
}

/// The best window's time per frame.
fn best(stream: &Stream, work: &mut dyn FnMut(&Stream)) -> f64 {
    let deadline = Instant::now() + Duration::from_millis(700);
    let mut best = f64::INFINITY;
    while Instant::now() < deadline {
        let began = Instant::now();
        work(stream);
        best = best.min(began.elapsed().as_nanos() as f64 / stream.frames as f64);
    }
    best
}

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    #[inline]
    fn event(&mut self, event: Event) {
        if let Event::Text(delta) = event {
            self.0 += u64::from(delta.chars);
        }
    }

    #[inline]
    fn frame(&mut self, _extent: scan::Extent) {}
}

fn copy(stream: &Stream) {
    let mut to = vec![0; stream.read_bytes];
    for read in stream.reads() {
        to[..read.len()].copy_from_slice(read);
        black_box(&to);
    }
}

fn frame_ends(stream: &Stream) {
    let finder = memchr::memmem::Finder::new(b"\n\n");
    for read in stream.reads() {
        black_box(finder.find_iter(read).count());
    }
}

fn content_keys(stream: &Stream) {
    let (ends, key) = (memchr::memmem::Finder::new(b"\n\n"), memchr::memmem::Finder::new(b"\"content\":\""));
    for read in stream.reads() {
        let mut from = 0;
        for end in ends.find_iter(read) {
            black_box(key.find(&read[from..end]));
            from = end;
        }
    }
}

fn scan_only(stream: &Stream) {
    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    let mut count = Count::default();
    for read in stream.reads() {
        scanner.feed(read, &mut count);
    }
    black_box(count.0);
}

fn scan_and_meter(stream: &Stream) {
    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1_000_000_000);
    meter.answered(200, Body::Frames);
    for (tick, read) in stream.reads().enumerate() {
        scanner.feed(read, &mut meter.read(Tick(tick as u64 * 10_000_000)));
    }
    black_box(meter.live_output());
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Usage {
    completion_tokens: u64,
}

fn payloads(read: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    memchr::memmem::find_iter(read, b"\n\n").filter_map(move |end| {
        let payload = read[from..end].strip_prefix(b"data: ");
        from = end + 2;
        payload
    })
}

fn serde_typed(stream: &Stream) {
    for payload in stream.whole_reads().flat_map(payloads) {
        if let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(payload) {
            for choice in &chunk.choices {
                black_box((&choice.delta.content, choice.finish_reason));
            }
            black_box(chunk.usage.map(|usage| usage.completion_tokens));
        }
    }
}

fn serde_tree(stream: &Stream) {
    for payload in stream.whole_reads().flat_map(payloads) {
        black_box(serde_json::from_slice::<serde_json::Value>(payload).is_ok());
    }
}
