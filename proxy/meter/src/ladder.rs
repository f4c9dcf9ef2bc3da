//! The ladder of provenances: what each source says, and which one is believed. A better source
//! replaces a worse one whole. A usage of zero beside content is not believed, and of the other
//! sources none that counts fewer tokens than there were frames with content.

use scan::{Counts, Request, Scope, Usage};

use crate::tokens::{Provenance, TokenType, Tokens};

/// What the sources have said so far.
#[derive(Clone, Copy, Debug)]
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
    /// Of them, those that said how long the prompt was.
    inputs: u32,
    input: u64,
    input_most: u64,
    cached: u64,
    cached_most: u64,
    written_most: u64,
    heard_most: u64,
    output: u64,
    reasoning: u64,
    spoken: u64,
}

/// What is believed of the prompt. All but `input` are parts of it.
#[derive(Clone, Copy, Debug, Default)]
struct Prompt {
    input: u64,
    cached: u64,
    written: u64,
    heard: u64,
}

impl Prompt {
    /// What `counts` say of it, if they say how long it was.
    fn of(counts: &Counts) -> Option<Self> {
        Some(Self {
            input: counts.input?,
            cached: counts.input_cached.unwrap_or(0),
            written: counts.input_cache_write.unwrap_or(0),
            heard: counts.input_audio.unwrap_or(0),
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
            Scope::Running(_) => self.running = Some(counts),
            Scope::Choice(_) => self.choices.add(&counts),
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
            None if self.choices.seen > 0 && self.choices.seen >= choices.max(request.answers) => {
                let Prompt { input, cached, written, heard } = self.choices.prompt(request);
                Counts {
                    input: (self.choices.inputs > 0).then_some(input),
                    input_cached: Some(cached),
                    input_cache_write: Some(written),
                    input_audio: Some(heard),
                    output: Some(self.choices.output),
                    output_reasoning: Some(self.choices.reasoning),
                    output_audio: Some(self.choices.spoken),
                    rejected: 0,
                }
            }
            None => return None,
        };
        self.is_credible(&counts).then_some(counts)
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
        let (output_provenance, output, reasoning, audio) = match reported {
            Some(Counts { output: Some(output), output_reasoning, output_audio, .. }) => {
                (Provenance::Reported, output, output_reasoning.unwrap_or(0), output_audio.unwrap_or(0))
            }
            _ => {
                let part = self.part(request).and_then(|counts| counts.output).unwrap_or(0);
                let running = running.max(self.choices.output).max(part);
                let reasoning = self.running.and_then(|c| c.output_reasoning).unwrap_or(0);
                [
                    (Provenance::Running, running, reasoning.max(self.choices.reasoning)),
                    (Provenance::Ids, self.ids, self.ids_reasoning),
                    (Provenance::Frames, self.frames, self.frames_reasoning),
                ]
                .into_iter()
                .find(|&(_, tokens, _)| tokens > 0 && tokens >= self.frames)
                .map_or((Provenance::None, 0, 0, 0), |(provenance, n, reasoning)| {
                    (provenance, n, reasoning, 0)
                })
            }
        };
        let (input_provenance, Prompt { input, cached, written, heard }) = self.input(reported, request);
        let cached = cached.min(input);
        let written = written.min(input - cached);
        // Of what was heard a part may have come from the cache; nobody says which.
        let heard = heard.min(input - cached - written);
        let reasoning = reasoning.min(output);
        let audio = audio.min(output - reasoning);
        let mut by_type = [0; TokenType::ALL.len()];
        by_type[TokenType::Input as usize] = input - cached - written - heard;
        by_type[TokenType::InputCached as usize] = cached;
        by_type[TokenType::InputCacheWrite as usize] = written;
        by_type[TokenType::InputAudio as usize] = heard;
        by_type[TokenType::Output as usize] = output - reasoning - audio;
        by_type[TokenType::OutputReasoning as usize] = reasoning;
        by_type[TokenType::OutputAudio as usize] = audio;
        Tokens { input_provenance, output_provenance, by_type }
    }

    /// The believed counts where there is no answer made of tokens, only a prompt.
    pub(crate) fn prompt(&self) -> Tokens {
        let Some(Counts { input: Some(input), input_cached, .. }) = self.whole else { return Tokens::NONE };
        let cached = input_cached.unwrap_or(0).min(input);
        let mut tokens = Tokens {
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
            ..Tokens::NONE
        };
        tokens.by_type[TokenType::Input as usize] = input - cached;
        tokens.by_type[TokenType::InputCached as usize] = cached;
        tokens
    }

    fn input(&self, reported: Option<Counts>, request: &Request) -> (Provenance, Prompt) {
        if let Some(prompt) = reported.as_ref().and_then(Prompt::of) {
            return (Provenance::Reported, prompt);
        }
        if let Some(prompt) = self.part(request).as_ref().and_then(Prompt::of) {
            return (Provenance::Running, prompt);
        }
        // Every choice shares the one prompt, so one choice's usage says all about it.
        if self.choices.input > 0 {
            let provenance = if request.prompts <= 1 { Provenance::Reported } else { Provenance::Running };
            return (provenance, self.choices.prompt(request));
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

    /// LiteLLM puts a usage of zeros on every frame when none was asked for: zero tokens beside
    /// content, or beside token ids, is no count.
    fn is_credible(&self, counts: &Counts) -> bool {
        counts.output.is_some_and(|output| output >= self.frames.min(1) && (output > 0 || self.ids == 0))
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
        self.input = self.input.saturating_add(input);
        self.input_most = self.input_most.max(input);
        self.cached = self.cached.saturating_add(cached);
        self.cached_most = self.cached_most.max(cached);
        self.written_most = self.written_most.max(counts.input_cache_write.unwrap_or(0));
        self.heard_most = self.heard_most.max(counts.input_audio.unwrap_or(0));
        self.output = self.output.saturating_add(counts.output.unwrap_or(0));
        self.spoken = self.spoken.saturating_add(counts.output_audio.unwrap_or(0));
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
            };
        }
        let each = (request.answers / request.prompts).min(self.inputs.div_ceil(request.prompts)).max(1);
        let each = u64::from(each);
        Prompt { input: self.input / each, cached: self.cached / each, ..Prompt::default() }
    }
}
