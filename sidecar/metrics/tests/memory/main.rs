//! Maximum memory of the cells: every model of the cap, every histogram at every concurrency, and an observation in
//! every octave of each. It runs in a process of its own, because it measures memory.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use meter::Observer;
use meter::TokenType;
use meter::edges::CONCURRENCY;
use metrics::{Format, Metrics, Options, Value};
use scan::ServerReport;

use records::{plain, types};
use resident::resident_kib;

#[expect(dead_code, reason = "shared with the tests of the page")]
#[path = "../page/records.rs"]
mod records;
#[path = "../page/resident.rs"]
mod resident;

#[test]
fn memory_of_all_buckets_is_bounded() {
    let before = resident_kib();
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    for model in 0..50 {
        let slot = worker.model(&format!("organisation/a-model-with-a-long-name-{model}"));
        let mut record = plain("");
        for octave in 0..32 {
            // The octaves begin at 2^-20 s and 2^-11.
            let (ns, rate) = (1_100u64 << octave, 0.0006 * f64::from(octave).exp2());
            let timing = &mut record.timing;
            (timing.first_byte_ns, timing.first_token_ns) = (Some(ns), Some(ns));
            (timing.first_visible_ns, timing.first_tool_ns) = (Some(ns), Some(ns));
            (timing.duration_ns, timing.per_output_token_ns) = (ns, Some(ns));
            **timing.server.get_or_insert_default() = ServerReport {
                queue_ns: Some(ns),
                prefill_ns: Some(ns),
                decode_ns: Some(ns),
                draft_tokens: Some(ns),
                accepted_draft_tokens: Some(ns),
            };
            (timing.output_rate, timing.input_rate) = (Some(rate), Some(rate));
            timing.visible_chars_rate = Some(rate);
            record.tokens.by_type =
                types(&[(TokenType::Input, 1 << (octave / 2)), (TokenType::Output, 1 << (octave / 2))]);
            for concurrency in CONCURRENCY.into_iter().chain([1000]) {
                record.timing.concurrency = concurrency as f64;
                worker.begin(slot);
                worker.end(slot, &record);
            }
        }
    }
    let grown = resident_kib().saturating_sub(before);
    let reading = metrics.reading();
    let samples = reading.families.iter().flat_map(|family| &family.samples);
    let full = samples.filter_map(|sample| match &sample.value {
        Value::Histogram(of) => of.native.as_ref().map(|native| native.buckets.len()),
        _ => None,
    });
    let full: Vec<_> = full.collect();
    println!("{grown} KiB for {} histograms of one worker", full.len());
    assert!(full.len() >= 50 * 36 && full.iter().filter(|octaves| **octaves >= 32).count() >= 50 * 34);
    assert!(grown < 8 * 1024, "{grown} KiB");

    // The page of a slow scraper is held compressed.
    for format in Format::ALL {
        let mut page = Vec::new();
        reading.write(format, &mut page).unwrap();
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&page).unwrap();
        let packed = packed.finish().unwrap().len();
        println!("{}: {} KiB, held as {} KiB", format.name(), page.len() >> 10, packed >> 10);
        assert!(packed < 900 << 10, "{packed} B");
    }
}
