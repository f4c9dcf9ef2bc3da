//! Laws of every record: a reported count is the server's and covers every choice, and times are those of the
//! recording.

use harness::replay::{Pieces, replay};
use harness::seen::Seen;
use harness::{Transcript, cuts};
use meter::{Ending, Provenance, TokenType};
use scan::{Event, Framing};

/// The finish reasons of a length limit.
const CUT_SHORT: [&str; 4] = ["length", "limit", "max_tokens", "incomplete"];

#[test]
fn reported_count_is_the_complete_count() {
    let (mut reported, mut known) = (0, 0);
    for transcript in Transcript::all() {
        let (name, truth) = (&transcript.name, &transcript.truth);
        let tokens = replay(&transcript, Pieces::Reads).tokens;
        if tokens.output_provenance != Provenance::Reported {
            continue;
        }
        reported += 1;
        if let Some(count) = truth.true_completion_tokens {
            known += 1;
            assert_eq!(tokens.output(), count, "{name}");
        }
        if let Some(prompt) = truth.reported.as_ref().and_then(|usage| usage.prompt_tokens)
            && !name.contains("two-prompts")
        {
            assert_eq!(tokens.input(), prompt, "{name}");
        }
    }
    println!("{reported} records are reported, {known} of them with a known count");
    assert!(known > 80, "{known}");
}

#[test]
fn complete_answer_with_usage_is_reported() {
    for transcript in Transcript::all() {
        let (name, truth) = (&transcript.name, &transcript.truth);
        let record = replay(&transcript, Pieces::Reads);
        if !transcript.dialect.generates() {
            continue;
        }
        let covered = truth.reported.as_ref().and_then(|usage| usage.completion_tokens);
        let ended = matches!(record.ending, Ending::Complete | Ending::Length);
        if ended && covered.is_some() && covered == truth.true_completion_tokens {
            assert_eq!(record.tokens.output_provenance, Provenance::Reported, "{name}");
        }
    }
}

/// Embeddings and rankings have a prompt only; the server's count of it is complete.
#[test]
fn dialect_without_generation_has_no_output() {
    for transcript in Transcript::all().into_iter().filter(|t| !t.dialect.generates()) {
        let (name, truth) = (&transcript.name, &transcript.truth);
        let tokens = replay(&transcript, Pieces::Reads).tokens;
        assert_eq!(tokens.output(), 0, "{name}");
        assert_ne!(tokens.output_provenance, Provenance::Frames, "{name}");
        let prompt = truth.reported.as_ref().and_then(|usage| usage.prompt_tokens);
        assert_eq!(tokens.input(), prompt.unwrap_or(0), "{name}");
        assert_eq!(tokens.input_provenance == Provenance::Reported, prompt.is_some(), "{name}");
    }
}

/// vLLM's usage of a beam search differs from its own counter, so neither is billed.
#[test]
fn count_of_a_beam_search_is_not_reported() {
    let record = replay(&Transcript::named("vllm-0.32.0/completion-beam"), Pieces::Reads);
    assert_ne!(record.tokens.output_provenance, Provenance::Reported);
}

/// Without a better source, a count is never above the real one.
#[test]
fn no_count_exceeds_the_truth() {
    for transcript in Transcript::all() {
        let (name, truth) = (&transcript.name, &transcript.truth);
        let tokens = replay(&transcript, Pieces::Reads).tokens;
        if let Some(count) = truth.true_completion_tokens {
            assert!(tokens.output() <= count, "{name}: {} of {count}", tokens.output());
            if matches!(tokens.output_provenance, Provenance::Ids | Provenance::Running) {
                assert!(tokens.output() > 0, "{name}");
            }
        }
        let sum: u64 = TokenType::ALL.iter().map(|&kind| tokens.of(kind)).sum();
        assert_eq!(sum, tokens.input() + tokens.output(), "{name}");
    }
}

/// A token is timed once, and the first of each choice has no gap before it.
#[test]
fn no_token_is_timed_twice() {
    for transcript in Transcript::all() {
        let name = &transcript.name;
        let record = replay(&transcript, Pieces::Reads);
        let pace = record.timing.pace();
        let timed: u64 = pace.position.iter().map(|span| span.tokens).sum();
        let rest = record.tokens.output().saturating_sub(u64::from(record.choices));
        assert!(timed <= rest, "{name}: {timed} of {rest}");
        let frames = transcript.truth.content_frames.unwrap_or(0) as u64;
        let gaps: u64 = pace.chunk_gap.buckets.iter().sum();
        // A frame may have tokens without content.
        assert!(gaps <= frames.max(rest), "{name}: {gaps} gaps between {frames} frames");
    }
}

#[test]
fn endings_match_the_connections() {
    for transcript in Transcript::all() {
        let (name, truth) = (&transcript.name, &transcript.truth);
        let record = replay(&transcript, Pieces::Reads);
        let seen = cuts::in_steps(transcript.dialect, transcript.framing, &transcript.body, usize::MAX);
        let error = seen.events().contains(&Event::Error);
        let expected: &[Ending] = match (truth.status, error) {
            (400.., _) => &[Ending::ErrorStatus],
            (_, true) => &[Ending::ErrorInBand],
            _ if !transcript.whole && transcript.client_left => &[Ending::ClientAbort],
            _ if !transcript.whole => &[Ending::UpstreamCut],
            _ if truth.finish_reasons.values().any(|reason| CUT_SHORT.contains(&reason.as_str())) => {
                &[Ending::Length, Ending::NoOutput]
            }
            _ => &[Ending::Complete, Ending::NoOutput],
        };
        assert!(expected.contains(&record.ending), "{name}: {} not in {expected:?}", record.ending.name());
    }
}

#[test]
fn times_match_the_recording() {
    for transcript in Transcript::all() {
        let name = &transcript.name;
        let timing = replay(&transcript, Pieces::Reads).timing;
        let ns = |us: u64| us * 1000;
        assert_eq!(timing.first_byte_ns, transcript.reads().first().map(|&(us, _)| ns(us)), "{name}");
        assert_eq!(
            Some(timing.duration_ns),
            transcript.arrivals.last().map(|arrival| ns(arrival.us)),
            "{name}"
        );
        if transcript.framing != Framing::Sse {
            assert_eq!(timing.first_token_ns, None, "{name}");
            continue;
        }
        let text = came(&transcript, |event| matches!(event, Event::Text(_)));
        assert_eq!(timing.first_visible_ns, text, "{name}: first visible");
        let tool = came(&transcript, |event| matches!(event, Event::Tool(_)));
        assert_eq!(timing.first_tool_ns, tool, "{name}: first tool");
        let content = came(&transcript, |event| match event {
            Event::Text(_) | Event::Reasoning(_) | Event::Tool(_) => true,
            Event::Empty(piece) => piece.tokens.is_some_and(|n| n > 0),
            _ => false,
        });
        let first = timing.first_token_ns;
        assert!(first <= content || content.is_none(), "{name}: {first:?} after {content:?}");
        assert!(first.is_some() || content.is_none(), "{name}: no first token");
    }
}

/// The server hung for minutes and sent a ping every half minute: pings do not end a stall.
#[test]
fn pings_do_not_end_a_stall() {
    let transcript = Transcript::named("llamacpp-0.7.0/server-interrupted-hangs");
    let timing = replay(&transcript, Pieces::Reads).timing;
    assert_eq!(timing.stalls, 1);
    assert!(timing.stalled_ns > 500_000_000_000, "{}", timing.stalled_ns);
}

/// The time of the first event of this kind, by scanning read by read.
fn came(transcript: &Transcript, is: impl Fn(&Event) -> bool) -> Option<u64> {
    let mut scanner = scan::Scanner::new(transcript.dialect, transcript.framing);
    let mut seen = Seen::default();
    transcript.reads().into_iter().find_map(|(us, slice)| {
        scanner.feed(slice, &mut seen);
        seen.events().iter().any(&is).then_some(us * 1000)
    })
}
