//! `gzip` (RFC 1952): a sequence of members, each a header, a deflate stream and a trailer with its checksum
//! and size. Bytes after the last member that do not begin another one are ignored, as gzip(1) and browsers
//! do: some servers pad.

use flate2::{Crc, Decompress};

use crate::deflate::inflate;
use crate::step::Step;

/// Bits of the header's flags (RFC 1952 §2.3.1).
mod flag {
    pub(super) const HEADER_CRC: u8 = 1 << 1;
    pub(super) const EXTRA: u8 = 1 << 2;
    pub(super) const NAME: u8 = 1 << 3;
    pub(super) const COMMENT: u8 = 1 << 4;
    pub(super) const RESERVED: u8 = 0b1110_0000;
}

/// The first bytes of every member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The only compression method that RFC 1952 defines.
const METHOD_DEFLATE: u8 = 8;

/// A `gzip` body.
#[derive(Debug)]
pub(crate) struct Gzip {
    state: State,
    inner: Decompress,
    crc: Crc,
    /// Optional header fields still to be read.
    flags: u8,
    /// True if a member ended before this one.
    later_member: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the ten fixed bytes of a header: bytes read.
    Fixed(u8),
    /// In the length of the extra field: bytes read, value so far.
    ExtraLength(u8, u16),
    /// In the extra field: bytes left.
    Extra(u16),
    /// In the file name, up to a zero byte.
    Name,
    /// In the comment, up to a zero byte.
    Comment,
    /// In the header's checksum: bytes left. It is not verified; the body's is.
    HeaderCrc(u8),
    /// In the deflate stream.
    Body,
    /// In the trailer: bytes read, value so far.
    Trailer(u8, u64),
    /// After the last member.
    Padding,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Fixed(0),
            inner: Decompress::new(false),
            crc: Crc::new(),
            flags: 0,
            later_member: false,
        }
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self.state {
            State::Body => {
                let (step, ended) = inflate(&mut self.inner, input, output);
                self.crc.update(&output[..step.written]);
                if ended {
                    self.state = State::Trailer(0, 0);
                }
                step
            }
            State::Padding => Step::took(input.len()),
            _ => {
                for (index, &byte) in input.iter().enumerate() {
                    match self.next_state(byte) {
                        Some(state) => self.state = state,
                        None => return Step::BROKEN,
                    }
                    if matches!(self.state, State::Body | State::Padding) {
                        return Step::took(index + 1);
                    }
                }
                Step::took(input.len())
            }
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        match self.state {
            State::Padding | State::Fixed(0) => true,
            // The beginning of the magic number is padding until the rest of it comes.
            State::Fixed(1) => self.later_member,
            _ => false,
        }
    }

    /// Returns the state after one byte of a header or trailer; `None` if the byte is invalid there.
    fn next_state(&mut self, byte: u8) -> Option<State> {
        Some(match self.state {
            State::Fixed(seen @ 0..=1) if byte != MAGIC[usize::from(seen)] => {
                return self.later_member.then_some(State::Padding);
            }
            State::Fixed(2) if byte != METHOD_DEFLATE => return None,
            State::Fixed(3) if byte & flag::RESERVED != 0 => return None,
            State::Fixed(seen) => {
                if seen == 3 {
                    self.flags = byte;
                }
                if seen < 9 { State::Fixed(seen + 1) } else { self.next_field() }
            }
            State::ExtraLength(0, _) => State::ExtraLength(1, u16::from(byte)),
            State::ExtraLength(_, low) => match low | u16::from(byte) << 8 {
                0 => self.next_field(),
                length => State::Extra(length),
            },
            State::Extra(left @ 2..) => State::Extra(left - 1),
            State::HeaderCrc(left @ 2..) => State::HeaderCrc(left - 1),
            State::Name | State::Comment if byte != 0 => self.state,
            State::Extra(_) | State::HeaderCrc(_) | State::Name | State::Comment => self.next_field(),
            State::Trailer(seen, value) => {
                let value = value | u64::from(byte) << (8 * seen);
                if seen < 7 {
                    State::Trailer(seen + 1, value)
                } else {
                    return self.next_member(value);
                }
            }
            State::Body | State::Padding => self.state,
        })
    }

    /// Returns the state of the next optional header field, in their order, or of the body.
    fn next_field(&mut self) -> State {
        const ORDER: [(u8, State); 4] = [
            (flag::EXTRA, State::ExtraLength(0, 0)),
            (flag::NAME, State::Name),
            (flag::COMMENT, State::Comment),
            (flag::HEADER_CRC, State::HeaderCrc(2)),
        ];
        for (bit, state) in ORDER {
            if self.flags & bit != 0 {
                self.flags &= !bit;
                return state;
            }
        }
        State::Body
    }

    /// Compares the trailer with the decoded bytes, and prepares for another member.
    fn next_member(&mut self, trailer: u64) -> Option<State> {
        let decoded = u64::from(self.crc.sum()) | u64::from(self.crc.amount()) << 32;
        if decoded != trailer {
            return None;
        }
        self.inner.reset(false);
        self.crc.reset();
        self.later_member = true;
        Some(State::Fixed(0))
    }
}
