//! Resolves the token counts of an exchange from their sources, by the order of [`Provenance`]. A better
//! source replaces a worse one completely. A usage of zero beside content is not trusted, nor is any other
//! source that counts fewer tokens than there were frames with content.
//!
//! An unstreamed body is one frame of any length, so its frames are not a count, and the counts of some of
//! its choices are not a count of all. Without another source it is uncounted, including the prompt, and has no
//! price.

use scan::{Count, Counts, Dialect, Request, Scope, Usage};

use crate::Disagreement;
use crate::limits::COUNTED_CHOICES;
use crate::prompt::{Prompt, split};
use crate::tokens::{Provenance, TokenType, Tokens};
use crate::usage_list::{ChoiceUsages, RunningUsage, UsageList, UsageSum, over, over_prompt};
use crate::usage_reading::Reading;

/// The counts of each source so far.
#[derive(Clone, Debug)]
pub(crate) struct UsageResolver {
    /// The limit of one count; a higher one is rejected.
    max_tokens: u64,
    /// The usages of the whole exchange. Boxed like the next two, because most streams have none until their end.
    whole: Option<Box<UsageList>>,
    /// The usages of one choice each.
    each: Option<Box<ChoiceUsages>>,
    /// The running usages.
    running: Option<Box<RunningUsage>>,
    /// The prompts by choice; present once a second choice has a usage.
    prompts: Option<Box<ChoicePrompts>>,
    /// The type of the generated tokens where a usage does not say it; `None` for text.
    pub(crate) generates: Option<TokenType>,
    /// True if the shape of the answer is unknown: its frames do not show how much content it has.
    pub(crate) is_opaque: bool,
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

/// The counts of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved {
    pub(crate) tokens: Tokens,
    /// The cached tokens beyond the prompt.
    pub(crate) cached_excess: u64,
    pub(crate) disagreement: Option<Disagreement>,
}

impl Resolved {
    /// Returns counts with the most important of their disagreements.
    pub(crate) fn new(tokens: Tokens, cached_excess: u64, disagreement: Option<Disagreement>) -> Self {
        let excess = (cached_excess > 0).then_some(Disagreement::CachedExcess);
        Self { tokens, cached_excess, disagreement: disagreement.or(excess) }
    }
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
            output: counts.get(Count::Output)?,
            reasoning: counts.or_zero(Count::OutputReasoning),
            audio: counts.or_zero(Count::OutputAudio),
            image: counts.or_zero(Count::OutputImage),
            video: counts.or_zero(Count::OutputVideo),
        })
    }
}

impl Answer {
    /// Returns the answer with its tokens of this type, if the server said no type of any.
    fn of_type(self, kind: Option<TokenType>) -> Self {
        let rest = self.output.saturating_sub(self.reasoning);
        match kind {
            _ if self.audio + self.image + self.video > 0 => self,
            Some(TokenType::OutputAudio) => Self { audio: rest, ..self },
            Some(TokenType::OutputImage) => Self { image: rest, ..self },
            Some(TokenType::OutputVideo) => Self { video: rest, ..self },
            _ => self,
        }
    }
}

/// The prompt of each choice below [`COUNTED_CHOICES`]: its tokens, and the cached ones of them.
#[derive(Clone, Copy, Debug)]
struct ChoicePrompts([(u64, u64); COUNTED_CHOICES]);

impl ChoicePrompts {
    fn starting_with(first: &Prompt) -> Self {
        let mut prompts = Self([(0, 0); COUNTED_CHOICES]);
        prompts.set(0, first);
        prompts
    }

    fn set(&mut self, choice: u32, prompt: &Prompt) {
        if let Some(slot) = self.0.get_mut(choice as usize) {
            *slot = (prompt.input(), prompt.count(Count::InputCached));
        }
    }

    /// Sums the prompts of a list. The answers to one prompt have adjacent indices, so each prompt counts
    /// once.
    fn sum(&self, request: &Request) -> Prompt {
        let each = (request.answers / request.prompts.max(1)).max(1) as usize;
        let longest =
            self.0.chunks(each).filter_map(|answers| answers.iter().max_by_key(|(input, _)| *input));
        let (input, cached) = longest.fold((0_u64, 0_u64), |sum, (input, cached)| {
            (sum.0.saturating_add(*input), sum.1.saturating_add(*cached))
        });
        Prompt::text(input, cached)
    }
}

impl UsageResolver {
    /// A resolver without counts that rejects any count above `max_tokens`.
    pub(crate) fn new(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            whole: None,
            each: None,
            running: None,
            prompts: None,
            generates: None,
            is_opaque: false,
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

    /// Adds a usage of the server. Returns its plausible counts, its parts inside their wholes.
    pub(crate) fn usage(&mut self, usage: &Usage) -> Counts {
        let reading = Reading::of(self.plausible(usage.counts));
        match usage.scope {
            Scope::Whole => self.whole.get_or_insert_default().add(&reading),
            Scope::Running(choice) => {
                self.record_prompt(choice, &reading.counts);
                self.running.get_or_insert_default().add(choice, &reading);
            }
            Scope::Choice(choice) => {
                if let Some(choice) = choice {
                    self.record_prompt(choice, &reading.counts);
                }
                self.each.get_or_insert_default().add(choice, &reading);
            }
        }
        reading.counts
    }

    /// Returns the trusted usage of the whole exchange: one for all choices, or one for each. `is_finished`:
    /// every answer is finished.
    pub(crate) fn reported(&self, choices: u32, request: &Request, is_finished: bool) -> Option<Counts> {
        // vLLM's usage of a beam search counts what it returns, not what the engine computed: 16 output
        // tokens where its counter has 15, 3 prompt tokens where it has 101.
        if request.beam_search {
            return None;
        }
        let each = self.each.as_ref().and_then(|each| {
            let sum = each.sum(self.expected(choices, request));
            (sum.usages >= self.expected(choices, request)).then(|| sum.counts(request))
        });
        let counts = match &self.whole {
            Some(whole) => {
                let counts = whole.whole(request, is_finished)?;
                each.map_or(counts, |each| over(&counts, &each))
            }
            None => each?,
        };
        let counts = match self.running.as_deref() {
            Some(running) if counts.get(Count::Input) == Some(0) => over_prompt(&counts, &running.counts),
            _ => counts,
        };
        self.is_credible(&counts).then_some(counts)
    }

    /// Returns the number of choices that need a usage. A complete body has all its choices, whatever the
    /// client requested.
    fn expected(&self, choices: u32, request: &Request) -> u32 {
        if self.is_entire { choices } else { choices.max(request.answers) }
    }

    /// Returns the prompt and the answer by what the model used, where the usage counts the invoice.
    pub(crate) fn used(&self) -> [Option<u64>; 2] {
        self.last_whole()
            .map_or([None; 2], |counts| [Count::InputUsed, Count::OutputUsed].map(|used| counts.get(used)))
    }

    /// Returns the last usage of the whole exchange.
    fn last_whole(&self) -> Option<&Counts> {
        self.whole.as_ref().map(|whole| &whole.latest.counts)
    }

    /// Returns the counts of usages that do not cover everything.
    fn partial_usage(&self, request: &Request) -> Option<Counts> {
        match &self.whole {
            Some(whole) if request.beam_search => Some(whole.latest.counts),
            Some(whole) if request.prompts > 1 => Some(whole.sum()),
            _ => None,
        }
    }

    /// Returns the trusted counts, of which `reported` covers everything. `running` is the sum of the choices' running
    /// counts.
    pub(crate) fn tokens(
        &self,
        reported: Option<&Counts>,
        choices: u32,
        request: &Request,
        running: u64,
    ) -> Tokens {
        let (output_provenance, answer) = match reported.and_then(Answer::of) {
            Some(answer) => (Provenance::Reported, answer),
            None => {
                let part = self.partial_usage(request).map_or(0, |counts| counts.or_zero(Count::Output));
                // In a complete body, the counts of some choices are no running counts. A beam search
                // reports all it returns.
                let is_part = self.is_entire && !request.beam_search;
                let ended = self.ended(choices, request).unwrap_or_default();
                let running = if is_part { part } else { running.max(ended.output()).max(part) };
                let reasoning =
                    self.running.as_ref().map_or(0, |running| running.counts.or_zero(Count::OutputReasoning));
                [
                    (Provenance::Running, running, reasoning.max(ended.reasoning())),
                    (Provenance::Ids, self.ids, self.ids_reasoning),
                    (Provenance::Frames, self.frames, self.frames_reasoning),
                ]
                .into_iter()
                .filter(|(provenance, ..)| *provenance != Provenance::Frames || !self.is_body)
                .find(|&(_, tokens, _)| tokens > 0 && (tokens >= self.frames || self.is_opaque))
                .map_or(
                    (Provenance::None, Answer::default()),
                    |(provenance, output, reasoning)| {
                        let parts = match (provenance, self.running.as_deref()) {
                            (Provenance::Running, Some(running)) => {
                                Answer::of(&running.counts).unwrap_or_default()
                            }
                            _ => Answer::default(),
                        };
                        (provenance, Answer { output, reasoning, ..parts })
                    },
                )
            }
        };
        let answer = answer.of_type(self.generates);
        let (input_provenance, prompt) = self.input(reported, choices, request);
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
        let Some((prompt, output)) =
            self.last_whole().and_then(|all| Some((Prompt::of(all)?, all.or_zero(Count::Output))))
        else {
            return Tokens::NONE;
        };
        let mut tokens = Tokens {
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
            by_type: prompt.by_type(),
        };
        // A chat answered on a path of embeddings.
        tokens.by_type[TokenType::Output as usize] = output;
        tokens
    }

    /// Returns the billable counts of an answer.
    pub(crate) fn billed(
        &self,
        dialect: Dialect,
        choices: u32,
        request: &Request,
        is_finished: bool,
        running: u64,
    ) -> Resolved {
        let reported = self.reported(choices, request, is_finished);
        let tokens = match dialect.generates() {
            true => {
                let tokens = self.tokens(reported.as_ref(), choices, request, running);
                if self.is_uncounted(&tokens) { Tokens::NONE } else { tokens }
            }
            false => self.prompt(),
        };
        let disagreement = self.disagreement(&tokens, request, running);
        Resolved::new(tokens, self.cached_excess(reported.as_ref(), choices, request), disagreement)
    }

    /// Returns the contradiction of the usages by which `tokens` were counted.
    fn disagreement(&self, tokens: &Tokens, request: &Request, running: u64) -> Option<Disagreement> {
        let rising = self.running.as_deref();
        match tokens.output_provenance {
            Provenance::Reported => {}
            Provenance::Running => {
                let rising = rising?;
                let fell = rising.is_contradictory().then_some(Disagreement::Sequence);
                return rising.disagreement.or(fell);
            }
            _ => return None,
        }
        let (ends, unnamed) = match (&self.whole, &self.each) {
            (Some(whole), _) => (whole.disagreement(request.prompts), whole.latest.unnamed),
            (None, Some(each)) => (each.disagreement(), each.unnamed_tokens()),
            (None, None) => return None,
        };
        let Some(rising) = rising else { return ends };
        // The total at the end confirms increments before it.
        let before = match (&self.whole, &self.each) {
            (Some(_), Some(each)) => rising.sum.saturating_add(each.said()),
            _ => rising.sum,
        };
        let is_sum = ends == Some(Disagreement::Total) && unnamed > 0 && before == unnamed;
        let contradicts = !is_sum && rising.contradicts(tokens.output(), before, running, self.frames);
        ends.filter(|_| !is_sum).or(contradicts.then_some(Disagreement::Sequence))
    }

    /// Returns the sum of the usages of the choices that ended.
    fn ended(&self, choices: u32, request: &Request) -> Option<UsageSum> {
        self.each.as_ref().map(|each| each.sum(self.expected(choices, request)))
    }

    /// Returns true if the answer is a body without its length. A usage of the whole without output and
    /// without content belongs to an embedding.
    fn is_uncounted(&self, tokens: &Tokens) -> bool {
        let is_answer = self.frames > 0 || self.is_entire && self.whole.is_none();
        self.is_body && is_answer && tokens.output_provenance == Provenance::None
    }

    /// Returns the cached tokens that exceed the prompt.
    pub(crate) fn cached_excess(&self, reported: Option<&Counts>, choices: u32, request: &Request) -> u64 {
        let prompt = match self.input(reported, choices, request) {
            (Provenance::None, _) => self.last_whole().and_then(Prompt::of).unwrap_or_default(),
            (_, prompt) => prompt,
        };
        prompt.cached_excess()
    }

    fn input(&self, reported: Option<&Counts>, choices: u32, request: &Request) -> (Provenance, Prompt) {
        if let Some(prompt) = reported.and_then(Prompt::of) {
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
        if let Some(sum) = self.ended(choices, request).filter(|sum| sum.input > 0 && !is_part) {
            let provenance = if request.prompts <= 1 { Provenance::Reported } else { Provenance::Running };
            let ended = sum.prompt(request);
            // Of several prompts, some may not have ended.
            return (provenance, listed.filter(|listed| listed.input() > ended.input()).unwrap_or(ended));
        }
        if let Some(prompt) = listed.filter(|prompt| prompt.input() > 0) {
            return (Provenance::Running, prompt);
        }
        if let Some(prompt) = self.running.as_deref().and_then(|running| Prompt::of(&running.counts))
            && prompt.input() > 0
        {
            return (Provenance::Running, prompt);
        }
        match request.prompt_ids {
            Some(ids) => (Provenance::Ids, Prompt::text(ids, 0)),
            None => (Provenance::None, Prompt::default()),
        }
    }

    /// Keeps the prompt of a choice's usage, where the choices may have prompts of their own.
    fn record_prompt(&mut self, choice: u32, counts: &Counts) {
        if choice == 0 && self.prompts.is_none() {
            return;
        }
        // Before a second choice has a usage, the running one belongs to the first.
        let first =
            self.running.as_deref().and_then(|running| Prompt::of(&running.counts)).unwrap_or_default();
        let prompts = self.prompts.get_or_insert_with(|| Box::new(ChoicePrompts::starting_with(&first)));
        if let Some(prompt) = Prompt::of(counts) {
            prompts.set(choice, &prompt);
        }
    }

    /// LiteLLM adds a usage of zeros to every frame when none was requested: zero tokens beside content,
    /// token ids or a running count are not a count.
    fn is_credible(&self, counts: &Counts) -> bool {
        let is_counted = || self.running.as_ref().is_some_and(|running| running.has_output());
        match counts.get(Count::Output) {
            Some(output) => output > 0 || self.frames == 0 && self.ids == 0 && !is_counted(),
            // An answer counted by its prompt only, such as embeddings on a path of chats.
            None => counts.get(Count::Input).is_some(),
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
        for count in Count::ALL {
            if counts.or_zero(count) > self.max_tokens {
                counts.set(count, None);
                // A number that is not read claims nothing.
                counts.rejected += u32::from(count != Count::InputBeside);
            }
        }
        self.rejected = self.rejected.saturating_add(counts.rejected);
        counts
    }
}
