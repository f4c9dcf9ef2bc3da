//! Several usages of one answer, or of several answers. A zero stands only where no other usage has a count. The last
//! usage of an answer stands: counts that rise are cumulative, and a repetition changes nothing. Counts that fall are
//! increments if they add up to the last one; if not, the exchange has [`Disagreement::Sequence`], and the last stands.

use scan::{Count, Counts, Request, Side};

use crate::Disagreement;
use crate::limits::{COUNTED_CHOICES, TIMED_CHOICES};
use crate::prompt::Prompt;
use crate::usage_reading::Reading;

/// The usages of one answer, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest {
    pub(crate) counts: Counts,
    pub(crate) disagreement: Option<Disagreement>,
    /// As [`Reading::unnamed`] of the last one.
    pub(crate) unnamed: u64,
    /// The sum of their answers.
    sum: u64,
    /// An answer was shorter than the one before it.
    fell: bool,
}

impl Latest {
    /// Adds a usage. Returns false if it is a placeholder of zeros.
    fn add(&mut self, reading: &Reading) -> bool {
        let is_first = is_placeholder(&self.counts);
        if is_placeholder(&reading.counts) {
            if is_first {
                self.counts = reading.counts;
            }
            return false;
        }
        let (before, now) = (self.counts.or_zero(Count::Output), reading.counts.or_zero(Count::Output));
        self.fell |= now > 0 && now < before;
        self.sum = self.sum.saturating_add(now);
        self.counts = over(&reading.counts, &self.counts);
        self.disagreement = reading.disagreement;
        self.unnamed = reading.unnamed;
        true
    }

    /// Returns the disagreement of the last usage, or of all with one another.
    fn disagreement(&self) -> Option<Disagreement> {
        let last = self.counts.or_zero(Count::Output);
        let is_sum = self.sum.saturating_sub(last) == last;
        self.disagreement.or((self.fell && !is_sum).then_some(Disagreement::Sequence))
    }
}

/// Usages that name no answer, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageList {
    pub(crate) latest: Latest,
    all: UsageSum,
    /// Without those that equal the one before them.
    once: UsageSum,
    /// Number of repetitions of the last one.
    repeats: u32,
    /// The first disagreement of any.
    disagreement: Option<Disagreement>,
}

impl UsageList {
    pub(crate) fn add(&mut self, reading: &Reading) {
        let last = self.latest.counts;
        if self.latest.add(reading) {
            self.all.add(&reading.counts);
            if self.all.usages == 1 || reading.counts != last {
                self.once.add(&reading.counts);
                self.repeats = 0;
            } else {
                self.repeats += 1;
            }
            self.disagreement = self.disagreement.or(reading.disagreement);
        }
    }

    /// Returns the usage of all prompts. Several prompts have one usage in all, at the end, or one each (TensorRT-LLM).
    /// Before the end the two cases cannot be distinguished, and some usages are not all.
    pub(crate) fn whole(&self, request: &Request, is_finished: bool) -> Option<Counts> {
        let last = self.latest.counts;
        let output = last.or_zero(Count::Output);
        let is_total = self.once.output().saturating_sub(output) == output;
        match self.all.usages {
            _ if request.prompts <= 1 => Some(last),
            0 | 1 => is_finished.then_some(last),
            seen if seen < request.prompts => None,
            seen if seen == request.prompts => Some(self.all.sum()),
            _ if self.once.usages == request.prompts => Some(self.once.sum()),
            _ if is_total => Some(last),
            seen if self.latest.fell && seen.is_multiple_of(request.prompts) => {
                Some(self.all.share(request.prompts).sum())
            }
            _ => Some(last),
        }
    }

    /// Returns the sum of all usages.
    pub(crate) fn sum(&self) -> Counts {
        self.all.sum()
    }

    /// Returns the sum of the usages of `expected` answers, of which some may be repeated.
    fn of_answers(&self, expected: u32) -> UsageSum {
        match self.all.usages {
            // Zeros, if there is nothing else.
            0 => UsageSum::of(&self.latest.counts),
            seen if seen <= expected => self.all,
            _ if self.once.usages == expected => self.once,
            seen if seen - expected <= self.repeats => {
                let excess = UsageSum::of(&self.latest.counts).share(seen - expected);
                self.all.less(&excess)
            }
            seen if seen.is_multiple_of(expected) || self.once.usages < expected => self.all.share(expected),
            _ => self.once,
        }
    }

    /// Returns the disagreement of usages of which each covers `prompts`.
    pub(crate) fn disagreement(&self, prompts: u32) -> Option<Disagreement> {
        if prompts > 1 { self.disagreement } else { self.latest.disagreement() }
    }
}

/// The usages of one choice each.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChoiceUsages {
    /// Those that name a choice below [`COUNTED_CHOICES`].
    named: Vec<(u32, Latest)>,
    /// The others.
    unnamed: Option<UsageList>,
}

impl ChoiceUsages {
    pub(crate) fn add(&mut self, choice: Option<u32>, reading: &Reading) {
        let Some(choice) = choice.filter(|&choice| (choice as usize) < COUNTED_CHOICES) else {
            return self.unnamed.get_or_insert_default().add(reading);
        };
        let at = self.named.iter().position(|(named, _)| *named == choice).unwrap_or_else(|| {
            self.named.push((choice, Latest::default()));
            self.named.len() - 1
        });
        self.named[at].1.add(reading);
    }

    /// Returns the sum over the answers, of which there are `expected`.
    pub(crate) fn sum(&self, expected: u32) -> UsageSum {
        let mut sum = UsageSum::default();
        if let (0 | 1, [(_, named)], Some(unnamed)) = (expected, &*self.named, &self.unnamed) {
            // Both count the one answer.
            let (one, other) = (&named.counts, &unnamed.latest.counts);
            let is_later = other.get(Count::Output) >= one.get(Count::Output);
            sum.add(&if is_later { over(other, one) } else { over(one, other) });
            return sum;
        }
        let named = || self.named.iter().map(|(_, latest)| &latest.counts);
        named().filter(|counts| !is_placeholder(counts)).for_each(|counts| sum.add(counts));
        match &self.unnamed {
            Some(unnamed) if expected <= 1 => sum.add(&unnamed.latest.counts),
            Some(unnamed) if sum.usages < expected => sum.merge(&unnamed.of_answers(expected - sum.usages)),
            _ => {}
        }
        let missing = expected.max(1).saturating_sub(sum.usages) as usize;
        named().filter(|counts| is_placeholder(counts)).take(missing).for_each(|counts| sum.add(counts));
        sum
    }

    pub(crate) fn disagreement(&self) -> Option<Disagreement> {
        let named = self.named.iter().filter_map(|(_, latest)| latest.disagreement());
        named.chain(self.unnamed.iter().filter_map(|unnamed| unnamed.disagreement)).min()
    }

    /// Returns the sum of all counts, those that were replaced included.
    pub(crate) fn said(&self) -> u64 {
        let named = self.named.iter().map(|(_, latest)| latest.sum);
        named.chain(self.unnamed.iter().map(|unnamed| unnamed.latest.sum)).fold(0, u64::saturating_add)
    }

    /// As [`Reading::unnamed`] of the last usage of each answer.
    pub(crate) fn unnamed_tokens(&self) -> u64 {
        let unnamed = self.unnamed.iter().map(|unnamed| &unnamed.latest);
        let latest = self.named.iter().map(|(_, latest)| latest).chain(unnamed);
        latest.fold(0, |sum, latest| sum.saturating_add(latest.unnamed))
    }
}

/// The running usages of all choices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningUsage {
    /// The last one. The meter keeps its output per choice; the rest describes the prompt.
    pub(crate) counts: Counts,
    pub(crate) disagreement: Option<Disagreement>,
    /// The last output of each timed choice.
    outputs: [u64; TIMED_CHOICES],
    /// The sum of all outputs.
    pub(crate) sum: u64,
    /// Some output exceeds the one before it.
    rose: bool,
    /// Some output is lower than the one before it.
    fell: bool,
}

impl RunningUsage {
    pub(crate) fn add(&mut self, choice: u32, reading: &Reading) {
        self.counts = over(&reading.counts, &self.counts);
        self.disagreement = reading.disagreement;
        let Some(last) = self.outputs.get_mut(choice as usize) else { return };
        if let Some(output @ 1..) = reading.counts.get(Count::Output) {
            self.rose |= *last > 0 && output > *last;
            self.fell |= output < *last;
            self.sum = self.sum.saturating_add(output);
            *last = output;
        }
    }

    /// Returns true if a count was said.
    pub(crate) fn has_output(&self) -> bool {
        self.sum > 0
    }

    /// Returns true if the counts contradict the `output` at the end of an answer of `frames` frames with content.
    /// `before` is the sum of all counts before the end, `running` that of each choice's highest.
    pub(crate) fn contradicts(&self, output: u64, before: u64, running: u64, frames: u64) -> bool {
        let is_constant = !self.rose && !self.fell && before > output && frames > output;
        (self.fell || running > output || is_constant) && before != output
    }

    /// Returns true if the counts contradict one another.
    pub(crate) fn is_contradictory(&self) -> bool {
        self.fell
    }
}

/// Returns `later`, with the prompt and the answer of `earlier` where `later` has none.
pub(crate) fn over(later: &Counts, earlier: &Counts) -> Counts {
    let mut counts = over_prompt(later, earlier);
    if later.or_zero(Count::Output) == 0 && earlier.or_zero(Count::Output) > 0 {
        counts.copy(Side::Answer, earlier);
    }
    counts
}

/// Returns `later`, with the prompt of `earlier` if `later` has none.
pub(crate) fn over_prompt(later: &Counts, earlier: &Counts) -> Counts {
    let mut counts = *later;
    if later.or_zero(Count::Input) == 0 && earlier.or_zero(Count::Input) > 0 {
        counts.copy(Side::Prompt, earlier);
        for used in [Count::InputUsed, Count::OutputUsed] {
            counts.set(used, earlier.get(used));
        }
    }
    counts
}

/// Returns true if no count is above zero: LiteLLM and Ollama write a usage of zeros into each frame.
fn is_placeholder(counts: &Counts) -> bool {
    let wholes = [Count::Input, Count::InputCached, Count::Output, Count::OutputReasoning];
    wholes.into_iter().all(|count| counts.or_zero(count) == 0)
}

/// The sum of several usages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsageSum {
    pub(crate) usages: u32,
    /// Usages that have a prompt length, and those that have an answer length.
    pub(crate) inputs: u32,
    pub(crate) outputs: u32,
    /// The sums of all prompts, and of their cached tokens.
    pub(crate) input: u64,
    cached: u64,
    /// The largest of each count of the prompt, and the sum of each count of the answer.
    numbers: Counts,
}

impl UsageSum {
    /// Returns the sum of one usage.
    fn of(counts: &Counts) -> Self {
        Self {
            usages: 1,
            inputs: u32::from(counts.get(Count::Input).is_some()),
            outputs: u32::from(counts.get(Count::Output).is_some()),
            input: counts.or_zero(Count::Input),
            cached: counts.or_zero(Count::InputCached),
            numbers: counts.with(Count::InputCacheWrite, counts.cache_writes()),
        }
    }

    /// Adds a usage.
    fn add(&mut self, counts: &Counts) {
        self.merge(&Self::of(counts));
    }

    /// Adds the usages of `other`.
    fn merge(&mut self, other: &Self) {
        self.usages = self.usages.saturating_add(other.usages);
        self.inputs = self.inputs.saturating_add(other.inputs);
        self.outputs = self.outputs.saturating_add(other.outputs);
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.numbers.join(Side::Prompt, &other.numbers, u64::max);
        self.numbers.join(Side::Answer, &other.numbers, u64::saturating_add);
    }

    /// Returns the sum without the usages of `other`, which are among them.
    fn less(mut self, other: &Self) -> Self {
        self.usages -= other.usages;
        self.inputs = self.inputs.saturating_sub(other.inputs);
        self.outputs = self.outputs.saturating_sub(other.outputs);
        self.input = self.input.saturating_sub(other.input);
        self.cached = self.cached.saturating_sub(other.cached);
        self.numbers.join(Side::Answer, &other.numbers, u64::saturating_sub);
        self
    }

    /// Returns the sum of `usages` of them, if each is repeated equally often.
    fn share(mut self, usages: u32) -> Self {
        let seen = u128::from(self.usages.max(1));
        let part =
            |count: u64| u64::try_from(u128::from(count) * u128::from(usages) / seen).unwrap_or(u64::MAX);
        self.numbers.join(Side::Answer, &Counts::default(), |tokens, _| part(tokens));
        let (input, cached) = (part(self.input), part(self.cached));
        let part = |count: u32| u32::try_from(part(count.into())).unwrap_or(u32::MAX);
        Self { usages, inputs: part(self.inputs), outputs: part(self.outputs), input, cached, ..self }
    }

    /// Returns the tokens of all answers.
    pub(crate) fn output(&self) -> u64 {
        self.numbers.or_zero(Count::Output)
    }

    /// Returns the tokens of all answers that were spent on reasoning.
    pub(crate) fn reasoning(&self) -> u64 {
        self.numbers.or_zero(Count::OutputReasoning)
    }

    /// Returns the counts of answers that have a usage each.
    pub(crate) fn counts(&self, request: &Request) -> Counts {
        let mut counts = Counts::default();
        counts.copy(Side::Prompt, &self.prompt(request).0);
        counts.copy(Side::Answer, &self.numbers);
        if self.inputs == 0 {
            counts.set(Count::Input, None);
        }
        if self.outputs != self.usages {
            counts.set(Count::Output, None);
        }
        counts
    }

    /// Returns the lengths of the sum.
    fn sum(&self) -> Counts {
        Prompt::text(self.input, self.cached)
            .0
            .with(Count::Output, self.output())
            .with(Count::OutputReasoning, self.reasoning())
    }

    /// Returns the prompt and its parts: once for one prompt; for a list, the sum of the usages divided by
    /// the answers for each prompt, but by no more answers than there were: an `n` that only the client
    /// claims must not shorten a prompt. Lists of prompts are text, and no server that takes them reports
    /// cache writes.
    pub(crate) fn prompt(&self, request: &Request) -> Prompt {
        if request.prompts <= 1 {
            return Prompt(self.numbers);
        }
        let each = (request.answers / request.prompts).min(self.inputs.div_ceil(request.prompts)).max(1);
        let each = u64::from(each);
        Prompt::text(self.input / each, self.cached / each)
    }
}
