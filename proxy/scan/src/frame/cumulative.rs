//! SGLang's `/generate`, whose frames repeat all earlier text: the new part of a frame is the difference to
//! the answer's last frame. A server configured to stream increments sends the same keys. A list of ids
//! shorter than the answer's token count identifies it, for the whole stream.

/// Answers whose lengths are kept; the new part of further ones is unknown.
const CHOICES: usize = 8;

/// The lengths of the frames so far.
#[derive(Debug, Default)]
pub(crate) struct Cumulative {
    is_incremental: bool,
    /// Characters and ids of each answer.
    seen: [(u32, u32); CHOICES],
}

impl Cumulative {
    /// Returns the new characters and ids of a frame with `chars` characters and `ids` ids of an answer that
    /// has `total` tokens.
    pub(crate) fn new_in(
        &mut self,
        choice: u32,
        chars: u32,
        ids: Option<u32>,
        total: Option<u64>,
    ) -> (u32, Option<u32>) {
        self.is_incremental |= ids.zip(total).is_some_and(|(ids, total)| u64::from(ids) < total);
        if self.is_incremental {
            return (chars, ids);
        }
        let Some(seen) = usize::try_from(choice).ok().and_then(|at| self.seen.get_mut(at)) else {
            return (chars, None);
        };
        let new = (chars.saturating_sub(seen.0), ids.map(|ids| ids.saturating_sub(seen.1)));
        // A complete stop string is removed again: the maximum is the base of the difference.
        *seen = (chars.max(seen.0), ids.map_or(seen.1, |ids| ids.max(seen.1)));
        new
    }
}
