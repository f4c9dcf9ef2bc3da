//! Every recorded body: for any cut and any line ends, the scanner reports the same, and agrees with the oracle.

use harness::{Seen, Transcript, cuts, naive};
use scan::{Count, Dialect, Event, Extent, Framing, Scanner, Sink};

/// Bodies up to this size are cut at every byte; of larger ones, the first and last frames are.
const EVERY_CUT_BYTES: usize = 16 * 1024;

#[test]
fn llamacpp_transcripts_agree_with_the_oracle() {
    read_all("llamacpp");
}

#[test]
fn vllm_transcripts_agree_with_the_oracle() {
    read_all("vllm");
}

#[test]
fn litellm_transcripts_agree_with_the_oracle() {
    read_all("litellm");
}

#[test]
fn oracle_agrees_with_the_truth_of_every_recording() {
    for transcript in Transcript::all() {
        let Transcript { name, dialect, framing, body, .. } = &transcript;
        let seen = naive::read(*dialect, *framing, body).unwrap_or_else(|| panic!("{name}: no opinion"));
        holds_its_truth(&transcript, &seen);
    }
}

/// A change of one byte gives a name of tokens another style: the oracle has no result then, or the scanner's.
#[test]
fn restyled_names_agree_with_the_oracle() {
    let mut without_result = 0;
    for Transcript { name, dialect, framing, body, .. } in Transcript::all() {
        if framing != Framing::Json || body.len() > 4096 {
            continue;
        }
        let of_tokens =
            |from: usize| body[from..].starts_with(b"token") || body[from..].starts_with(b"Token");
        for from in (0..body.len()).filter(|from| of_tokens(*from)) {
            let is_letter = |at: &usize| body[*at].is_ascii_alphabetic() || body[*at] == b'_';
            let begin = (0..from).rev().take_while(is_letter).last().unwrap_or(from);
            for at in (begin..body.len()).take_while(is_letter) {
                let mut changed = body.clone();
                match changed[at] {
                    b'_' => drop(changed.remove(at)),
                    _ => changed[at] ^= 0x20,
                }
                let seen = cuts::in_steps(dialect, framing, &changed, usize::MAX);
                match naive::read(dialect, framing, &changed) {
                    Some(naive) => {
                        assert!(naive == seen, "{name}: {}", cuts::first_difference(&naive, &seen))
                    }
                    None => without_result += 1,
                }
            }
        }
    }
    assert!(without_result > 100, "few names were restyled: {without_result}");
}

/// Of the first of two lists of choices, the scanner may have released some before the second begins.
#[test]
fn oracle_has_no_result_for_two_long_lists() {
    let body = |first: &str| format!(r#"{{"choices":[{first}],"choices":[{{"text":"b","index":0}}]}}"#);
    let result = |first| naive::read(Dialect::OpenaiCompletions, Framing::Json, body(first).as_bytes());
    assert!(result(r#"{"text":"a","index":0}"#).is_some());
    assert!(result(r#"{"text":"a","index":0},{"text":"a","index":1}"#).is_none());
}

/// The members of the recorded usages.
#[test]
fn no_recording_has_an_unknown_count() {
    struct Unknown(Vec<String>);
    impl Sink for Unknown {
        fn event(&mut self, event: Event) {
            if let Event::Unknown(name) = event {
                self.0.push(name.as_str().to_owned());
            }
        }

        fn frame(&mut self, _extent: Extent) {}
    }
    for Transcript { name, dialect, framing, body, .. } in Transcript::all() {
        let mut unknown = Unknown(Vec::new());
        let mut scanner = Scanner::new(dialect, framing);
        scanner.feed(&body, &mut unknown);
        scanner.end(&mut unknown);
        assert!(unknown.0.is_empty(), "{name}: {:?}", unknown.0);
    }
}

/// Another server may answer on any path.
#[test]
fn recordings_in_every_dialect_agree_with_the_oracle() {
    let recordings = Transcript::all();
    let (mut compared, mut wrong) = (0, Vec::new());
    for Transcript { name, framing, body, .. } in &recordings {
        for dialect in Dialect::ALL {
            let Some(naive) = naive::read(dialect, *framing, body) else { continue };
            compared += 1;
            let seen = cuts::in_steps(dialect, *framing, body, usize::MAX);
            if naive != seen {
                let difference = cuts::first_difference(&naive, &seen);
                wrong.push(format!("{name} as {}: naive {difference}", dialect.name()));
            }
        }
    }
    let first = &wrong[..wrong.len().min(10)];
    assert!(wrong.is_empty(), "{} of {compared} differ, first:\n{}", wrong.len(), first.join("\n"));
    assert!(compared > 2 * recordings.len(), "the oracle has too few results: {compared}");
}

fn read_all(server: &str) {
    for transcript in Transcript::of_server(server) {
        let seen = read_in_pieces(&transcript);
        holds_its_truth(&transcript, &seen);
    }
}

fn read_in_pieces(transcript: &Transcript) -> Seen {
    let Transcript { name, dialect, framing, body, .. } = transcript;
    let fail = |what: &str, why: String| -> ! { panic!("{name}: {what}: {why}") };
    let none = 0..0;
    let small = body.len() <= EVERY_CUT_BYTES;
    let every = if small { 0..body.len() + 1 } else { none.clone() };
    let whole = cuts::difference(*dialect, *framing, body, every).unwrap_or_else(|why| fail("pieces", why));
    let naive =
        naive::read(*dialect, *framing, body).unwrap_or_else(|| fail("naive", "has no opinion".to_owned()));
    if naive != whole {
        fail("naive", cuts::first_difference(&naive, &whole));
    }
    if !small {
        let ends = ends(body);
        cuts::difference(*dialect, *framing, &ends, 0..ends.len() + 1)
            .unwrap_or_else(|why| fail("its ends in pieces", why));
    }
    whole
}

/// The first and the last 4 KiB or so of a stream, in whole frames.
fn ends(body: &[u8]) -> Vec<u8> {
    let frames: Vec<&[u8]> = body.split_inclusive(|&b| b == b'\n').collect();
    let upto = |frames: &mut dyn Iterator<Item = &&[u8]>| {
        let mut bytes = 0;
        frames
            .take_while(|frame| {
                bytes += frame.len();
                bytes <= 4096
            })
            .count()
    };
    let (head, tail) = (upto(&mut frames.iter()), upto(&mut frames.iter().rev()));
    [&frames[..head], &frames[frames.len() - tail..]].concat().concat()
}

/// Returns true if the text contains a frame of the type that ends a stream.
fn ends_by_name(dialect: Dialect, body: &[u8]) -> bool {
    let names: &[&str] = match dialect {
        Dialect::Anthropic => &["event: message_stop"],
        Dialect::OpenaiResponses => &["event: response.completed", r#""type":"response.completed""#],
        _ => &[],
    };
    names.iter().any(|name| body.windows(name.len()).any(|window| window == name.as_bytes()))
}

fn holds_its_truth(transcript: &Transcript, seen: &Seen) {
    let Transcript { name, dialect, framing, body, truth, .. } = transcript;
    let events = seen.events();
    if *framing == Framing::Sse {
        let frames = seen.calls.iter().filter(|call| matches!(call, harness::SinkCall::Frame(true))).count();
        assert_eq!(Some(frames), truth.sse_events, "{name}: frames");
        let done = events.contains(&Event::Done);
        let marked = truth.done_marker == Some(true) || ends_by_name(*dialect, body);
        assert_eq!(done, marked, "{name}: end mark");
        assert_eq!(Some(seen.content_frames()), truth.content_frames, "{name}: frames with output");
        let pings = events.iter().filter(|event| **event == Event::Ping).count();
        assert_eq!(Some(pings), truth.sse_comments, "{name}: comments");
    }
    let mut finished: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            Event::Finish { choice, .. } => Some(*choice),
            _ => None,
        })
        .collect();
    finished.sort_unstable();
    let mut known: Vec<u32> = truth.finish_reasons.keys().map(|key| key.parse().expect("an index")).collect();
    known.sort_unstable();
    assert_eq!(finished, known, "{name}: finished choices");
    if truth.status >= 400 {
        // `{"detail": "Not Found"}` comes from a framework, not from the dialect.
        assert!(events == [Event::Error] || events == [Event::Other], "{name}: {events:?}");
    }
    let last = events.iter().rev().find_map(|event| match event {
        Event::Usage(usage) => Some(usage.counts),
        _ => None,
    });
    if let Some(reported) = &truth.reported {
        let counts = last.unwrap_or_else(|| panic!("{name}: no usage was seen"));
        assert_eq!(counts.get(Count::Input), reported.prompt_tokens, "{name}: input");
        // Without generation there is no count of it.
        let output = reported.completion_tokens.filter(|_| dialect.generates());
        assert_eq!(counts.get(Count::Output), output, "{name}: output");
    }
}
