//! The content of a response, decode step by decode step, independent of the server's shape.
//!
//! In each step every unfinished choice gets one piece: one or more tokens of one kind. So choices
//! are interleaved as in a batch.
//!
//! The law: the pieces of a choice have exactly the tokens of its last tally.

use crate::params::{Finish, GenerationParams};
use crate::random::SplitMix64;
use crate::speed::Model;
use crate::text::{self, Token, Words};

/// The kind of a piece's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reasoning, before the text.
    Reasoning,
    /// Text of the answer.
    Text,
    /// Arguments of a tool call.
    Tool,
    /// The end-of-sequence token.
    End,
}

/// Token counts so far, of one or several choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Prompt tokens.
    pub prompt: u64,
    /// Of `prompt`, those in the cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
    /// Of `output`, those of reasoning.
    pub reasoning: u64,
}

/// The tokens of one choice in one step.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The index of its choice.
    pub choice: u64,
    /// The kind of its tokens.
    pub kind: Kind,
    /// The first piece of its choice.
    pub opens: bool,
    /// The first piece of its kind in its choice.
    pub begins: bool,
    /// Its tokens; at least one.
    pub tokens: Vec<Token>,
    /// The visible text of `tokens`; for a tool call, a part of valid JSON.
    pub text: String,
    /// Characters of the choice before this piece.
    pub offset: u64,
    /// The choice's tokens including this piece.
    pub tally: Tally,
    /// Set on the last piece of a choice.
    pub finish: Option<Finish>,
}

/// The remaining content of a response.
#[derive(Clone, Debug)]
pub struct Script {
    choices: Vec<Choice>,
    lengths: Lengths,
    burst: u32,
}

impl Script {
    /// Returns the script of a response.
    pub fn new(params: &GenerationParams, model: &Model) -> Self {
        let random = SplitMix64::new(params.seed);
        let choices = (0..params.choices())
            .map(|index| Choice {
                index,
                words: Words::new(random.fork(2 * index), params.lexicon),
                draft: random.fork(2 * index + 1),
                shown: 0,
                tally: Tally {
                    prompt: params.prompts[(index / params.n) as usize],
                    cached: if index < params.n { params.cached } else { 0 },
                    output: 0,
                    reasoning: 0,
                },
            })
            .collect();
        Self {
            choices,
            lengths: Lengths {
                tokens: params.tokens,
                reasoning: params.reasoning,
                tool: params.tool,
                finish: params.finish,
            },
            burst: params.burst.unwrap_or(model.burst).max(1),
        }
    }

    /// Returns the pieces of one decode step; empty after all choices have finished.
    pub fn step(&mut self, model: &Model) -> Vec<Piece> {
        let Self { choices, lengths, burst } = self;
        choices
            .iter_mut()
            .filter(|choice| choice.tally.output < lengths.tokens)
            .map(|choice| choice.piece(lengths, model, *burst))
            .collect()
    }

    /// Returns the response's tokens so far: each prompt once, and the output of all choices.
    pub fn total(&self, params: &GenerationParams) -> Tally {
        Tally {
            prompt: params.prompt_tokens(),
            cached: params.cached,
            output: self.choices.iter().map(|choice| choice.tally.output).sum(),
            reasoning: self.choices.iter().map(|c| c.tally.reasoning).sum(),
        }
    }
}

/// The lengths common to all choices.
#[derive(Clone, Debug)]
struct Lengths {
    tokens: u64,
    reasoning: u64,
    tool: u64,
    finish: Finish,
}

impl Lengths {
    /// Returns the kind of the token at `position`, and the position where that kind ends.
    fn kind(&self, position: u64) -> (Kind, u64) {
        let payload_end = self.tokens - u64::from(self.finish != Finish::Length);
        let tool_start = payload_end - self.tool;
        if position < self.reasoning {
            (Kind::Reasoning, self.reasoning)
        } else if position < tool_start {
            (Kind::Text, tool_start)
        } else if position < payload_end {
            (Kind::Tool, payload_end)
        } else {
            (Kind::End, self.tokens)
        }
    }
}

#[derive(Clone, Debug)]
struct Choice {
    index: u64,
    words: Words,
    draft: SplitMix64,
    shown: u64,
    tally: Tally,
}

impl Choice {
    fn piece(&mut self, lengths: &Lengths, model: &Model, burst: u32) -> Piece {
        let start = self.tally.output;
        let (kind, kind_end) = lengths.kind(start);
        let drawn = u64::from(model.tokens_per_step(burst, &mut self.draft));
        let end = (start + drawn).min(kind_end);
        let begins = start == 0 || lengths.kind(start - 1).0 != kind;

        let mut tokens = Vec::with_capacity((end - start) as usize);
        let mut text = String::new();
        for position in start..end {
            let token = match kind {
                Kind::End => text::END,
                _ => self.words.draw(),
            };
            tokens.push(token);
            match kind {
                Kind::Tool => argument(&mut text, token, position, kind_end - lengths.tool, kind_end),
                _ => text.push_str(token.text),
            }
        }

        let offset = self.shown;
        self.shown += text.chars().count() as u64;
        self.tally.output = end;
        if kind == Kind::Reasoning {
            self.tally.reasoning = end;
        }
        Piece {
            choice: self.index,
            kind,
            opens: start == 0,
            begins,
            tokens,
            text,
            offset,
            tally: self.tally,
            finish: (end == lengths.tokens).then_some(lengths.finish),
        }
    }
}

/// Appends the part of `{"query":"…"}` for the token at `position` of `start..end`.
fn argument(text: &mut String, token: Token, position: u64, start: u64, end: u64) {
    if end - start == 1 {
        text.push_str("{}");
    } else if position == start {
        text.push_str(r#"{"query":""#);
    } else if position + 1 == end {
        text.push_str("\"}");
    } else {
        // Only letters and spaces, so that the arguments stay valid JSON with every lexicon.
        text.extend(token.text.chars().filter(|c| c.is_alphanumeric() || *c == ' '));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Defaults, Endpoint};
    use crate::text::Lexicon;

    fn params(body: &str) -> GenerationParams {
        let defaults = Defaults { seed: 1, output_tokens: 32, models: &[] };
        GenerationParams::parse(Endpoint::Chat, body.as_bytes(), &defaults).unwrap()
    }

    /// The parameters of a response of `tokens` with a tool call.
    fn tool_call(tokens: u64, reasoning: u64, tool: u64) -> GenerationParams {
        let finish = if tool > 0 { Finish::ToolCalls } else { Finish::Stop };
        GenerationParams { tokens, finish, reasoning, tool, ..params(r#"{"messages":[]}"#) }
    }

    fn pieces(params: &GenerationParams, model: &Model) -> Vec<Piece> {
        let mut script = Script::new(params, model);
        let mut pieces = Vec::new();
        loop {
            let step = script.step(model);
            if step.is_empty() {
                let output: u64 = pieces.iter().map(|p: &Piece| p.tokens.len() as u64).sum();
                assert_eq!(script.total(params).output, output);
                return pieces;
            }
            pieces.extend(step);
        }
    }

    #[test]
    fn pieces_have_the_requested_tokens() {
        let model = Model { burst: 4, ..Model::default() };
        let params = params(r#"{"messages":[],"max_tokens":50,"n":3}"#);
        let params = GenerationParams { lexicon: Lexicon::Split, ..params };
        let pieces = pieces(&params, &model);
        for choice in 0..3 {
            let own = || pieces.iter().filter(move |piece| piece.choice == choice);
            assert_eq!(own().map(|piece| piece.tokens.len()).sum::<usize>(), 50);
            assert_eq!(own().filter(|piece| piece.opens).count(), 1);
            assert_eq!(own().filter(|piece| piece.finish.is_some()).count(), 1);
            assert!(own().any(|piece| piece.tokens.len() > 1));
        }
    }

    #[test]
    fn kinds_are_in_order_and_arguments_are_json() {
        let params = tool_call(20, 5, 7);
        let pieces = pieces(&params, &Model::default());
        let kinds: Vec<Kind> = pieces.iter().map(|piece| piece.kind).collect();
        assert_eq!(kinds[..5], [Kind::Reasoning; 5]);
        assert_eq!(kinds[5..12], [Kind::Text; 7]);
        assert_eq!(kinds[12..19], [Kind::Tool; 7]);
        assert_eq!(kinds[19], Kind::End);
        assert_eq!(pieces.iter().filter(|piece| piece.begins).count(), 4);
        assert_eq!(pieces[19].finish, Some(Finish::ToolCalls));
        assert_eq!(pieces[19].tally.reasoning, 5);

        let arguments: String = pieces[12..19].iter().map(|p| p.text.as_str()).collect();
        let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        assert!(arguments["query"].is_string());
    }

    #[test]
    fn response_may_consist_of_its_end_token() {
        let params = tool_call(1, 0, 0);
        let pieces = pieces(&params, &Model::default());
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].kind, Kind::End);
    }
}
