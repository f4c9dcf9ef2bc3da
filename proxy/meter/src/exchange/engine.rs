//! The token counts of an inference engine in whose process the meter runs: [`Meter::count_by_engine`] defines
//! what they replace.

use scan::{Count, Counts, Delta, Finish};

use super::{Meter, Stalls};
use crate::prompt::Prompt;
use crate::track::Tracks;
use crate::usage_resolver::Resolved;
use crate::{Provenance, Tick, TokenType, Tokens};

/// The counts of the engine so far.
#[derive(Debug)]
pub(super) struct EngineCounts {
    /// Without a prompt, the input has no provenance.
    tokens: Tokens,
    cached_excess: u64,
}

impl EngineCounts {
    const ZERO: Self =
        Self { tokens: Tokens { output_provenance: Provenance::Engine, ..Tokens::NONE }, cached_excess: 0 };

    /// The output tokens.
    pub(super) fn output(&self) -> u64 {
        self.tokens.output()
    }

    fn add(&mut self, kind: TokenType, tokens: u64) {
        let count = &mut self.tokens.by_type[kind as usize];
        *count = count.saturating_add(tokens);
    }
}

/// The prompt of one generation. All but `input` are parts of it; `None`: the engine does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnginePrompt {
    /// Prompt tokens, cached ones included.
    pub input: u64,
    /// Prompt tokens served from a cache.
    pub cached: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Prompt tokens of audio; cached ones may be among them.
    pub audio: Option<u64>,
    /// Prompt tokens of images; cached ones may be among them.
    pub image: Option<u64>,
    /// Prompt tokens of videos; cached ones may be among them.
    pub video: Option<u64>,
}

/// The new tokens of one answer in one step of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStep {
    /// The answer's index.
    pub choice: u32,
    /// New tokens, hidden ones included.
    pub tokens: u32,
    /// Those of them in reasoning; at most `tokens` count.
    pub reasoning: u32,
}

impl Meter {
    /// Takes the token counts and their timing from the engine, and none from the body. The first call of
    /// another method of the engine does so too. Counts and times that frames gave before are discarded.
    ///
    /// | part of the record | source in this mode |
    /// |---|---|
    /// | output tokens | the sum of the steps, as `engine`: exact for every ending, zero without a step |
    /// | input tokens, cached excess | the sum of the prompts, as `engine`; without one, the body's and its provenance |
    /// | first token, generation, rates, gaps, positions, stalls, weight | the steps: each is a frame with tokens |
    /// | choices, finish reasons, ending, rejected counts | both; of two reasons for a choice, the last |
    /// | first byte, chunk, visible text and tool call; visible characters; server report | the body |
    ///
    /// As with frames, only a stream has times of tokens. Without a response, the answer is complete if the engine
    /// finished it and the end is clean. An answer with a status of 400 or above keeps the engine's counts: it
    /// computed them, though they cost nothing. [`Meter::live_output`] is the sum of the steps so far, also without
    /// a stream.
    pub fn count_by_engine(&mut self) {
        self.by_engine();
    }

    /// Returns true if the engine is the source of the counts.
    pub fn is_counted_by_engine(&self) -> bool {
        self.engine.is_some()
    }

    /// Adds a prompt. A request's prompts add up: the answers to one prompt share it, so the engine sends it
    /// once; each prompt of a list, and each round of a tool loop, is one more. A length that exceeds the
    /// limit, alone or with the earlier ones, is rejected with all its parts.
    pub fn engine_prompt(&mut self, prompt: EnginePrompt) {
        let counts = Counts::of([
            (Count::Input, Some(prompt.input)),
            (Count::InputCached, prompt.cached),
            (Count::InputCacheWrite, prompt.cache_write),
            (Count::InputAudio, prompt.audio),
            (Count::InputImage, prompt.image),
            (Count::InputVideo, prompt.video),
        ]);
        let counts = self.resolver.plausible(counts);
        let sum = self.by_engine().tokens.input();
        let Some(prompt) = Prompt::of(&counts) else { return };
        if !self.resolver.accept(sum.saturating_add(prompt.input())) {
            return;
        }
        let counts = self.by_engine();
        counts.tokens.input_provenance = Provenance::Engine;
        counts.cached_excess = counts.cached_excess.saturating_add(prompt.cached_excess());
        TokenType::ALL.into_iter().zip(prompt.by_type()).for_each(|(kind, tokens)| counts.add(kind, tokens));
    }

    /// Adds the tokens of a step, generated at `at`. One without tokens only makes its answer known. One that
    /// takes the output above the limit is rejected.
    pub fn engine_step(&mut self, step: EngineStep, at: Tick) {
        let sum = self.by_engine().output();
        self.choices.note(step.choice);
        let tokens = u64::from(step.tokens);
        if tokens == 0 || !self.resolver.accept(sum.saturating_add(tokens)) {
            return;
        }
        let reasoning = u64::from(step.reasoning).min(tokens);
        let counts = self.by_engine();
        counts.add(TokenType::Output, tokens - reasoning);
        counts.add(TokenType::OutputReasoning, reasoning);
        self.firsts.token.get_or_insert(at);
        self.tracks.add(Delta { choice: step.choice, chars: 0, tokens: Some(step.tokens) }, true);
        self.time_tokens(at);
    }

    /// Ends an answer, once. [`Finish::Abort`] is the client's abort if the client left, else an error.
    pub fn engine_finish(&mut self, choice: u32, reason: Finish) {
        self.by_engine();
        self.choices.finish_by_engine(choice, reason);
    }

    /// Returns the engine's counts. The first call makes the engine the source.
    fn by_engine(&mut self) -> &mut EngineCounts {
        if self.engine.is_none() {
            self.discard_token_times();
        }
        self.engine.get_or_insert_with(|| Box::new(EngineCounts::ZERO))
    }

    fn discard_token_times(&mut self) {
        self.firsts.token = None;
        self.tracks = Tracks::default();
        self.pace = None;
        self.stalls = Stalls::above(self.stalls.limit_ns);
    }

    /// Takes content of the body that is not counted: it still decides if the body's input can be trusted.
    pub(super) fn add_uncounted(&mut self, delta: Delta, is_content: bool, is_reasoning: bool) {
        if !self.sent.facts.echo {
            self.resolver.add_ids(delta.tokens, is_reasoning);
        }
        if is_content {
            self.resolver.add_frame(is_reasoning);
        }
    }

    /// Returns the counts of an exchange that the engine counts.
    pub(super) fn engine_tokens(&self) -> Option<Resolved> {
        let EngineCounts { mut tokens, cached_excess } = **self.engine.as_ref()?;
        if tokens.input_provenance == Provenance::Engine {
            return Some(Resolved::new(tokens, cached_excess, None));
        }
        if self.answer.is_broken() || self.answer.is_error() {
            return Some(Resolved::new(tokens, 0, None));
        }
        let (choices, request) = (self.choices.count, &self.sent.facts);
        let reported = self.resolver.reported(choices, request, self.is_finished());
        let body = match self.dialect.generates() {
            true => self.resolver.tokens(reported.as_ref(), choices, request, 0),
            false => self.resolver.prompt(),
        };
        tokens.input_provenance = body.input_provenance;
        for kind in TokenType::ALL.into_iter().filter(|kind| kind.is_input()) {
            tokens.by_type[kind as usize] = body.of(kind);
        }
        let cached_excess = self.resolver.cached_excess(reported.as_ref(), choices, request);
        Some(Resolved::new(tokens, cached_excess, None))
    }

    /// Discards the times of an answer that the engine counted and that is not a stream.
    pub(super) fn keep_times_of_streams(&mut self) {
        if self.engine.is_some() && !self.answer.is_streamed() {
            self.discard_token_times();
        }
    }
}
