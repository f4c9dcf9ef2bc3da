//! No allocation per frame: a program of its own, because its allocator counts.

use harness::seen::Nothing;
use harness::{Transcript, cuts};
use meter::{EnginePrompt, EngineStep, Meter, Tick};
use scan::{Dialect, Framing, RequestScanner, Scanner};

fn allocations(dialect: Dialect, framing: Framing, body: &[u8], step: usize) -> u64 {
    let mut scanner = Scanner::new(dialect, framing);
    let counted = allocation_counter::measure(|| {
        for slice in body.chunks(step) {
            scanner.feed(slice, &mut Nothing);
        }
        scanner.end(&mut Nothing);
    });
    counted.count_total
}

#[test]
fn allocations_are_counted() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(counted.count_total, 1);
}

/// Maximum allocations for one body: for its model, its id, the shape of its frames, which grows, its counts, and the
/// state inside a frame if the thread has none yet.
const OF_A_BODY: u64 = 8;

fn token_frames(frames: usize) -> String {
    let mut body = String::new();
    for n in 0..frames {
        // Frames of one shape, and every tenth of another.
        let extra = if n % 10 == 0 { ",\"logprobs\":null" } else { "" };
        body.push_str(&format!(
            "data: {{\"id\":\"chatcmpl-1\",\"choices\":[{{\"index\":{},\"delta\":{{\"content\":\"t\\u00e9{n}\"}}{extra}}}]}}\n\n",
            n % 3
        ));
    }
    body
}

#[test]
fn ten_thousand_token_frames_allocate_nothing() {
    let allocations =
        |frames, step| allocations(Dialect::OpenaiChat, Framing::Sse, token_frames(frames).as_bytes(), step);
    for step in cuts::STEPS {
        allocations(20, step);
        assert_eq!(allocations(10_000, step), allocations(20, step), "{step}");
    }
}

#[test]
fn ten_thousand_steps_of_an_engine_allocate_nothing() {
    let mut meter = Meter::new(Dialect::OpenaiChat, Tick(0), 1_000_000_000);
    let step = |choice| EngineStep { choice, tokens: 2, reasoning: 1 };
    // The first step of a second answer takes memory for all, and so does the first gap between two.
    meter.engine_step(step(1), Tick(1));
    meter.engine_step(step(1), Tick(2));
    let counted = allocation_counter::measure(|| {
        for n in 0..10_000 {
            meter.engine_step(step(n % 10), Tick(u64::from(n)));
            meter.engine_prompt(EnginePrompt { input: 1, ..EnginePrompt::default() });
        }
    });
    assert_eq!((counted.count_total, meter.live_output()), (0, 20_004));
}

#[test]
fn recorded_bodies_allocate_for_their_names_only() {
    for Transcript { name, dialect, framing, body, request, .. } in Transcript::all() {
        for step in [7, 1460, usize::MAX] {
            let counted = allocations(dialect, framing, &body, step);
            assert!(counted <= OF_A_BODY, "{name} in steps of {step}: {counted}");
        }
        let mut scanner = RequestScanner::new();
        scanner.feed(b"{");
        let counted = allocation_counter::measure(|| {
            scanner.feed(&request);
            scanner.end();
        });
        assert!(counted.count_total <= 1, "{name}: its request");
    }
}
