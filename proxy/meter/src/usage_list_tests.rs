//! The frames of each kind of server, with placeholders, repetitions and in any order: the counts are those that the
//! server meant. The frames are bytes, and what they mean is known from their making.

use proptest::prelude::*;
use scan::{Dialect, Framing, Request, Scanner};

use crate::{Body, Close, Disagreement, Identity, LoadSpan, Meter, Provenance, Record, Tick, TokenType};

/// The counts that a server means, and how it says them.
#[derive(Clone, Debug)]
struct Truth {
    prompt: u64,
    cached: u64,
    /// The answers' tokens, frame by frame: the first is reasoning.
    answers: Vec<Vec<u64>>,
    /// Which answer has the next frame.
    order: Vec<usize>,
    /// Frames after which a usage of zeros follows.
    zeros: Vec<bool>,
    /// The last usage is sent twice.
    is_repeated: bool,
}

impl Truth {
    fn output(&self) -> u64 {
        self.answers.iter().flatten().sum()
    }

    fn reasoning(&self) -> u64 {
        self.answers.iter().map(|frames| frames[0]).sum()
    }

    /// Calls `frame` for each frame with its answer, the answer's tokens so far, and true at the answer's end.
    fn each(&self, mut frame: impl FnMut(usize, u64, bool)) {
        let mut at = vec![0; self.answers.len()];
        let rest = self.answers.iter().enumerate().flat_map(|(n, frames)| vec![n; frames.len()]);
        for n in self.order.iter().map(|n| n % self.answers.len()).chain(rest) {
            let frames = &self.answers[n];
            if at[n] < frames.len() {
                at[n] += 1;
                frame(n, frames[..at[n]].iter().sum(), at[n] == frames.len());
            }
        }
    }
}

fn truth() -> impl Strategy<Value = Truth> {
    (
        (1_u64..50, 0_u64..50),
        prop::collection::vec(prop::collection::vec(1_u64..9, 1..6), 1..4),
        prop::collection::vec(0_usize..4, 0..12),
        prop::collection::vec(any::<bool>(), 8),
        any::<bool>(),
    )
        .prop_map(|((prompt, cached), answers, order, zeros, is_repeated)| Truth {
            prompt,
            cached: cached.min(prompt),
            answers,
            order,
            zeros,
            is_repeated,
        })
}

/// The servers, by how they count.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Server {
    /// Once, at the end (OpenAI, SGLang).
    Final,
    /// Each choice in each frame, and all at the end (vLLM).
    Continuous,
    /// Each choice at its end, in a frame without choices (llama.cpp).
    EachChoice,
    /// Each choice in the frame of its end.
    AtFinish,
    /// Each choice in each frame, of which each says that it is the last (Gemini behind OpenAI's interface).
    FinishInEach,
    /// As the last, with reasoning beside the answer (xAI).
    Beside,
    /// Only the new tokens in each frame, and all at the end.
    Increments,
    /// The prompt at the start, the answer at the end (Anthropic).
    Split,
    /// As the last; the end repeats the names of the prompt with zeros.
    SplitWithZeros,
    /// As the last; the end repeats the prompt.
    SplitAgain,
    /// All so far in each frame (Gemini).
    Growing,
    /// At the end of NDJSON (Ollama).
    Ndjson,
}

const SERVERS: [Server; 12] = [
    Server::Final,
    Server::Continuous,
    Server::EachChoice,
    Server::AtFinish,
    Server::FinishInEach,
    Server::Beside,
    Server::Increments,
    Server::Split,
    Server::SplitWithZeros,
    Server::SplitAgain,
    Server::Growing,
    Server::Ndjson,
];

/// A usage of a chat.
fn usage(prompt: u64, cached: u64, output: u64, reasoning: u64, total: u64) -> String {
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{output},"total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":{cached}}},"completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}"#
    )
}

const ZEROS: &str = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#;

impl Server {
    /// Most servers answer once.
    fn limit(self, mut truth: Truth) -> Truth {
        let choices = match self {
            Self::Final | Self::Continuous | Self::EachChoice | Self::AtFinish | Self::FinishInEach => 3,
            _ => 1,
        };
        truth.answers.truncate(choices);
        truth
    }

    fn frames(self, truth: &Truth) -> (Dialect, Framing, String) {
        match self {
            Self::Split | Self::SplitWithZeros | Self::SplitAgain => {
                (Dialect::Anthropic, Framing::Sse, self.messages(truth))
            }
            Self::Growing => (Dialect::Gemini, Framing::Sse, gemini(truth)),
            Self::Ndjson => (Dialect::OllamaChat, Framing::Ndjson, ollama(truth)),
            _ => (Dialect::OpenaiChat, Framing::Sse, self.chat(truth)),
        }
    }

    fn chat(self, truth: &Truth) -> String {
        let Truth { prompt, cached, .. } = *truth;
        let mut body = String::new();
        let mut event = |choices: &str, usage: &str, more: &str| {
            body.push_str(&format!("data: {{\"choices\":[{choices}],\"usage\":{usage}{more}}}\n\n"));
        };
        let mut zeros = truth.zeros.iter().copied().cycle();
        let mut ends = vec![];
        let mut before = 0;
        truth.each(|choice, so_far, is_end| {
            let reasoning = truth.answers[choice][0];
            let named = usage(prompt, cached, so_far, reasoning, prompt + so_far);
            let beside = usage(prompt, cached, so_far - reasoning, reasoning, prompt + so_far);
            let new = usage(
                prompt,
                cached,
                so_far.saturating_sub(before),
                0,
                prompt + so_far.saturating_sub(before),
            );
            before = so_far;
            let zeros = if zeros.next() == Some(true) { ZEROS } else { "null" };
            let finishes = is_end || self == Self::FinishInEach;
            let in_frame = match self {
                Self::Continuous | Self::FinishInEach => &named,
                Self::AtFinish if is_end => &named,
                Self::Beside => &beside,
                Self::Increments => &new,
                _ => zeros,
            };
            let finish = if finishes { "\"stop\"" } else { "null" };
            let frame = format!(r#"{{"index":{choice},"delta":{{"content":"a"}},"finish_reason":{finish}}}"#);
            event(&frame, in_frame, "");
            let in_frame = in_frame.to_owned();
            if self == Self::EachChoice && is_end {
                event("", &named, r#","timings":{"prompt_n":1}"#);
            }
            if is_end {
                ends.push((frame, in_frame, named));
            }
        });
        let sum = usage(prompt, cached, truth.output(), truth.reasoning(), prompt + truth.output());
        for _ in 0..=u32::from(truth.is_repeated) {
            match self {
                Self::Final | Self::Continuous | Self::Increments => event("", &sum, ""),
                _ => {}
            }
        }
        if truth.is_repeated {
            let (frame, in_frame, named) = ends.last().expect("an answer");
            match self {
                Self::EachChoice => event("", named, r#","timings":{"prompt_n":1}"#),
                Self::AtFinish | Self::FinishInEach | Self::Beside => event(frame, in_frame, ""),
                _ => {}
            }
        }
        body + "data: [DONE]\n\n"
    }

    fn messages(self, truth: &Truth) -> String {
        let Truth { prompt, cached, .. } = *truth;
        let own = prompt - cached;
        let prompt = format!(
            r#""input_tokens":{own},"cache_creation_input_tokens":0,"cache_read_input_tokens":{cached}"#
        );
        let mut body = format!(
            "data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"m\",\"usage\":{{{prompt},\"output_tokens\":1}}}}}}\n\n"
        );
        truth.each(|_, _, _| {
            body.push_str("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n");
        });
        let again = match self {
            Self::SplitWithZeros if truth.zeros[0] => r#""input_tokens":0,"#.to_owned(),
            Self::SplitWithZeros => {
                r#""input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"#.to_owned()
            }
            Self::SplitAgain => format!("{prompt},"),
            _ => String::new(),
        };
        let (output, thought) = (truth.output(), truth.reasoning());
        let end = format!(
            "data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{{again}\"output_tokens\":{output},\"output_tokens_details\":{{\"thinking_tokens\":{thought}}}}}}}\n\n"
        );
        body.push_str(&end);
        if truth.is_repeated {
            body.push_str(&end);
        }
        body + "data: {\"type\":\"message_stop\"}\n\n"
    }
}

fn gemini(truth: &Truth) -> String {
    let Truth { prompt, cached, .. } = *truth;
    let mut body = String::new();
    truth.each(|_, so_far, is_end| {
        let thoughts = truth.answers[0][0];
        let (text, total) = (so_far - thoughts, prompt + so_far);
        let finish = if is_end { r#","finishReason":"STOP""# } else { "" };
        let candidates = if text > 0 { format!(r#""candidatesTokenCount":{text},"#) } else { String::new() };
        let frame = format!(
            "data: {{\"candidates\":[{{\"index\":0,\"content\":{{\"parts\":[{{\"text\":\"a\"}}]}}{finish}}}],\"usageMetadata\":{{\"promptTokenCount\":{prompt},\"cachedContentTokenCount\":{cached},{candidates}\"thoughtsTokenCount\":{thoughts},\"totalTokenCount\":{total}}}}}\n\n"
        );
        body.push_str(&frame);
        if is_end && truth.is_repeated {
            body.push_str(&frame);
        }
    });
    body
}

fn ollama(truth: &Truth) -> String {
    let mut body = String::new();
    truth.each(|_, _, _| body.push_str("{\"message\":{\"content\":\"a\"},\"done\":false}\n"));
    let (prompt, output) = (truth.prompt, truth.output());
    for _ in 0..=u32::from(truth.is_repeated) {
        body.push_str(&format!(
            "{{\"message\":{{\"content\":\"\"}},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":{prompt},\"eval_count\":{output}}}\n"
        ));
    }
    body
}

fn metered(dialect: Dialect, framing: Framing, body: &str, request: Request) -> Record {
    let mut meter = Meter::new(dialect, Tick(0), 1_000_000_000);
    meter.requested(request, Tick(0));
    meter.answered(200, Body::Frames);
    let mut scanner = Scanner::new(dialect, framing);
    scanner.feed(body.as_bytes(), &mut meter.read(Tick(1)));
    let tail = scanner.end(&mut meter.tail(Tick(2)));
    meter.end(
        Identity::new("u", "p", dialect, "m"),
        Close::Clean { whole: tail.whole },
        LoadSpan::single(),
        Tick(3),
    )
}

fn asked(prompts: u32, answers: usize) -> Request {
    Request {
        prompts,
        answers: u32::try_from(answers).unwrap_or(1),
        stream: Some(true),
        ..Request::default()
    }
}

proptest! {
    #![proptest_config(chance::cases(256))]

    #[test]
    fn sums_are_those_that_the_server_means(truth in truth()) {
        for server in SERVERS {
            let truth = server.limit(truth.clone());
            let (dialect, framing, body) = server.frames(&truth);
            let record = metered(dialect, framing, &body, asked(1, truth.answers.len()));
            let tokens = &record.tokens;
            let cached = if server == Server::Ndjson { 0 } else { truth.cached };
            prop_assert_eq!(
                (tokens.input(), tokens.of(TokenType::InputCached), tokens.output(), tokens.output_provenance),
                (truth.prompt, cached, truth.output(), Provenance::Reported),
                "{:?} {}", server, body
            );
            let counts_reasoning = !matches!(server, Server::Ndjson);
            let reasoning = if counts_reasoning { truth.reasoning() } else { 0 };
            prop_assert_eq!(tokens.of(TokenType::OutputReasoning), reasoning, "{:?} {}", server, body);
            prop_assert_eq!(record.disagreement, None, "{:?} {}", server, body);
        }
    }

    /// TensorRT-LLM sends a usage for each prompt, vLLM one for all.
    #[test]
    fn each_prompt_of_a_list_counts_once(
        usages in prop::collection::vec((1_u64..50, 1_u64..50), 2..5),
        has_total in any::<bool>(),
        repeats in any::<bool>(),
    ) {
        let one = |(prompt, output): (u64, u64)| {
            format!("data: {{\"choices\":[],\"usage\":{}}}\n\n", usage(prompt, 0, output, 0, prompt + output))
        };
        let (prompt, output) = usages.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mut bodies: Vec<_> = usages.iter().map(|usage| one(*usage)).collect();
        // One that equals the one before it cannot be told from its repetition.
        let is_distinct = usages.windows(2).all(|pair| pair[0] != pair[1]);
        if has_total && is_distinct {
            bodies.push(one((prompt, output)));
        } else if repeats && is_distinct {
            bodies.push(bodies[usages.len() - 1].clone());
        }
        let body = bodies.concat() + "data: [DONE]\n\n";
        let prompts = u32::try_from(usages.len()).expect("few");
        let record = metered(Dialect::OpenaiCompletions, Framing::Sse, &body, asked(prompts, usages.len()));
        prop_assert_eq!((record.tokens.input(), record.tokens.output()), (prompt, output), "{}", body);
        prop_assert_eq!(record.disagreement, None);
    }
}

/// Frames of one answer with these running counts, and the last with the end's.
fn chat(counts: &[u64], end: Option<(u64, u64)>) -> Record {
    let frame = |output: u64| {
        let usage = usage(10, 0, output, 0, 10 + output);
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}],\"usage\":{usage}}}\n\n"
        )
    };
    let mut body: String = counts.iter().map(|output| frame(*output)).collect();
    if let Some((output, total)) = end {
        body += &format!(
            "data: {{\"choices\":[],\"usage\":{}}}\n\ndata: [DONE]\n\n",
            usage(10, 0, output, 0, total)
        );
    }
    metered(Dialect::OpenaiChat, Framing::Sse, &body, asked(1, 1))
}

#[test]
fn falling_counts_add_up_or_are_flagged() {
    let sequence = Some(Disagreement::Sequence);
    for (counts, end, output, disagreement) in [
        (&[5, 3, 4][..], Some((12, 22)), 12, None),
        (&[5, 3, 4], Some((13, 23)), 13, sequence),
        (&[5, 8, 9], Some((12, 22)), 12, None),
        (&[5, 8, 9], Some((4, 14)), 4, sequence),
        (&[5, 3, 9], None, 9, sequence),
        (&[5, 5, 5], Some((5, 15)), 5, None),
        // Three frames with content have more than one token.
        (&[1, 1, 1], Some((1, 11)), 1, sequence),
        (&[1, 1, 1], Some((3, 13)), 3, None),
        // The total has the increments.
        (&[2, 2, 2], Some((1, 17)), 7, None),
        (&[2, 2, 2], Some((1, 18)), 8, Some(Disagreement::Total)),
        (&[0, 0, 0], Some((5, 15)), 5, None),
        (&[5, 0, 7], Some((0, 0)), 7, None),
    ] {
        let record = chat(counts, end);
        assert_eq!(
            (record.tokens.output(), record.disagreement),
            (output, disagreement),
            "{counts:?} {end:?}"
        );
        assert_eq!(record.tokens.input(), 10, "{counts:?} {end:?}");
    }
}

#[test]
fn ends_that_fall_are_flagged() {
    for (ends, output, disagreement) in [
        (&[40, 40][..], 40, None),
        (&[10, 20, 30, 40], 40, None),
        (&[40, 30], 30, Some(Disagreement::Sequence)),
        (&[10, 5, 15], 15, None),
        (&[40, 0], 40, None),
    ] {
        let frame = |output: u64| {
            let usage = usage(if output == 0 { 0 } else { 10 }, 0, output, 0, 0);
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}\n\n"
            )
        };
        let body: String = ends.iter().map(|output| frame(*output)).collect();
        let record = metered(Dialect::OpenaiChat, Framing::Sse, &(body + "data: [DONE]\n\n"), asked(1, 1));
        assert_eq!((record.tokens.input(), record.tokens.output()), (10, output), "{ends:?}");
        assert_eq!(record.disagreement, disagreement, "{ends:?}");
    }
}
