//! Parses a streamed response: frames with tokens, token counts, and the end mark.
//!
//! In these dialects one `data:` line is one JSON object, so only lines are parsed.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::report::Failure;
use crate::params::Endpoint;

/// The effect of a piece of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    /// At least one frame with tokens.
    Tokens,
    Failed(Failure),
}

/// A streamed response while it is read.
#[derive(Debug)]
pub(super) struct Stream {
    native: bool,
    /// The incomplete last line.
    partial_line: Vec<u8>,
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
            partial_line: Vec::new(),
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
            let seen = match self.partial_line.is_empty() {
                true => self.line(line),
                false => {
                    self.partial_line.extend_from_slice(line);
                    let line = std::mem::take(&mut self.partial_line);
                    self.line(&line)
                }
            };
            match seen {
                Progress::Nothing => {}
                Progress::Tokens => progress = Progress::Tokens,
                Progress::Failed(_) => return seen,
            }
        }
        if self.partial_line.len() + data.len() > MAX_LINE_BYTES {
            return Progress::Failed(Failure::Malformed);
        }
        self.partial_line.extend_from_slice(data);
        progress
    }

    /// Returns the number of frames with tokens so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns true if the dialect's end mark was seen.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens
    }

    /// Returns the tokens that the server reported, or else the number of frames.
    pub(super) fn output_tokens(&self) -> u64 {
        match self.reported {
            true => self.output_tokens,
            false => self.frames,
        }
    }

    /// Returns true if the server reported its tokens.
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

/// Maximum bytes of a line: a thousand times the usual frame.
const MAX_LINE_BYTES: usize = 1 << 20;

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
        has_text(&self.content)
            || self.choices.iter().any(|choice| {
                has_text(&choice.text)
                    || choice.delta.as_ref().is_some_and(|delta| {
                        has_text(&delta.content)
                            || has_text(&delta.reasoning)
                            || has_text(&delta.reasoning_content)
                            || delta.tool_calls.is_some()
                    })
            })
    }
}

fn has_text(text: &Option<Cow<'_, str>>) -> bool {
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
    fn every_split_parses_the_same() {
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
    fn error_frames_and_malformed_lines_are_failures() {
        let read = |line: &str| Stream::new(Endpoint::Chat).read(line.as_bytes());
        assert_eq!(read("data: {\"error\":{\"code\":500}}\n"), Progress::Failed(Failure::InBand));
        assert_eq!(read("data: {\n"), Progress::Failed(Failure::Malformed));
        assert_eq!(
            Stream::new(Endpoint::Chat).read(&vec![b'x'; MAX_LINE_BYTES + 1]),
            Progress::Failed(Failure::Malformed)
        );
    }

    #[test]
    fn native_response_ends_with_stop() {
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
