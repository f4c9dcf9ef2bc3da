//! The client's reading of a streamed answer: which frames carry tokens, how many, and the end mark.
//!
//! One `data:` line is one JSON object in the dialects asked here, so lines are all that is parsed.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Endpoint;
use super::report::Failure;

/// What a piece of the body brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    /// At least one frame with tokens.
    Tokens,
    Failed(Failure),
}

/// A streamed answer as it is read.
#[derive(Debug)]
pub(super) struct Stream {
    native: bool,
    /// The last line, as far as it has come.
    torn: Vec<u8>,
    frames: u64,
    prompt_tokens: u64,
    output_tokens: u64,
    reported: bool,
    ended: bool,
}

impl Stream {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            native: endpoint == Endpoint::Native,
            torn: Vec::new(),
            frames: 0,
            prompt_tokens: 0,
            output_tokens: 0,
            reported: false,
            ended: false,
        }
    }

    pub(super) fn read(&mut self, mut data: &[u8]) -> Progress {
        let mut progress = Progress::Nothing;
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = data.split_at(end);
            data = &rest[1..];
            let seen = match self.torn.is_empty() {
                true => self.line(line),
                false => {
                    self.torn.extend_from_slice(line);
                    let line = std::mem::take(&mut self.torn);
                    self.line(&line)
                }
            };
            match seen {
                Progress::Nothing => {}
                Progress::Tokens => progress = Progress::Tokens,
                Progress::Failed(_) => return seen,
            }
        }
        if self.torn.len() + data.len() > LONGEST_LINE {
            return Progress::Failed(Failure::Malformed);
        }
        self.torn.extend_from_slice(data);
        progress
    }

    /// Frames with tokens so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether the dialect's own end mark was seen.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens
    }

    /// As the server reported; if it did not, the frames.
    pub(super) fn output_tokens(&self) -> u64 {
        match self.reported {
            true => self.output_tokens,
            false => self.frames,
        }
    }

    /// Whether the server reported its tokens.
    pub(super) fn reported(&self) -> bool {
        self.reported
    }

    fn line(&mut self, line: &[u8]) -> Progress {
        let Some(data) = line.strip_prefix(b"data: ") else {
            return Progress::Nothing;
        };
        if data == b"[DONE]" {
            self.ended = true;
            return Progress::Nothing;
        }
        let Ok(frame) = serde_json::from_slice::<Frame<'_>>(data) else {
            return Progress::Failed(Failure::Malformed);
        };
        if frame.error.is_some() {
            return Progress::Failed(Failure::InBand);
        }
        if let Some(usage) = &frame.usage {
            self.report(usage.prompt_tokens, usage.completion_tokens);
        }
        if self.native {
            if let (Some(evaluated), Some(predicted)) = (frame.tokens_evaluated, frame.tokens_predicted) {
                self.report(evaluated, predicted);
            }
            self.ended |= frame.stop == Some(true);
        }
        if !frame.has_tokens() {
            return Progress::Nothing;
        }
        self.frames += 1;
        Progress::Tokens
    }

    fn report(&mut self, prompt_tokens: u64, output_tokens: u64) {
        self.prompt_tokens = prompt_tokens;
        self.output_tokens = output_tokens;
        self.reported = true;
    }
}

/// 1 MiB: a frame of a thousand times the usual length.
const LONGEST_LINE: usize = 1 << 20;

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    usage: Option<Usage>,
    error: Option<IgnoredAny>,
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    stop: Option<bool>,
    tokens_predicted: Option<u64>,
    tokens_evaluated: Option<u64>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reasoning: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reasoning_content: Option<Cow<'a, str>>,
    tool_calls: Option<IgnoredAny>,
}

impl Frame<'_> {
    fn has_tokens(&self) -> bool {
        shows(&self.content)
            || self.choices.iter().any(|choice| {
                shows(&choice.text)
                    || choice.delta.as_ref().is_some_and(|delta| {
                        shows(&delta.content)
                            || shows(&delta.reasoning)
                            || shows(&delta.reasoning_content)
                            || delta.tool_calls.is_some()
                    })
            })
    }
}

fn shows(text: &Option<Cow<'_, str>>) -> bool {
    text.as_ref().is_some_and(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = concat!(
        ": keep-alive\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \\\"b\\\" \"}}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"c\"}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":9}}\n\n",
        "data: [DONE]\n\n",
    );

    #[test]
    fn wherever_it_is_cut_it_reads_the_same() {
        for cut in 0..=ANSWER.len() {
            let (head, tail) = ANSWER.as_bytes().split_at(cut);
            let mut stream = Stream::new(Endpoint::Chat);
            stream.read(head);
            stream.read(tail);
            assert!(stream.ended() && stream.reported());
            assert_eq!((stream.frames(), stream.output_tokens()), (2, 9), "{cut}");
            assert_eq!(stream.prompt_tokens(), 4);
        }
    }

    #[test]
    fn an_error_frame_and_nonsense_are_failures() {
        let read = |line: &str| Stream::new(Endpoint::Chat).read(line.as_bytes());
        assert_eq!(read("data: {\"error\":{\"code\":500}}\n"), Progress::Failed(Failure::InBand));
        assert_eq!(read("data: {\n"), Progress::Failed(Failure::Malformed));
        assert_eq!(
            Stream::new(Endpoint::Chat).read(&vec![b'x'; LONGEST_LINE + 1]),
            Progress::Failed(Failure::Malformed)
        );
    }

    #[test]
    fn a_native_answer_ends_with_stop() {
        let mut stream = Stream::new(Endpoint::Native);
        let token = br#"data: {"content":"a","stop":false,"tokens_predicted":3,"tokens_evaluated":5}"#;
        stream.read(token);
        assert_eq!(stream.read(b"\n\n"), Progress::Tokens);
        assert!(!stream.ended());
        stream.read(
            b"data: {\"content\":\"\",\"stop\":true,\"tokens_predicted\":4,\"tokens_evaluated\":5}\n\n",
        );
        assert!(stream.ended());
        assert_eq!(stream.output_tokens(), 4);
    }
}
