//! The progress of the choices: their tokens so far by each source, and the ticks of the first and the last.

use scan::Delta;

use crate::Tick;
use crate::limits::{COUNTED_CHOICES, TIMED_CHOICES};

/// A tick, and how long the client was waited for until then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) at: Tick,
    pub(crate) client_wait_ns: u64,
}

/// The time between two frames with tokens of one choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) ns: u64,
    /// The part in which the server sent nothing: the client's wait is not part of it.
    pub(crate) silent_ns: u64,
}

impl Moment {
    pub(crate) fn since(self, earlier: Self) -> Gap {
        let ns = self.at.since(earlier.at);
        let waited = self.client_wait_ns.saturating_sub(earlier.client_wait_ns);
        Gap { ns, silent_ns: ns.saturating_sub(waited) }
    }
}

/// The progress of all choices.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    first: Track,
    /// Further choices; most exchanges have none.
    more: Option<Box<MoreTracks>>,
    /// Bits of the timed choices with tokens in the current frame.
    in_frame: u8,
    /// The untimed choice with content in the current frame.
    untimed_in_frame: Option<u32>,
    /// Tokens of the timed choices by frame weight.
    timed_weight: u64,
    /// Tokens in all frames so far.
    pub(crate) weight: u64,
    /// Some frame's tokens are an estimate.
    pub(crate) is_inexact: bool,
    /// The last token of any timed choice.
    last: Moment,
}

/// The progress of the choices after the first.
#[derive(Debug, Default)]
struct MoreTracks {
    timed: [Track; TIMED_CHOICES - 1],
    /// Running counts of the untimed choices.
    untimed_running: Option<Box<[u64; COUNTED_CHOICES - TIMED_CHOICES]>>,
}

impl Tracks {
    /// The timed choices.
    pub(crate) fn timed(&self) -> impl Iterator<Item = &Track> {
        std::iter::once(&self.first).chain(self.more.iter().flat_map(|more| &more.timed))
    }

    /// The progress of a timed choice.
    pub(crate) fn of(&mut self, choice: u32) -> Option<&mut Track> {
        match usize::try_from(choice).unwrap_or(usize::MAX) {
            0 => Some(&mut self.first),
            n if n < TIMED_CHOICES => Some(&mut self.more.get_or_insert_default().timed[n - 1]),
            _ => None,
        }
    }

    /// Adds a delta. Returns true if it is the first content of its choice in the current frame.
    pub(crate) fn add(&mut self, delta: Delta, is_content: bool) -> bool {
        let Some(track) = self.of(delta.choice) else { return self.add_untimed(delta, is_content) };
        let is_first = is_content && !track.frame.content;
        track.frame.content |= is_content;
        if let Some(tokens) = delta.tokens {
            track.frame.tokens = Some(track.frame.tokens.unwrap_or(0).saturating_add(tokens));
        }
        self.in_frame |= 1 << delta.choice;
        is_first
    }

    fn add_untimed(&mut self, delta: Delta, is_content: bool) -> bool {
        let is_repeated = self.untimed_in_frame.replace(delta.choice) == Some(delta.choice);
        let is_first = is_content && !is_repeated;
        self.is_inexact |= is_first && delta.tokens.is_none();
        let tokens = u64::from(delta.tokens.unwrap_or(0)).max(u64::from(is_first));
        self.weight = self.weight.saturating_add(tokens);
        is_first
    }

    /// Sets the server's running count of a choice.
    pub(crate) fn count(&mut self, choice: u32, output: u64) {
        if let Some(track) = self.of(choice) {
            track.frame.running = Some(output);
            self.in_frame |= 1 << choice;
        } else if (choice as usize) < COUNTED_CHOICES {
            let more = self.more.get_or_insert_default();
            let counts = more.untimed_running.get_or_insert_with(|| Box::new([0; _]));
            let count = &mut counts[choice as usize - TIMED_CHOICES];
            *count = output.max(*count);
        }
    }

    /// The sum of the running counts.
    pub(crate) fn running(&self) -> u64 {
        let untimed = self.more.iter().flat_map(|more| &more.untimed_running).flat_map(|counts| **counts);
        self.timed().filter_map(|track| track.running).chain(untimed).fold(0, u64::saturating_add)
    }

    /// Ends the frame at `now`. Passes each timed choice with tokens in it to `timed`.
    pub(crate) fn end_frame(&mut self, now: Moment, mut timed: impl FnMut(TokenFrame)) {
        self.untimed_in_frame = None;
        while self.in_frame != 0 {
            let choice = self.in_frame.trailing_zeros();
            self.in_frame &= self.in_frame - 1;
            let Some(frame) = self.of(choice).and_then(|track| track.end_frame(now)) else { continue };
            self.is_inexact |= !frame.is_exact;
            self.weight = self.weight.saturating_add(frame.tokens);
            self.timed_weight = self.timed_weight.saturating_add(frame.tokens);
            self.last = now;
            timed(frame);
        }
    }

    /// Tokens of the first choice by frame weight.
    pub(crate) fn first_weight(&self) -> u64 {
        self.first.weight
    }

    /// The time since the last token of any timed choice, if there was one.
    pub(crate) fn since_last(&self, now: Moment) -> Option<Gap> {
        (self.timed_weight > 0).then(|| now.since(self.last))
    }

    /// Returns the part of `output` that belongs to the timed choices, by their weight.
    pub(crate) fn timed_share(&self, output: u64) -> u64 {
        if self.timed_weight == self.weight {
            return output;
        }
        let share = u128::from(output) * u128::from(self.timed_weight) / u128::from(self.weight);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

/// The progress of one choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// Tick of the first token.
    pub(crate) first: Option<Tick>,
    /// The last token.
    last: Moment,
    /// Tokens by frame weight.
    weight: u64,
    /// The server's own running count.
    running: Option<u64>,
    /// The facts of the current frame about this choice.
    frame: FrameFacts,
}

/// The facts of one frame about one choice.
#[derive(Clone, Copy, Debug, Default)]
struct FrameFacts {
    /// True if it has content.
    content: bool,
    /// Tokens by ids or log probabilities.
    tokens: Option<u32>,
    /// The running count.
    running: Option<u64>,
}

/// A frame with tokens of one choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenFrame {
    /// Their number.
    pub(crate) tokens: u64,
    /// True if the frame itself has the number.
    is_exact: bool,
    /// The gap to the last such frame, if there is one.
    pub(crate) gap: Option<Gap>,
    /// The choice's tokens up to this frame.
    pub(crate) reached: u64,
}

impl Track {
    /// The time from the first to the last token, if there was one.
    pub(crate) fn generation_ns(&self) -> Option<u64> {
        self.first.map(|first| self.last.at.since(first))
    }

    /// Ends the frame for this choice at `now`. Returns its tokens, if any.
    fn end_frame(&mut self, now: Moment) -> Option<TokenFrame> {
        let (tokens, is_exact) = self.tokens_of_frame()?;
        self.weight = self.weight.saturating_add(tokens);
        let gap = self.first.map(|_| now.since(self.last));
        self.first.get_or_insert(now.at);
        self.last = now;
        Some(TokenFrame { tokens, is_exact, gap, reached: self.weight })
    }

    /// Takes the facts of the frame. Returns its tokens, if any, and true if their number is exact.
    fn tokens_of_frame(&mut self) -> Option<(u64, bool)> {
        let mut frame = std::mem::take(&mut self.frame);
        // LiteLLM sends a usage of zeros beside content; a server that counts at all counts content.
        frame.running = frame.running.filter(|&running| running > 0 || !frame.content);
        // A first running count after frames weighed by other means does not describe its own frame:
        // llama.cpp sends one with the finish, for everything before it.
        let late = self.running.is_none() && self.weight > 0;
        let before = self.running.unwrap_or(0);
        self.running = frame.running.map(|running| running.max(before)).or(self.running);
        let (tokens, is_exact) = match (frame.running.filter(|_| !late), frame.tokens) {
            (Some(running), _) => (running.saturating_sub(before), true),
            (None, Some(tokens)) if tokens > 0 => (u64::from(tokens), true),
            (None, _) if frame.content => (1, false),
            _ => return None,
        };
        (tokens > 0).then_some((tokens, is_exact))
    }
}
