//! SGLang's `/generate`, whose frames repeat everything said so far: what is new in a frame is the
//! difference to the answer's last frame. A server set to stream increments sends the same keys; a
//! list of ids shorter than the answer's count of tokens gives it away, for the whole stream.

/// Answers whose lengths are remembered; of the others nobody knows what is new.
const CHOICES: usize = 8;

/// What the frames so far have said.
#[derive(Debug, Default)]
pub(crate) struct Cumulative {
    is_incremental: bool,
    /// Characters and ids of each answer.
    seen: [(u32, u32); CHOICES],
}

impl Cumulative {
    /// The new characters and ids of a frame that shows `chars` characters and `ids` ids of an
    /// answer, and says that there are `total` tokens of it.
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
        // A stop string is taken back when it is complete: what follows is measured from the most.
        *seen = (chars.max(seen.0), ids.map_or(seen.1, |ids| ids.max(seen.1)));
        new
    }
}
