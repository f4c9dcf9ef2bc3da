//! Resolves the token counts of an exchange from their sources, by the order of [`Provenance`]. A better
//! source replaces a worse one completely. A usage of zero beside content is not trusted, nor is any other
//! source that counts fewer tokens than there were frames with content.
//!
//! An unstreamed body is one frame of any length, so its frames are not a count, and the counts of some of
//! its choices are not a count of all. Without another source it is uncounted, including the prompt, and has no
//! price.

use scan::{Counts, Dialect, Request, Scope, Usage};

use crate::exchange::COUNTED_CHOICES;
use crate::tokens::{Provenance, TokenType, Tokens};

/// The counts of each source so far.
#[derive(Clone, Debug)]
pub(crate) struct UsageResolver {
    /// The limit of one count; a higher one is rejected.
    max_tokens: u64,
    /// The usages of the whole exchange. Boxed like the next two, because most streams have none until their end.
    whole: Option<Box<WholeUsage>>,
    /// The sum of the usages of one choice each.
    choice_sum: Option<Box<UsageSum>>,
    /// The last running usage. The meter keeps its output per choice; the rest describes the prompt.
    running: Option<Box<Counts>>,
    /// The prompts by choice; present once a second choice has a usage.
    prompts: Option<Box<ChoicePrompts>>,
    /// True if the answer is an unstreamed body.
    pub(crate) is_body: bool,
    /// True if that body is complete: it has every choice.
    pub(crate) is_entire: bool,
    /// Number of rejected counts.
    pub(crate) rejected: u32,
    /// Tokens by ids or log probabilities, and those of them in reasoning.
    pub(crate) ids: u64,
    pub(crate) ids_reasoning: u64,
    /// Frames with content, and those of them with reasoning.
    pub(crate) frames: u64,
    pub(crate) frames_reasoning: u64,
}

/// The usages of a whole exchange.
#[derive(Clone, Copy, Debug, Default)]
struct WholeUsage {
    last: Counts,
    /// The sum of all of them: TensorRT-LLM sends one for each prompt of a list.
    sum: UsageSum,
}

/// The sum of several usages.
#[derive(Clone, Copy, Debug, Default)]
struct UsageSum {
    usages: u32,
    /// Usages that have a prompt length, and those that have an answer length.
    inputs: u32,
    outputs: u32,
    input: u64,
    input_max: u64,
    cached: u64,
    cached_max: u64,
    cache_write_max: u64,
    cache_write_1h_max: u64,
    audio_max: u64,
    image_max: u64,
    video_max: u64,
    output: u64,
    reasoning: u64,
    output_audio: u64,
    output_image: u64,
    output_video: u64,
}

/// Trusted counts of the prompt. All but `input` are parts of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) input: u64,
    cached: u64,
    /// Tokens written to a cache, for any lifetime.
    cache_write: u64,
    cache_write_1h: u64,
    audio: u64,
    image: u64,
    video: u64,
}

/// Trusted counts of the answer. All but `output` are parts of it.
#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    output: u64,
    reasoning: u64,
    audio: u64,
    image: u64,
    video: u64,
}

impl Answer {
    /// Returns the answer in `counts`, if they have its length.
    fn of(counts: &Counts) -> Option<Self> {
        Some(Self {
            output: counts.output?,
            reasoning: counts.output_reasoning.unwrap_or(0),
            audio: counts.output_audio.unwrap_or(0),
            image: counts.output_image.unwrap_or(0),
            video: counts.output_video.unwrap_or(0),
        })
    }
}

impl Prompt {
    /// Returns the prompt in `counts`, if they have its length.
    pub(crate) fn of(counts: &Counts) -> Option<Self> {
        Some(Self {
            input: counts.input?,
            cached: counts.input_cached.unwrap_or(0),
            cache_write: counts.cache_writes(),
            cache_write_1h: counts.input_cache_write_1h.unwrap_or(0),
            audio: counts.input_audio.unwrap_or(0),
            image: counts.input_image.unwrap_or(0),
            video: counts.input_video.unwrap_or(0),
        })
    }

    /// Returns the disjoint types of its tokens.
    pub(crate) fn by_type(&self) -> [u64; TokenType::ALL.len()] {
        let mut by_type = [0; TokenType::ALL.len()];
        let cache_write_1h = self.cache_write_1h.min(self.cache_write);
        // Part of the audio, images and videos may have come from the cache. No server reports which, so the
        // earlier types here are taken in full.
        let parts = [
            (TokenType::InputCached, self.cached),
            // The more expensive lifetime first: if the counts exceed the prompt, it is taken in full.
            (TokenType::InputCacheWrite1h, cache_write_1h),
            (TokenType::InputCacheWrite, self.cache_write - cache_write_1h),
            (TokenType::InputAudio, self.audio),
            (TokenType::InputImage, self.image),
            (TokenType::InputVideo, self.video),
        ];
        by_type[TokenType::Input as usize] = split(self.input, parts, &mut by_type);
        by_type
    }

    /// Returns the cached tokens that exceed the prompt: SGLang's prefill and decode servers count the
    /// prefix twice. At most the prompt is counted as cached.
    pub(crate) fn cached_excess(&self) -> u64 {
        self.cached.saturating_sub(self.input)
    }
}

/// The prompt of each choice below [`COUNTED_CHOICES`].
#[derive(Clone, Copy, Debug)]
struct ChoicePrompts([Prompt; COUNTED_CHOICES]);

impl ChoicePrompts {
    fn starting_with(first: Prompt) -> Self {
        let mut prompts = [Prompt::default(); COUNTED_CHOICES];
        prompts[0] = first;
        Self(prompts)
    }

    /// Sums the prompts of a list. The answers to one prompt have adjacent indices, so each prompt counts
    /// once.
    fn sum(&self, request: &Request) -> Prompt {
        let each = (request.answers / request.prompts.max(1)).max(1) as usize;
        let longest = self.0.chunks(each).map(|answers| answers.iter().max_by_key(|prompt| prompt.input));
        longest.flatten().fold(Prompt::default(), |sum, prompt| Prompt {
            input: sum.input.saturating_add(prompt.input),
            cached: sum.cached.saturating_add(prompt.cached),
            ..sum
        })
    }
}

impl UsageResolver {
    /// A resolver without counts that rejects any count above `max_tokens`.
    pub(crate) fn new(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            whole: None,
            choice_sum: None,
            running: None,
            prompts: None,
            is_body: false,
            is_entire: false,
            rejected: 0,
            ids: 0,
            ids_reasoning: 0,
            frames: 0,
            frames_reasoning: 0,
        }
    }

    /// Adds the tokens of a delta that has ids or log probabilities.
    pub(crate) fn add_ids(&mut self, tokens: Option<u32>, reasoning: bool) {
        let ids = u64::from(tokens.unwrap_or(0));
        self.ids = self.ids.saturating_add(ids);
        if reasoning {
            self.ids_reasoning = self.ids_reasoning.saturating_add(ids);
        }
    }

    /// Adds a frame with content.
    pub(crate) fn add_frame(&mut self, reasoning: bool) {
        self.frames += 1;
        if reasoning {
            self.frames_reasoning += 1;
        }
    }

    /// Adds a usage of the server. Returns its plausible counts.
    pub(crate) fn usage(&mut self, usage: &Usage) -> Counts {
        let counts = self.plausible(usage.counts);
        match usage.scope {
            Scope::Whole => {
                let whole = self.whole.get_or_insert_default();
                whole.last = counts;
                whole.sum.add(&counts);
            }
            Scope::Running(choice) => {
                self.record_prompt(choice, &counts);
                **self.running.get_or_insert_default() = counts;
            }
            Scope::Choice(choice) => {
                if let Some(choice) = choice {
                    self.record_prompt(choice, &counts);
                }
                self.choice_sum.get_or_insert_default().add(&counts);
            }
        }
        counts
    }

    /// Returns the trusted usage of the whole exchange: one for all choices, or one for each. `is_finished`:
    /// every answer is finished.
    pub(crate) fn reported(&self, choices: u32, request: &Request, is_finished: bool) -> Option<Counts> {
        // vLLM's usage of a beam search counts what it returns, not what the engine computed: 16 output
        // tokens where its counter has 15, 3 prompt tokens where it has 101.
        if request.beam_search {
            return None;
        }
        let counts = match (&self.whole, &self.choice_sum) {
            (Some(whole), _) => whole.usage(request, is_finished)?,
            (None, Some(sum)) if sum.usages >= self.expected(choices, request) => {
                let Prompt { input, cached, cache_write, cache_write_1h, audio, image, video } =
                    sum.prompt(request);
                Counts {
                    input: (sum.inputs > 0).then_some(input),
                    input_cached: Some(cached),
                    input_cache_write: Some(cache_write),
                    input_cache_write_1h: Some(cache_write_1h),
                    input_audio: Some(audio),
                    input_image: Some(image),
                    input_video: Some(video),
                    output: (sum.outputs == sum.usages).then_some(sum.output),
                    output_reasoning: Some(sum.reasoning),
                    output_audio: Some(sum.output_audio),
                    output_image: Some(sum.output_image),
                    output_video: Some(sum.output_video),
                    rejected: 0,
                }
            }
            (None, _) => return None,
        };
        self.is_credible(&counts).then_some(counts)
    }

    /// Returns the number of choices that need a usage. A complete body has all its choices, whatever the
    /// client requested.
    fn expected(&self, choices: u32, request: &Request) -> u32 {
        if self.is_entire { choices } else { choices.max(request.answers) }
    }

    /// Returns the last usage of the whole exchange.
    fn last_whole(&self) -> Option<&Counts> {
        self.whole.as_ref().map(|whole| &whole.last)
    }

    /// Returns the counts of usages that do not cover everything.
    fn partial_usage(&self, request: &Request) -> Option<Counts> {
        match &self.whole {
            Some(whole) if request.beam_search => Some(whole.last),
            Some(whole) if request.prompts > 1 => Some(whole.sum.sum()),
            _ => None,
        }
    }

    /// Returns the trusted counts. `running` is the sum of the choices' running counts.
    pub(crate) fn tokens(&self, choices: u32, request: &Request, is_finished: bool, running: u64) -> Tokens {
        let reported = self.reported(choices, request, is_finished);
        let (output_provenance, answer) = match reported.as_ref().and_then(Answer::of) {
            Some(answer) => (Provenance::Reported, answer),
            None => {
                let part = self.partial_usage(request).and_then(|counts| counts.output).unwrap_or(0);
                // In a complete body, the counts of some choices are no running counts. A beam search
                // reports all it returns.
                let is_part = self.is_entire && !request.beam_search;
                let ended = self.choice_sum.as_deref().copied().unwrap_or_default();
                let running = if is_part { part } else { running.max(ended.output).max(part) };
                let reasoning = self.running.as_ref().and_then(|c| c.output_reasoning).unwrap_or(0);
                [
                    (Provenance::Running, running, reasoning.max(ended.reasoning)),
                    (Provenance::Ids, self.ids, self.ids_reasoning),
                    (Provenance::Frames, self.frames, self.frames_reasoning),
                ]
                .into_iter()
                .filter(|(provenance, ..)| *provenance != Provenance::Frames || !self.is_body)
                .find(|&(_, tokens, _)| tokens > 0 && tokens >= self.frames)
                .map_or(
                    (Provenance::None, Answer::default()),
                    |(provenance, output, reasoning)| {
                        (provenance, Answer { output, reasoning, ..Answer::default() })
                    },
                )
            }
        };
        let (input_provenance, prompt) = self.input(reported, request);
        let mut by_type = prompt.by_type();
        let parts = [
            (TokenType::OutputReasoning, answer.reasoning),
            (TokenType::OutputAudio, answer.audio),
            (TokenType::OutputImage, answer.image),
            (TokenType::OutputVideo, answer.video),
        ];
        by_type[TokenType::Output as usize] = split(answer.output, parts, &mut by_type);
        Tokens { input_provenance, output_provenance, by_type }
    }

    /// Returns the trusted counts of a dialect without generated tokens.
    pub(crate) fn prompt(&self) -> Tokens {
        let Some(&Counts { input: Some(input), input_cached, output, .. }) = self.last_whole() else {
            return Tokens::NONE;
        };
        let cached = input_cached.unwrap_or(0).min(input);
        let mut tokens = Tokens {
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
            ..Tokens::NONE
        };
        tokens.by_type[TokenType::Input as usize] = input - cached;
        tokens.by_type[TokenType::InputCached as usize] = cached;
        // A chat answered on a path of embeddings.
        tokens.by_type[TokenType::Output as usize] = output.unwrap_or(0);
        tokens
    }

    /// Returns the billable counts of an answer, and the cached tokens beyond its prompt.
    pub(crate) fn billed(
        &self,
        dialect: Dialect,
        choices: u32,
        request: &Request,
        is_finished: bool,
        running: u64,
    ) -> (Tokens, u64) {
        let tokens = match dialect.generates() {
            true => {
                let tokens = self.tokens(choices, request, is_finished, running);
                if self.is_uncounted(&tokens) { Tokens::NONE } else { tokens }
            }
            false => self.prompt(),
        };
        (tokens, self.cached_excess(choices, request, is_finished))
    }

    /// Returns true if the answer is a body without its length. A usage of the whole without output and
    /// without content belongs to an embedding.
    fn is_uncounted(&self, tokens: &Tokens) -> bool {
        let is_answer = self.frames > 0 || self.is_entire && self.whole.is_none();
        self.is_body && is_answer && tokens.output_provenance == Provenance::None
    }

    /// Returns the cached tokens that exceed the prompt.
    pub(crate) fn cached_excess(&self, choices: u32, request: &Request, is_finished: bool) -> u64 {
        let reported = self.reported(choices, request, is_finished);
        let prompt = match self.input(reported, request) {
            (Provenance::None, _) => self.last_whole().and_then(Prompt::of).unwrap_or_default(),
            (_, prompt) => prompt,
        };
        prompt.cached_excess()
    }

    fn input(&self, reported: Option<Counts>, request: &Request) -> (Provenance, Prompt) {
        if let Some(prompt) = reported.as_ref().and_then(Prompt::of) {
            return (Provenance::Reported, prompt);
        }
        if let Some(prompt) = self.partial_usage(request).as_ref().and_then(Prompt::of) {
            return (Provenance::Running, prompt);
        }
        let listed =
            self.prompts.as_ref().filter(|_| request.prompts > 1).map(|prompts| prompts.sum(request));
        // Every choice shares the one prompt, so one choice's usage has its length. With several prompts, a
        // complete body that does not count each choice counts some of them.
        let is_part = self.is_entire && request.prompts > 1;
        if let Some(sum) = self.choice_sum.as_ref().filter(|sum| sum.input > 0 && !is_part) {
            let provenance = if request.prompts <= 1 { Provenance::Reported } else { Provenance::Running };
            let ended = sum.prompt(request);
            // Of several prompts, some may not have ended.
            return (provenance, listed.filter(|listed| listed.input > ended.input).unwrap_or(ended));
        }
        if let Some(prompt) = listed.filter(|prompt| prompt.input > 0) {
            return (Provenance::Running, prompt);
        }
        if let Some(prompt) = self.running.as_deref().and_then(Prompt::of)
            && prompt.input > 0
        {
            return (Provenance::Running, prompt);
        }
        match request.prompt_ids {
            Some(ids) => (Provenance::Ids, Prompt { input: ids, ..Prompt::default() }),
            None => (Provenance::None, Prompt::default()),
        }
    }

    /// Keeps the prompt of a choice's usage, where the choices may have prompts of their own.
    fn record_prompt(&mut self, choice: u32, counts: &Counts) {
        if choice == 0 && self.prompts.is_none() {
            return;
        }
        // Before a second choice has a usage, the running one belongs to the first.
        let first = self.running.as_deref().and_then(Prompt::of).unwrap_or_default();
        let prompts = self.prompts.get_or_insert_with(|| Box::new(ChoicePrompts::starting_with(first)));
        if let (Some(slot), Some(prompt)) = (prompts.0.get_mut(choice as usize), Prompt::of(counts)) {
            *slot = prompt;
        }
    }

    /// LiteLLM adds a usage of zeros to every frame when none was requested: zero tokens beside content or
    /// token ids are not a count.
    fn is_credible(&self, counts: &Counts) -> bool {
        match counts.output {
            Some(output) => output >= self.frames.min(1) && (output > 0 || self.ids == 0),
            // An answer counted by its prompt only, such as embeddings on a path of chats.
            None => counts.input.is_some(),
        }
    }
}

impl UsageResolver {
    /// Returns true if a count is within the limit; rejects it if not.
    pub(crate) fn accept(&mut self, tokens: u64) -> bool {
        let is_plausible = tokens <= self.max_tokens;
        self.rejected = self.rejected.saturating_add(u32::from(!is_plausible));
        is_plausible
    }

    /// Rejects the counts above the limit.
    pub(crate) fn plausible(&mut self, mut counts: Counts) -> Counts {
        for count in [
            &mut counts.input,
            &mut counts.input_cached,
            &mut counts.input_cache_write,
            &mut counts.input_cache_write_1h,
            &mut counts.input_audio,
            &mut counts.output,
            &mut counts.output_reasoning,
            &mut counts.output_audio,
            &mut counts.input_image,
            &mut counts.input_video,
            &mut counts.output_image,
            &mut counts.output_video,
        ] {
            if count.is_some_and(|tokens| tokens > self.max_tokens) {
                *count = None;
                counts.rejected += 1;
            }
        }
        self.rejected = self.rejected.saturating_add(counts.rejected);
        counts
    }
}

impl WholeUsage {
    /// Returns the usage of all prompts. Several prompts have one usage in all, at the end, or one each (TensorRT-LLM).
    /// Before the end the two cases cannot be distinguished, and some usages are not all.
    fn usage(&self, request: &Request, is_finished: bool) -> Option<Counts> {
        match self.sum.usages {
            _ if request.prompts <= 1 => Some(self.last),
            1 => is_finished.then_some(self.last),
            seen if seen < request.prompts => None,
            seen if seen == request.prompts => Some(self.sum.sum()),
            _ => Some(self.last),
        }
    }
}

impl UsageSum {
    fn add(&mut self, counts: &Counts) {
        let (input, cached) = (counts.input.unwrap_or(0), counts.input_cached.unwrap_or(0));
        self.usages = self.usages.saturating_add(1);
        self.inputs = self.inputs.saturating_add(u32::from(counts.input.is_some()));
        self.outputs = self.outputs.saturating_add(u32::from(counts.output.is_some()));
        self.input = self.input.saturating_add(input);
        self.input_max = self.input_max.max(input);
        self.cached = self.cached.saturating_add(cached);
        self.cached_max = self.cached_max.max(cached);
        self.cache_write_max = self.cache_write_max.max(counts.cache_writes());
        self.cache_write_1h_max = self.cache_write_1h_max.max(counts.input_cache_write_1h.unwrap_or(0));
        self.audio_max = self.audio_max.max(counts.input_audio.unwrap_or(0));
        self.image_max = self.image_max.max(counts.input_image.unwrap_or(0));
        self.video_max = self.video_max.max(counts.input_video.unwrap_or(0));
        self.output = self.output.saturating_add(counts.output.unwrap_or(0));
        self.output_audio = self.output_audio.saturating_add(counts.output_audio.unwrap_or(0));
        self.output_image = self.output_image.saturating_add(counts.output_image.unwrap_or(0));
        self.output_video = self.output_video.saturating_add(counts.output_video.unwrap_or(0));
        self.reasoning = self.reasoning.saturating_add(counts.output_reasoning.unwrap_or(0));
    }

    /// The sum of all usages.
    fn sum(&self) -> Counts {
        Counts {
            input: Some(self.input),
            input_cached: Some(self.cached),
            output: Some(self.output),
            output_reasoning: Some(self.reasoning),
            ..Counts::default()
        }
    }

    /// Returns the prompt and its parts: once for one prompt; for a list, the sum of the usages divided by
    /// the answers for each prompt, but by no more answers than there were: an `n` that only the client
    /// claims must not shorten a prompt. Lists of prompts are text, and no server that takes them reports
    /// cache writes.
    fn prompt(&self, request: &Request) -> Prompt {
        if request.prompts <= 1 {
            return Prompt {
                input: self.input_max,
                cached: self.cached_max,
                cache_write: self.cache_write_max,
                cache_write_1h: self.cache_write_1h_max,
                audio: self.audio_max,
                image: self.image_max,
                video: self.video_max,
            };
        }
        let each = (request.answers / request.prompts).min(self.inputs.div_ceil(request.prompts)).max(1);
        let each = u64::from(each);
        Prompt { input: self.input / each, cached: self.cached / each, ..Prompt::default() }
    }
}

/// Gives each part its count, up to `total`, and returns the rest.
fn split<const N: usize>(
    total: u64,
    parts: [(TokenType, u64); N],
    by_type: &mut [u64; TokenType::ALL.len()],
) -> u64 {
    let mut rest = total;
    for (kind, claimed) in parts {
        by_type[kind as usize] = claimed.min(rest);
        rest -= by_type[kind as usize];
    }
    rest
}
