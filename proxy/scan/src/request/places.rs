//! How many prompts and answers a request asks for, by the places where the dialects say it. One table
//! finds all of them in any request, for its dialect may be told by its body; a server reads only its
//! own dialect's and ignores the others. So nothing is believed of a place that the dialect does not
//! have: a client could write there what it likes, and be charged by it.

use crate::dialect::Dialect;
use crate::request::shape::Key;

/// What each place says of prompts and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    lists: [List; LISTS],
    /// Zero where nothing is said, or nothing that is a count.
    answers: [u32; COUNTS],
}

/// A list of prompts, or one prompt of token ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct List {
    prompts: u32,
    ids: u32,
}

/// A place that says how many answers each prompt is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// `n`.
    Top,
    /// `n_cmpl`, llama.cpp's other name for it. Of both the larger counts.
    Completions,
    /// `sampling_params.n`.
    SamplingParams,
    /// `generationConfig.candidateCount`.
    GenerationConfig,
}

/// Members that may be lists of prompts, and places that say how many answers are wanted.
const LISTS: usize = 3;
const COUNTS: usize = 4;

const ALL_LISTS: &[Key] = &[Key::Prompt, Key::Text, Key::InputIds];
const ALL_COUNTS: &[Count] =
    &[Count::Top, Count::Completions, Count::SamplingParams, Count::GenerationConfig];
/// llama.cpp's, which serves OpenAI's dialects, too.
const TOP_COUNTS: &[Count] = &[Count::Top, Count::Completions];

/// What the places say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) prompts: u32,
    pub(super) answers: u32,
    pub(super) prompt_ids: Option<u64>,
}

impl Places {
    /// The member `key` begins, perhaps for the second time: of two the last counts.
    pub(super) fn begin(&mut self, key: Key) {
        if let Some(list) = self.list(key) {
            *list = List::default();
        }
        if key == Key::SamplingParams {
            self.answers[Count::SamplingParams as usize] = 0;
        }
    }

    /// An element of the list `key`: a token id, or a whole prompt.
    pub(super) fn element(&mut self, key: Key, is_id: bool) {
        if let Some(list) = self.list(key) {
            let count = if is_id { &mut list.ids } else { &mut list.prompts };
            *count = count.saturating_add(1);
        }
    }

    /// So many answers are wanted; `None`: what stands there is no count.
    pub(super) fn answers(&mut self, place: Count, wanted: Option<u64>) {
        self.answers[place as usize] = u32::try_from(wanted.unwrap_or(0)).unwrap_or(u32::MAX);
    }

    /// The answers wanted by `n` or `n_cmpl`; at least one.
    pub(super) fn named_answers(&self) -> u32 {
        TOP_COUNTS.iter().map(|&place| self.answers[place as usize]).fold(1, u32::max)
    }

    /// What the places of `dialect` say; of all dialects, where it is not known.
    pub(super) fn said(&self, dialect: Option<Dialect>) -> Said {
        let (lists, counts) = places(dialect);
        let lists = || lists.iter().filter_map(|&key| self.lists.get(index(key)?));
        let ids = lists().fold(0, |sum: u64, list| sum + u64::from(list.ids));
        let listed = lists().fold(0, |sum: u32, list| sum.saturating_add(list.prompts));
        // A list with ids in it is one prompt, even where llama.cpp lets text stand between them.
        let prompts = if ids > 0 { 1 } else { listed.max(1) };
        let wanted = counts.iter().map(|&place| self.answers[place as usize]);
        let each = wanted.fold(1, u32::max);
        Said {
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

/// Where a dialect may list its prompts, and where it says how many answers each is to have.
fn places(dialect: Option<Dialect>) -> (&'static [Key], &'static [Count]) {
    match dialect {
        None | Some(Dialect::Unknown) => (ALL_LISTS, ALL_COUNTS),
        Some(Dialect::OpenaiChat) => (&[], TOP_COUNTS),
        Some(Dialect::OpenaiCompletions | Dialect::LlamacppCompletion) => (&[Key::Prompt], TOP_COUNTS),
        Some(Dialect::Sglang) => (&[Key::Text, Key::InputIds], &[Count::SamplingParams]),
        Some(Dialect::Lmdeploy) => (&[Key::Prompt, Key::InputIds], &[]),
        Some(Dialect::VllmGenerate) => (&[], &[Count::SamplingParams]),
        Some(Dialect::Gemini) => (&[], &[Count::GenerationConfig]),
        Some(
            Dialect::OpenaiResponses
            | Dialect::Anthropic
            | Dialect::Tgi
            | Dialect::OllamaChat
            | Dialect::OllamaGenerate
            | Dialect::Triton
            | Dialect::Cohere
            | Dialect::Embeddings
            | Dialect::Rerank
            | Dialect::Transcription,
        ) => (&[], &[]),
    }
}
