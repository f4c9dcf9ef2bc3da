//! The check of one reply: parses its head, decodes its chunks, and compares every byte of its body with the mock's. A
//! proxy may frame the body differently; it must not change it.

use crate::rewritten::Rewritten;
use crate::wire::{self, Ask, Frames};

/// Maximum bytes of a head.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// One reply while it is received.
pub(crate) struct Reply<'a> {
    ask: Ask,
    frames: &'a Frames,
    /// The next expected byte: the frame and the position in it.
    frame: u64,
    seen: usize,
    /// The stamp of the current frame.
    stamp: [u8; 5],
    head: Vec<u8>,
    state: State,
    /// The check that replaces the comparison of every byte; `None` to compare.
    rewritten: Option<Rewritten>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// A body with a length: the remaining bytes.
    Rest(usize),
    /// A chunk's size so far; true if it is complete and the line end is next.
    Size(usize, bool),
    /// The remaining bytes of a chunk.
    Chunk(usize),
    /// The line end after a chunk.
    ChunkEnd,
    /// The line that ends the last chunk, and the bytes of it so far.
    Last(usize),
    Whole,
}

/// The error of a reply.
pub(crate) type Wrong = String;

impl<'a> Reply<'a> {
    /// The reply to `ask` before its first byte.
    pub(crate) fn new(ask: Ask, frames: &'a Frames) -> Self {
        Self {
            ask,
            frames,
            frame: 0,
            seen: 0,
            stamp: [0; 5],
            head: Vec::new(),
            state: State::Head,
            rewritten: None,
        }
    }

    /// A reply that a proxy writes anew.
    pub(crate) fn rewritten(ask: Ask, frames: &'a Frames) -> Self {
        Self { rewritten: Some(Rewritten::new(ask)), ..Self::new(ask, frames) }
    }

    /// Returns true once the reply is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// Whole frames so far.
    pub(crate) fn frames(&self) -> u64 {
        self.frame
    }

    /// Processes bytes read at `now`; calls `aged` with each text frame's age when it is whole.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        now: u32,
        mut aged: impl FnMut(u32),
    ) -> Result<(), Wrong> {
        while let Some(&first) = bytes.first() {
            let taken = match self.state {
                State::Head => self.take_head(bytes)?,
                State::Rest(left) => {
                    let taken = left.min(bytes.len());
                    self.body(&bytes[..taken], now, &mut aged)?;
                    self.state = if taken == left { self.end()? } else { State::Rest(left - taken) };
                    taken
                }
                State::Size(size, over) => {
                    self.state = match first {
                        b'\n' if size == 0 => State::Last(0),
                        b'\n' => State::Chunk(size),
                        _ if over => State::Size(size, true),
                        digit => match (digit as char).to_digit(16) {
                            Some(digit) if size < 1 << 32 => State::Size(size * 16 + digit as usize, false),
                            // A carriage return or an extension.
                            _ => State::Size(size, true),
                        },
                    };
                    1
                }
                State::Chunk(left) => {
                    let taken = left.min(bytes.len());
                    self.body(&bytes[..taken], now, &mut aged)?;
                    self.state = if taken == left { State::ChunkEnd } else { State::Chunk(left - taken) };
                    taken
                }
                State::ChunkEnd => {
                    if first == b'\n' {
                        self.state = State::Size(0, false);
                    } else if first != b'\r' {
                        return Err("a chunk is longer than it says".into());
                    }
                    1
                }
                State::Last(seen) => {
                    if first != b"\r\n"[seen] {
                        return Err("trailers nobody sent".into());
                    }
                    self.state = if seen == 1 { self.end()? } else { State::Last(seen + 1) };
                    1
                }
                State::Whole => return Err("bytes after the end".into()),
            };
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let Some(at) = memchr::memmem::find(&self.head[from..], b"\r\n\r\n") else {
            return if self.head.len() > MAX_HEAD_BYTES {
                Err("a head without end".into())
            } else {
                Ok(bytes.len())
            };
        };
        self.head.truncate(from + at + 4);
        let taken = self.head.len() - before;
        let head = String::from_utf8_lossy(&self.head).to_ascii_lowercase();
        if head.split(' ').nth(1) != Some("200") {
            return Err(format!("answered {}", head.lines().next().unwrap_or_default()));
        }
        let field = |name: &str| {
            head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
        };
        self.state = match (field("transfer-encoding").as_deref(), field("content-length")) {
            (Some("chunked"), None) => State::Size(0, false),
            (None, Some(length)) => State::Rest(length.parse().map_err(|_| "a length that is none")?),
            _ => return Err("neither chunked nor with a length".into()),
        };
        Ok(taken)
    }

    /// Compares bytes with the expected ones.
    fn body(&mut self, mut bytes: &[u8], now: u32, aged: &mut impl FnMut(u32)) -> Result<(), Wrong> {
        if let Some(rewritten) = &mut self.rewritten {
            rewritten.feed(bytes, now, self.frames, aged)?;
            self.frame = rewritten.texts().into();
            return Ok(());
        }
        while !bytes.is_empty() {
            let (expected, is_text) = self.expected().ok_or("more than was sent")?;
            let taken = (expected.len() - self.seen).min(bytes.len());
            let (from, to) = (self.seen, self.seen + taken);
            if is_text {
                let stamp = self.frames.stamp.clone();
                let same = |a: usize, b: usize| {
                    let (a, b) = (a.clamp(from, to), b.clamp(from, to));
                    bytes[a - from..b - from] == expected[a..b]
                };
                if !same(0, stamp.start) || !same(stamp.end, expected.len()) {
                    return Err(format!("frame {} was changed", self.frame));
                }
                for at in stamp.start.max(from)..stamp.end.min(to) {
                    self.stamp[at - stamp.start] = bytes[at - from];
                }
            } else if bytes[..taken] != expected[from..to] {
                return Err(format!("frame {} was changed", self.frame));
            }
            self.seen = to;
            if to == expected.len() {
                if is_text {
                    aged(wire::age_us(&self.stamp, now).ok_or("a stamp was changed")?);
                }
                self.frame += 1;
                self.seen = 0;
            }
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// The expected frame, and true if it is a text frame.
    fn expected(&self) -> Option<(&'a [u8], bool)> {
        let text = match self.ask {
            Ask::Json => return (self.frame == 0).then_some((wire::JSON_REPLY.as_bytes(), false)),
            Ask::Held => u32::MAX - 3,
            Ask::Stream { text, .. } => text,
        };
        let (finish, done) = (u64::from(text) + 1, u64::from(text) + 2);
        match self.frame {
            0 => Some((&self.frames.role, false)),
            at if at < finish => Some((&self.frames.text, true)),
            at if at == finish => Some((&self.frames.finish, false)),
            at if at == done => Some((&self.frames.done, false)),
            _ => None,
        }
    }

    fn end(&mut self) -> Result<State, Wrong> {
        if let Some(rewritten) = &self.rewritten {
            rewritten.end()?;
            // The number that was sent, whatever number the proxy wrote.
            self.frame = self.ask.frames();
            return Ok(State::Whole);
        }
        if self.frame != self.ask.frames() || self.seen != 0 {
            return Err(format!("ended after {} of {} frames", self.frame, self.ask.frames()));
        }
        Ok(State::Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ask = Ask::Stream { text: 2, pause_us: 0, pad: 0 };

    fn body(frames: &Frames) -> Vec<u8> {
        [&frames.role, &frames.text, &frames.text, &frames.finish, &frames.done]
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    fn chunked(body: &[u8], bytes_a_chunk: usize) -> Vec<u8> {
        let mut reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        body.chunks(bytes_a_chunk).for_each(|part| reply.extend(wire::chunk(part)));
        reply.extend(wire::chunk(b""));
        reply
    }

    fn check(reply: &[u8], bytes_a_read: usize) -> Result<u64, Wrong> {
        let frames = Frames::new(0);
        let mut seen = Reply::new(ASK, &frames);
        let mut aged = 0;
        for read in reply.chunks(bytes_a_read) {
            seen.feed(read, 0, |_| aged += 1)?;
        }
        assert_eq!(seen.is_whole(), seen.frames() == ASK.frames());
        assert_eq!(aged, 2);
        Ok(seen.frames())
    }

    #[test]
    fn whole_reply_passes_in_any_slices_and_framing() {
        let body = String::from_utf8(body(&Frames::new(0))).unwrap().replace("-----", "00000").into_bytes();
        for bytes_a_chunk in [1, 7, 217, 100_000] {
            let reply = chunked(&body, bytes_a_chunk);
            for bytes_a_read in 1..reply.len() {
                assert_eq!(check(&reply, bytes_a_read), Ok(5));
            }
        }
        let mut with_length =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        with_length.extend(&body);
        assert_eq!(check(&with_length, 11), Ok(5));
    }

    #[test]
    fn changed_bytes_lost_frames_and_errors_are_detected() {
        let whole = body(&Frames::new(0));
        for at in (0..whole.len()).step_by(31) {
            let mut changed = whole.clone();
            changed[at] ^= b'"';
            assert!(check(&chunked(&changed, 217), 64).is_err(), "byte {at}");
        }
        let lost = &whole[..whole.len() - 14];
        assert!(check(&chunked(lost, 217), 64).unwrap_err().contains("4 of 5"));
        assert!(check(b"HTTP/1.1 502 Bad Gateway\r\n\r\n", 64).unwrap_err().contains("502"));
    }
}
