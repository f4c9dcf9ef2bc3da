//! The reading of one usage: whether its parts are inside the prompt and the answer or beside them. Servers use the same
//! names for both, so the arithmetic decides, and the server's name does not. Each dialect first adds what its own
//! definition counts apart (Anthropic's and Converse's cache, Gemini's thoughts and tools, the words of a transcription's
//! speaker).
//!
//! I is the prompt, O the answer, R reasoning, C cached and W cache-written tokens, M those of audio, images and videos in
//! the prompt, X those of tools and of unknown names ([`Count::InputBeside`]), T the stated total. The first row that
//! holds decides:
//!
//! | the usage                                    | prompt        | answer                 | disagreement |
//! |----------------------------------------------|---------------|------------------------|--------------|
//! | T = I + O                                    | I             | O, R inside            |              |
//! | T = I + O + R                                | I             | O + R                  |              |
//! | T = I + O + C + W, + C or + W                | I + that sum  | O, R inside            |              |
//! | T = I + O + R + C + W, + R + C or + R + W    | I + that sum  | O + R                  |              |
//! | T = I + O + M                                | I + M         | O, R inside            |              |
//! | T = I + O + R + M                            | I + M         | O + R                  |              |
//! | T = one of these sums + X                    | that row's + X | that row's            |              |
//! | T > I + O, none of these                     | I             | max(O + R, T − I)      | `total`      |
//! | T < I + O                                    | I             | O, R inside            | `total`      |
//! | T absent or zero                             | I             | O, R inside            |              |
//!
//! Where the row leaves a part inside a whole that cannot hold it, the part stands beside the whole and the exchange has
//! the disagreement `part`, whatever T says: R > O gives O + R, W > I gives I + C + W. The audio, images or videos
//! alone make the whole at least as large as they are. C > I leaves the prompt as it is
//! ([`crate::Record::cached_excess`]). So the dearer reading is billed wherever the usage contradicts itself.

use scan::{Count, Counts};

use crate::Disagreement;

/// A usage with its parts inside their wholes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) counts: Counts,
    pub(crate) disagreement: Option<Disagreement>,
    /// The tokens of the answer that only the total has.
    pub(crate) unnamed: u64,
}

impl Reading {
    /// Reads a usage.
    pub(crate) fn of(counts: Counts) -> Self {
        let mut reading = Self { counts, disagreement: None, unnamed: 0 };
        // A rejected number may be any of the parts.
        if counts.rejected == 0 {
            let (prompt, answer) = reading.by_total();
            reading.add(prompt, answer);
            reading.contain_parts();
        }
        reading.counts.set(Count::InputBeside, None);
        reading
    }

    /// Returns the tokens beside the prompt and beside the answer, as the total says.
    fn by_total(&mut self) -> (u64, u64) {
        let counts = &self.counts;
        let sides = (counts.get(Count::Input), counts.get(Count::Total));
        let (Some(input), Some(total @ 1..)) = sides else { return (0, 0) };
        let (cached, written) = (counts.or_zero(Count::InputCached), counts.cache_writes());
        let reasoning = counts.or_zero(Count::OutputReasoning);
        let Some(rest) = total.checked_sub(input.saturating_add(counts.or_zero(Count::Output))) else {
            self.disagreement = Some(Disagreement::Total);
            return (0, 0);
        };
        let media = MEDIA_IN.iter().fold(0, |sum, count| counts.or_zero(*count).saturating_add(sum));
        let both = cached.saturating_add(written);
        // In the order of the table.
        let prompts = [
            (both, 0),
            (cached, 0),
            (written, 0),
            (both, reasoning),
            (cached, reasoning),
            (written, reasoning),
        ];
        let rows =
            [(0, 0), (0, reasoning)].into_iter().chain(prompts).chain([(media, 0), (media, reasoning)]);
        for beside in [0, counts.or_zero(Count::InputBeside)] {
            let is_sum =
                |(prompt, answer): &(u64, u64)| prompt.saturating_add(*answer).saturating_add(beside) == rest;
            if let Some((prompt, answer)) = rows.clone().find(is_sum) {
                return (prompt + beside, answer);
            }
        }
        self.disagreement = Some(Disagreement::Total);
        self.unnamed = rest.saturating_sub(reasoning);
        (0, rest.max(reasoning))
    }

    /// Adds tokens that stand beside the prompt and beside the answer.
    fn add(&mut self, prompt: u64, answer: u64) {
        for (count, beside) in [(Count::Input, prompt), (Count::Output, answer)] {
            self.counts.add(count, Some(beside).filter(|beside| *beside > 0));
        }
    }

    /// Makes each whole large enough for its parts.
    fn contain_parts(&mut self) {
        let before = self.counts;
        let (cached, written) = (before.or_zero(Count::InputCached), before.cache_writes());
        let reasoning = before.or_zero(Count::OutputReasoning);
        for (whole, part, beside, media) in [
            (Count::Input, written, written.saturating_add(cached), MEDIA_IN),
            (Count::Output, reasoning, reasoning, MEDIA_OUT),
        ] {
            let Some(mut tokens) = before.get(whole) else { continue };
            if part > tokens {
                tokens = tokens.saturating_add(beside);
            }
            tokens = media.iter().fold(tokens, |tokens, count| tokens.max(before.or_zero(*count)));
            self.counts.set(whole, tokens);
        }
        if before != self.counts {
            self.disagreement.get_or_insert(Disagreement::Part);
        }
    }
}

/// The tokens of audio, images and videos: in a prompt, and in an answer.
const MEDIA_IN: [Count; 3] = [Count::InputAudio, Count::InputImage, Count::InputVideo];
const MEDIA_OUT: [Count; 3] = [Count::OutputAudio, Count::OutputImage, Count::OutputVideo];
