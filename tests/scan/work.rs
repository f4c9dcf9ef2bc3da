//! The cost of reading, by the scanner's own count of bytes: proportional to the body, for any cut. (Clocks are
//! unreliable on a busy machine.)

use harness::{Transcript, cuts, seen::Nothing};
use scan::{Dialect, Framing, Scanner, Work};

fn work(dialect: Dialect, framing: Framing, body: &[u8], step: usize) -> Work {
    let mut scanner = Scanner::new(dialect, framing);
    for slice in body.chunks(step) {
        scanner.feed(slice, &mut Nothing);
    }
    scanner.end(&mut Nothing);
    scanner.work()
}

#[test]
fn every_byte_of_a_recording_is_read_once() {
    let (mut walked, mut matched, mut fed) = (0, 0, 0);
    for Transcript { name, dialect, framing, body, .. } in Transcript::all() {
        for step in cuts::STEPS {
            let work = work(dialect, framing, &body, step);
            assert_eq!(work.fed, body.len() as u64, "{name}");
            assert!(work.walked + work.matched <= work.fed, "{name} in steps of {step}: {work:?}");
            assert_eq!(work.unparsed, 0, "{name} in steps of {step}");
        }
        let whole = work(dialect, framing, &body, usize::MAX);
        (walked, matched, fed) = (walked + whole.walked, matched + whole.matched, fed + whole.fed);
    }
    println!("of {fed} bytes {walked} were walked and {matched} matched a shape");
    assert!(matched > fed / 3, "shapes recognise too little: {matched} of {fed}");
}

#[test]
fn twice_the_body_is_twice_the_work() {
    for name in ["vllm-0.32.0/chat-stream-usage", "llamacpp-0.7.0/native-stream-n2"] {
        let Transcript { dialect, framing, body, .. } = Transcript::named(name);
        for step in cuts::STEPS {
            let once = work(dialect, framing, &body, step);
            let often = work(dialect, framing, &body.repeat(64), step);
            assert_eq!(often.fed, 64 * once.fed);
            assert!(often.walked + often.matched <= often.fed, "{name} in steps of {step}: {often:?}");
            // The count of matched bytes includes the field name before the payload.
            let (once, often) = (64 * (once.walked + once.matched), often.walked + often.matched);
            assert!(often.abs_diff(once) < once / 20, "{name} in steps of {step}: {once}, {often}");
        }
    }
}

#[test]
fn shape_of_a_long_stream_is_recognised() {
    let Transcript { dialect, framing, body, .. } = Transcript::named("vllm-0.32.0/chat-stream-long");
    let whole = work(dialect, framing, &body, 64 * 1024);
    assert!(whole.walked < whole.fed / 20, "{whole:?}");
}
