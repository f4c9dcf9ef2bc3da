//! The numbers of prompts and answers of a request, by the members that the dialects have for them. One
//! table finds all of them, since the body may determine the dialect; a server reads only its own dialect's
//! members. So members of other dialects are ignored: otherwise a client could change its own charge with
//! them.

use crate::dialect::Dialect;
use crate::request::shape::Key;

/// The counts of each member for prompts and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestedCounts {
    lists: [List; LISTS],
    /// Zero if the member is absent or no count.
    answers: [u32; COUNTS],
}

/// A list of prompts, or one prompt of token ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct List {
    prompts: u32,
    ids: u32,
}

/// A member with the number of answers to each prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountMember {
    /// `n`.
    Top,
    /// `n_cmpl`, llama.cpp's other name for it. The larger of both counts.
    Completions,
    /// `sampling_params.n`.
    SamplingParams,
    /// `generationConfig.candidateCount`.
    GenerationConfig,
}

/// The members that may be lists of prompts, and the members with a number of answers.
const LISTS: usize = 3;
const COUNTS: usize = 4;

/// The members of every dialect.
pub(crate) const ALL_LISTS: &[Key] = &[Key::Prompt, Key::Text, Key::InputIds];
/// The members of every dialect.
pub(crate) const ALL_COUNTS: &[CountMember] =
    &[CountMember::Top, CountMember::Completions, CountMember::SamplingParams, CountMember::GenerationConfig];
/// The members of llama.cpp, which also serves OpenAI's dialects.
pub(crate) const TOP_COUNTS: &[CountMember] = &[CountMember::Top, CountMember::Completions];

/// The counts of all members together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountTotals {
    pub(super) prompts: u32,
    pub(super) answers: u32,
    pub(super) prompt_ids: Option<u64>,
}

impl RequestedCounts {
    /// Starts the member `key`. The last of two counts.
    pub(super) fn begin(&mut self, key: Key) {
        if let Some(list) = self.list(key) {
            *list = List::default();
        }
        if key == Key::SamplingParams {
            self.answers[CountMember::SamplingParams as usize] = 0;
        }
    }

    /// Adds an element of the list `key`: a token id, or a prompt.
    pub(super) fn element(&mut self, key: Key, is_id: bool) {
        if let Some(list) = self.list(key) {
            let count = if is_id { &mut list.ids } else { &mut list.prompts };
            *count = count.saturating_add(1);
        }
    }

    /// Sets the number of answers; `None` if the value is not a count.
    pub(super) fn answers(&mut self, member: CountMember, answers: Option<u64>) {
        self.answers[member as usize] = u32::try_from(answers.unwrap_or(0)).unwrap_or(u32::MAX);
    }

    /// The answers requested by `n` or `n_cmpl`; at least one.
    pub(super) fn named_answers(&self) -> u32 {
        TOP_COUNTS.iter().map(|&member| self.answers[member as usize]).fold(1, u32::max)
    }

    /// Returns the counts by the members of `dialect`, or of all dialects if it is unknown.
    pub(super) fn totals(&self, dialect: Option<Dialect>) -> CountTotals {
        let dialect = dialect.unwrap_or(Dialect::Unknown);
        let (lists, counts) = (dialect.prompt_lists(), dialect.answer_counts());
        let lists = || lists.iter().filter_map(|&key| self.lists.get(index(key)?));
        let ids = lists().fold(0, |sum: u64, list| sum + u64::from(list.ids));
        let listed = lists().fold(0, |sum: u32, list| sum.saturating_add(list.prompts));
        // A list with ids is one prompt, even where llama.cpp allows text between them.
        let prompts = if ids > 0 { 1 } else { listed.max(1) };
        let answers = counts.iter().map(|&member| self.answers[member as usize]);
        let each = answers.fold(1, u32::max);
        CountTotals {
            prompts,
            answers: each.saturating_mul(prompts),
            prompt_ids: (ids > 0 && listed == 0).then_some(ids),
        }
    }

    fn list(&mut self, key: Key) -> Option<&mut List> {
        self.lists.get_mut(index(key)?)
    }
}

fn index(key: Key) -> Option<usize> {
    ALL_LISTS.iter().position(|list| *list == key)
}
