//! Deterministic words: the responses of the simulated model and the prompts of the load driver.
//!
//! A word is a token. Besides plain English the vocabulary has text that careless parsers break on:
//! several scripts, emoji, quotes, backslashes, control characters, and emoji of two tokens,
//! of which the first has no text.
//!
//! The law: [`count`] of [`prompt`] is exactly the requested number of tokens.

use crate::random::SplitMix64;

/// The vocabulary of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lexicon {
    /// ASCII words only: one visible piece of text per token.
    Plain,
    /// Also other scripts, emoji and characters that JSON must escape.
    #[default]
    Mixed,
    /// As `Mixed`, and about one token in six is the first half of an emoji, which counts as a token
    /// and has no text: the numbers of frames and tokens differ.
    Split,
}

/// One token of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id in the simulated vocabulary.
    pub id: u32,
    /// Its visible text, empty if it is withheld or there is none.
    pub text: &'static str,
}

/// The end-of-sequence token: counted, without text.
pub const END: Token = Token { id: 2, text: "" };

/// An endless sequence of tokens.
#[derive(Clone, Debug)]
pub struct Words {
    random: SplitMix64,
    lexicon: Lexicon,
    second_half: Option<Token>,
}

impl Words {
    /// Returns the sequence drawn from `random`.
    pub fn new(random: SplitMix64, lexicon: Lexicon) -> Self {
        Self { random, lexicon, second_half: None }
    }

    /// Returns the next token.
    pub fn draw(&mut self) -> Token {
        if let Some(token) = self.second_half.take() {
            return token;
        }
        if self.lexicon == Lexicon::Split && self.random.below(6) == 0 {
            let index = self.random.below(SPLIT.len() as u64) as usize;
            self.second_half = Some(token(SPLIT_SECOND, SPLIT, index));
            return Token { id: SPLIT_FIRST + index as u32, text: "" };
        }
        let plain = PLAIN.len() as u64;
        let words = match self.lexicon {
            Lexicon::Plain => plain,
            Lexicon::Mixed | Lexicon::Split => plain + MIXED.len() as u64,
        };
        match self.random.below(words) {
            index if index < plain => token(PLAIN_FIRST, PLAIN, index as usize),
            index => token(MIXED_FIRST, MIXED, (index - plain) as usize),
        }
    }
}

/// Returns a prompt of exactly `tokens` tokens by [`count`].
pub fn prompt(seed: u64, tokens: u64) -> String {
    let mut words = Words::new(SplitMix64::new(seed), Lexicon::Plain);
    let mut prompt = String::new();
    for _ in 0..tokens {
        prompt.push_str(words.draw().text);
    }
    // Each word starts with a space; the first needs none.
    prompt.trim_start().to_owned()
}

/// Returns the tokens in `text`: one per word, and one more for each further 16 bytes of a long word.
pub fn count(text: &str) -> u64 {
    text.split_whitespace().map(|word| (word.len() as u64).div_ceil(WORD_TOKEN_BYTES)).sum()
}

fn token(first_id: u32, words: &[&'static str], index: usize) -> Token {
    Token { id: first_id + index as u32, text: words[index] }
}

/// Bytes of a word per token.
const WORD_TOKEN_BYTES: u64 = 16;

const PLAIN_FIRST: u32 = 100;
const MIXED_FIRST: u32 = 500;
const SPLIT_FIRST: u32 = 700;
const SPLIT_SECOND: u32 = 800;

const PLAIN: &[&str] = &[
    " a",
    " about",
    " after",
    " all",
    " and",
    " answer",
    " are",
    " as",
    " at",
    " be",
    " because",
    " before",
    " between",
    " but",
    " by",
    " can",
    " cause",
    " day",
    " each",
    " end",
    " even",
    " first",
    " for",
    " from",
    " has",
    " how",
    " in",
    " into",
    " is",
    " it",
    " large",
    " less",
    " light",
    " long",
    " made",
    " many",
    " more",
    " most",
    " never",
    " night",
    " not",
    " of",
    " often",
    " on",
    " one",
    " or",
    " other",
    " part",
    " people",
    " place",
    " question",
    " rain",
    " reason",
    " river",
    " small",
    " some",
    " still",
    " summer",
    " than",
    " that",
    " the",
    " their",
    " then",
    " there",
    " they",
    " this",
    " through",
    " time",
    " to",
    " two",
    " under",
    " very",
    " water",
    " way",
    " well",
    " when",
    " where",
    " which",
    " while",
    " winter",
    " with",
    " words",
    " work",
    " world",
];

const MIXED: &[&str] = &[
    " café",
    " naïve",
    " über",
    " señor",
    " привет",
    " мир",
    " 今天",
    "天气",
    "很好",
    " 안녕",
    "하세요",
    " नमस्ते",
    " العالم",
    " שלום",
    " 😀",
    "🚀",
    "👩‍💻",
    " \"so\"",
    " \\n",
    "\n",
    "\t",
    " {",
    "}",
    " [DONE]",
    " data:",
    " </b>",
    " €5",
    "\u{1f}",
];

const SPLIT: &[&str] = &["😕", "🦀", "🌍", "𝛑"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_has_the_requested_tokens() {
        for tokens in [0, 1, 2, 17, 1_000] {
            assert_eq!(count(&prompt(9, tokens)), tokens);
        }
        assert_eq!(count(&"x".repeat(33)), 3);
    }

    #[test]
    fn equal_seeds_give_equal_words() {
        let said = |seed| {
            let mut words = Words::new(SplitMix64::new(seed), Lexicon::Split);
            (0..200).map(|_| words.draw()).collect::<Vec<_>>()
        };
        assert_eq!(said(5), said(5));
        assert_ne!(said(5), said(6));
    }

    #[test]
    fn only_the_split_lexicon_has_tokens_without_text() {
        let withheld = |lexicon| {
            let mut words = Words::new(SplitMix64::new(4), lexicon);
            (0..600).filter(|_| words.draw().text.is_empty()).count()
        };
        assert_eq!(withheld(Lexicon::Plain), 0);
        assert_eq!(withheld(Lexicon::Mixed), 0);
        assert!((50..150).contains(&withheld(Lexicon::Split)));
    }

    #[test]
    fn mixed_lexicon_has_multibyte_characters() {
        let mut words = Words::new(SplitMix64::new(4), Lexicon::Mixed);
        assert!((0..100).any(|_| !words.draw().text.is_ascii()));
    }
}
