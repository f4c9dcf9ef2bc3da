//! The ladder of provenances: what each source says, and which one is believed. A better source
//! replaces a worse one whole. A usage of zero beside content is not believed, and of the other
//! sources none that counts fewer tokens than there were frames with content.
//!
//! An answer that is one body is one frame however long it is, so its frames count nothing. What some of its
//! choices say of themselves is no count of all of them. Where nothing else counts it, it is uncounted, prompt
//! and all, and has no price.

use scan::{Counts, Dialect, Request, Scope, Usage};

use crate::exchange::COUNTED_CHOICES;
use crate::tokens::{Provenance, TokenType, Tokens};

/// What the sources have said so far.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// The most one number may claim; more is refused, as a number that cannot be one.
    most: u64,
    /// The last usage that covers everything.
    whole: Option<Counts>,
    /// TensorRT-LLM sends one for each prompt of a list: their sum, and how many there were.
    wholes: Sum,
    /// Usages that cover one choice each, summed, and how many there were.
    choices: Sum,
    /// The last running usage; its output is kept per choice, the rest is the prompt's.
    running: Option<Counts>,
    /// The prompts as the choices' own usages say them; present as soon as a second choice had one.
    prompts: Option<Box<ChoicePrompts>>,
    /// The answer is one body.
    pub(crate) is_body: bool,
    /// That body is complete: every choice stands in it.
    pub(crate) is_entire: bool,
    /// Numbers refused.
    pub(crate) rejected: u32,
    /// Tokens by ids or log probabilities; of them in reasoning.
    pub(crate) ids: u64,
    pub(crate) ids_reasoning: u64,
    /// Frames with content; of them with reasoning.
    pub(crate) frames: u64,
    pub(crate) frames_reasoning: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    seen: u32,
    /// Of them, those that said how long the prompt was, and how long the answer.
    inputs: u32,
    outputs: u32,
    input: u64,
    input_most: u64,
    cached: u64,
    cached_most: u64,
    written_most: u64,
    heard_most: u64,
    image_most: u64,
    video_most: u64,
    output: u64,
    reasoning: u64,
    spoken: u64,
    output_image: u64,
    output_video: u64,
}

/// What is believed of the prompt. All but `input` are parts of it.
#[derive(Clone, Copy, Debug, Default)]
struct Prompt {
    input: u64,
    cached: u64,
    written: u64,
    heard: u64,
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
    /// Returns the answer in `counts`, if they include its length.
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
    /// Returns the prompt in `counts`, if they include its length.
    fn of(counts: &Counts) -> Option<Self> {
        Some(Self {
            input: counts.input?,
            cached: counts.input_cached.unwrap_or(0),
            written: counts.input_cache_write.unwrap_or(0),
            heard: counts.input_audio.unwrap_or(0),
            image: counts.input_image.unwrap_or(0),
            video: counts.input_video.unwrap_or(0),
        })
    }
}

/// The prompt of each choice; those of higher numbers are not kept.
#[derive(Clone, Copy, Debug)]
struct ChoicePrompts([Prompt; COUNTED_CHOICES]);

impl ChoicePrompts {
    fn beginning(first: Prompt) -> Self {
        let mut prompts = [Prompt::default(); COUNTED_CHOICES];
        prompts[0] = first;
        Self(prompts)
    }

    /// Each prompt of a list once: the answers to one follow each other.
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

impl Ladder {
    /// Nothing said yet; no number may claim more than `most` tokens.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            whole: None,
            wholes: Sum::default(),
            choices: Sum::default(),
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

    /// The server says `usage`; returns what of it can be true.
    pub(crate) fn usage(&mut self, usage: &Usage) -> Counts {
        let counts = self.plausible(usage.counts);
        match usage.scope {
            Scope::Whole => {
                self.whole = Some(counts);
                self.wholes.add(&counts);
            }
            Scope::Running(choice) => {
                self.see_prompt(choice, &counts);
                self.running = Some(counts);
            }
            Scope::Choice(choice) => {
                if let Some(choice) = choice {
                    self.see_prompt(choice, &counts);
                }
                self.choices.add(&counts);
            }
        }
        counts
    }

    /// The whole exchange's usage, if the server has said it and it can be true: for every choice
    /// by one object, or by one object each. `over`: every answer is finished.
    pub(crate) fn reported(&self, choices: u32, request: &Request, over: bool) -> Option<Counts> {
        // vLLM's usage of a beam search counts what it returns, not what the engine computed: 16 tokens
        // out where its counter says 15, 3 in where that says 101.
        if request.beam_search {
            return None;
        }
        let counts = match self.whole {
            Some(last) => self.covering(last, request, over)?,
            None if self.choices.seen > 0 && self.choices.seen >= self.expected(choices, request) => {
                let Prompt { input, cached, written, heard, image, video } = self.choices.prompt(request);
                Counts {
                    input: (self.choices.inputs > 0).then_some(input),
                    input_cached: Some(cached),
                    input_cache_write: Some(written),
                    input_audio: Some(heard),
                    input_image: Some(image),
                    input_video: Some(video),
                    output: (self.choices.outputs == self.choices.seen).then_some(self.choices.output),
                    output_reasoning: Some(self.choices.reasoning),
                    output_audio: Some(self.choices.spoken),
                    output_image: Some(self.choices.output_image),
                    output_video: Some(self.choices.output_video),
                    rejected: 0,
                }
            }
            None => return None,
        };
        self.is_credible(&counts).then_some(counts)
    }

    /// Returns the number of choices that have to be counted. Those of an entire body are all there, whatever the
    /// client asked for.
    fn expected(&self, choices: u32, request: &Request) -> u32 {
        if self.is_entire { choices } else { choices.max(request.answers) }
    }

    /// What the usages of the whole cover. For several prompts there is one in all, at the end, or one
    /// for each (TensorRT-LLM); before the end nobody can tell which, and some of them are not all.
    fn covering(&self, last: Counts, request: &Request, over: bool) -> Option<Counts> {
        match self.wholes.seen {
            _ if request.prompts <= 1 => Some(last),
            1 => over.then_some(last),
            seen if seen < request.prompts => None,
            seen if seen == request.prompts => Some(self.wholes.sum()),
            _ => Some(last),
        }
    }

    /// Of usages that are not believed as the whole: what they count all the same.
    fn part(&self, request: &Request) -> Option<Counts> {
        match self.whole {
            Some(last) if request.beam_search => Some(last),
            Some(_) if request.prompts > 1 => Some(self.wholes.sum()),
            _ => None,
        }
    }

    /// The believed counts. `running` is the sum of the choices' own running counts.
    pub(crate) fn tokens(&self, choices: u32, request: &Request, over: bool, running: u64) -> Tokens {
        let reported = self.reported(choices, request, over);
        let (output_provenance, answer) = match reported.as_ref().and_then(Answer::of) {
            Some(answer) => (Provenance::Reported, answer),
            None => {
                let part = self.part(request).and_then(|counts| counts.output).unwrap_or(0);
                // Of an entire body, the counts of some choices are no running ones; a beam search states all it returns.
                let is_part = self.is_entire && !request.beam_search;
                let running = if is_part { part } else { running.max(self.choices.output).max(part) };
                let reasoning = self.running.and_then(|c| c.output_reasoning).unwrap_or(0);
                [
                    (Provenance::Running, running, reasoning.max(self.choices.reasoning)),
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
        let mut by_type = [0; TokenType::ALL.len()];
        // A part of the audio, images and videos may have come from the cache. No server says which, so the
        // first types here are taken whole.
        let parts = [
            (TokenType::InputCached, prompt.cached),
            (TokenType::InputCacheWrite, prompt.written),
            (TokenType::InputAudio, prompt.heard),
            (TokenType::InputImage, prompt.image),
            (TokenType::InputVideo, prompt.video),
        ];
        by_type[TokenType::Input as usize] = share_out(prompt.input, parts, &mut by_type);
        let parts = [
            (TokenType::OutputReasoning, answer.reasoning),
            (TokenType::OutputAudio, answer.audio),
            (TokenType::OutputImage, answer.image),
            (TokenType::OutputVideo, answer.video),
        ];
        by_type[TokenType::Output as usize] = share_out(answer.output, parts, &mut by_type);
        Tokens { input_provenance, output_provenance, by_type }
    }

    /// The believed counts where there is no answer made of tokens, only a prompt.
    pub(crate) fn prompt(&self) -> Tokens {
        let Some(Counts { input: Some(input), input_cached, output, .. }) = self.whole else {
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
        // A chat that was answered on a path of embeddings.
        tokens.by_type[TokenType::Output as usize] = output.unwrap_or(0);
        tokens
    }

    /// The counts of an answer that may be billed, and the cached tokens beyond its prompt.
    pub(crate) fn billed(
        &self,
        dialect: Dialect,
        choices: u32,
        request: &Request,
        over: bool,
        running: u64,
    ) -> (Tokens, u64) {
        let tokens = match dialect.generates() {
            true => {
                let tokens = self.tokens(choices, request, over, running);
                if self.is_unstated(&tokens) { Tokens::NONE } else { tokens }
            }
            false => self.prompt(),
        };
        (tokens, self.cached_excess(choices, request, over))
    }

    /// Returns whether the answer was one body that says nowhere how long it is. A usage of the whole without
    /// output and without content is one of an embedding.
    fn is_unstated(&self, tokens: &Tokens) -> bool {
        let is_answer = self.frames > 0 || self.is_entire && self.whole.is_none();
        self.is_body && is_answer && tokens.output_provenance == Provenance::None
    }

    /// The cached tokens that the prompt is too short for: SGLang's prefill and decode servers count the
    /// prefix twice. Of them no more than the prompt is counted.
    fn cached_excess(&self, choices: u32, request: &Request, over: bool) -> u64 {
        let reported = self.reported(choices, request, over);
        let prompt = match self.input(reported, request) {
            (Provenance::None, _) => self.whole.as_ref().and_then(Prompt::of).unwrap_or_default(),
            (_, prompt) => prompt,
        };
        prompt.cached.saturating_sub(prompt.input)
    }

    fn input(&self, reported: Option<Counts>, request: &Request) -> (Provenance, Prompt) {
        if let Some(prompt) = reported.as_ref().and_then(Prompt::of) {
            return (Provenance::Reported, prompt);
        }
        if let Some(prompt) = self.part(request).as_ref().and_then(Prompt::of) {
            return (Provenance::Running, prompt);
        }
        let listed =
            self.prompts.as_ref().filter(|_| request.prompts > 1).map(|prompts| prompts.sum(request));
        // Every choice shares the one prompt, so one choice's usage says all about it. Of several prompts, an
        // entire body that does not count each choice counts some.
        let is_part = self.is_entire && request.prompts > 1;
        if self.choices.input > 0 && !is_part {
            let provenance = if request.prompts <= 1 { Provenance::Reported } else { Provenance::Running };
            let ended = self.choices.prompt(request);
            // Of several prompts some may not have ended.
            return (provenance, listed.filter(|listed| listed.input > ended.input).unwrap_or(ended));
        }
        if let Some(prompt) = listed.filter(|prompt| prompt.input > 0) {
            return (Provenance::Running, prompt);
        }
        if let Some(prompt) = self.running.as_ref().and_then(Prompt::of)
            && prompt.input > 0
        {
            return (Provenance::Running, prompt);
        }
        match request.prompt_ids {
            Some(ids) => (Provenance::Ids, Prompt { input: ids, ..Prompt::default() }),
            None => (Provenance::None, Prompt::default()),
        }
    }

    /// Keeps what a choice's usage says of its prompt, where the choices may have prompts of their own.
    fn see_prompt(&mut self, choice: u32, counts: &Counts) {
        if choice == 0 && self.prompts.is_none() {
            return;
        }
        // Until a second choice is counted, what runs is the first.
        let first = self.running.as_ref().and_then(Prompt::of).unwrap_or_default();
        let prompts = self.prompts.get_or_insert_with(|| Box::new(ChoicePrompts::beginning(first)));
        if let (Some(slot), Some(prompt)) = (prompts.0.get_mut(choice as usize), Prompt::of(counts)) {
            *slot = prompt;
        }
    }

    /// LiteLLM puts a usage of zeros on every frame when none was asked for: zero tokens beside
    /// content, or beside token ids, is no count.
    fn is_credible(&self, counts: &Counts) -> bool {
        match counts.output {
            Some(output) => output >= self.frames.min(1) && (output > 0 || self.ids == 0),
            // An answer that is only counted by its prompt, as embeddings on a path of chats.
            None => counts.input.is_some(),
        }
    }
}

impl Ladder {
    /// The counts without those that cannot be one.
    fn plausible(&mut self, mut counts: Counts) -> Counts {
        for count in [
            &mut counts.input,
            &mut counts.input_cached,
            &mut counts.input_cache_write,
            &mut counts.input_audio,
            &mut counts.output,
            &mut counts.output_reasoning,
            &mut counts.output_audio,
            &mut counts.input_image,
            &mut counts.input_video,
            &mut counts.output_image,
            &mut counts.output_video,
        ] {
            if count.is_some_and(|tokens| tokens > self.most) {
                *count = None;
                counts.rejected += 1;
            }
        }
        self.rejected = self.rejected.saturating_add(counts.rejected);
        counts
    }
}

impl Sum {
    fn add(&mut self, counts: &Counts) {
        let (input, cached) = (counts.input.unwrap_or(0), counts.input_cached.unwrap_or(0));
        self.seen = self.seen.saturating_add(1);
        self.inputs = self.inputs.saturating_add(u32::from(counts.input.is_some()));
        self.outputs = self.outputs.saturating_add(u32::from(counts.output.is_some()));
        self.input = self.input.saturating_add(input);
        self.input_most = self.input_most.max(input);
        self.cached = self.cached.saturating_add(cached);
        self.cached_most = self.cached_most.max(cached);
        self.written_most = self.written_most.max(counts.input_cache_write.unwrap_or(0));
        self.heard_most = self.heard_most.max(counts.input_audio.unwrap_or(0));
        self.image_most = self.image_most.max(counts.input_image.unwrap_or(0));
        self.video_most = self.video_most.max(counts.input_video.unwrap_or(0));
        self.output = self.output.saturating_add(counts.output.unwrap_or(0));
        self.spoken = self.spoken.saturating_add(counts.output_audio.unwrap_or(0));
        self.output_image = self.output_image.saturating_add(counts.output_image.unwrap_or(0));
        self.output_video = self.output_video.saturating_add(counts.output_video.unwrap_or(0));
        self.reasoning = self.reasoning.saturating_add(counts.output_reasoning.unwrap_or(0));
    }

    /// All of them together.
    fn sum(&self) -> Counts {
        Counts {
            input: Some(self.input),
            input_cached: Some(self.cached),
            output: Some(self.output),
            output_reasoning: Some(self.reasoning),
            ..Counts::default()
        }
    }

    /// The prompt's tokens and the parts of them: once for one prompt, and for a list of prompts the
    /// sum over the usages less the repetition for each of `n` answers, as far as there was one: what
    /// only the client says of `n` makes no prompt shorter. Prompts that come in lists are text, and who
    /// takes lists says nothing of writing to a cache.
    fn prompt(&self, request: &Request) -> Prompt {
        if request.prompts <= 1 {
            return Prompt {
                input: self.input_most,
                cached: self.cached_most,
                written: self.written_most,
                heard: self.heard_most,
                image: self.image_most,
                video: self.video_most,
            };
        }
        let each = (request.answers / request.prompts).min(self.inputs.div_ceil(request.prompts)).max(1);
        let each = u64::from(each);
        Prompt { input: self.input / each, cached: self.cached / each, ..Prompt::default() }
    }
}

/// Gives each part its claim as far as `total` reaches, and returns the rest.
fn share_out<const N: usize>(
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
