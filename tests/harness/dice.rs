//! Choices from bytes: the only source of randomness of the harness, so that a property test or a fuzzer, which
//! supplies the bytes, can replay and shrink.

/// A source of choices; after the last byte, every choice is the first.
#[derive(Debug)]
pub struct Dice<'a> {
    bytes: &'a [u8],
}

impl<'a> Dice<'a> {
    /// Takes its choices from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        let take = if n > 256 { 2 } else { 1 };
        let mut value = 0;
        for _ in 0..take {
            let Some((&first, rest)) = self.bytes.split_first() else { break };
            self.bytes = rest;
            value = value << 8 | usize::from(first);
        }
        value % n.max(1)
    }

    /// One of `list`.
    pub fn of<'b, T>(&mut self, list: &'b [T]) -> &'b T {
        &list[self.below(list.len())]
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// Returns true if bytes are left.
    pub fn is_spent(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Cuts a body into slices.
    pub fn slices<'b>(&mut self, mut body: &'b [u8]) -> Vec<&'b [u8]> {
        let mut slices = Vec::new();
        while !body.is_empty() {
            let most = *self.of(&[1, 3, 17, 100, 1000]);
            let at = if self.is_spent() { body.len() } else { (1 + self.below(most)).min(body.len()) };
            let (slice, rest) = body.split_at(at);
            slices.push(slice);
            body = rest;
        }
        slices
    }
}
