//! `gzip` (RFC 1952): members one after the other, each a header, a deflate stream and a trailer with
//! its check sum and size. What follows the last member and is none is ignored, as gzip(1) and
//! browsers do: some servers pad.

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

/// How every member begins.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The only method there is.
const METHOD_DEFLATE: u8 = 8;

/// A `gzip` body.
#[derive(Debug)]
pub(crate) struct Gzip {
    at: At,
    inner: Decompress,
    crc: Crc,
    /// Optional header fields still to come.
    flags: u8,
    /// Whether a member came before this one.
    later_member: bool,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// In the ten bytes every header has; so many were seen.
    Fixed(u8),
    /// In the length of the extra field: its bytes seen, its value so far.
    ExtraLength(u8, u16),
    /// In the extra field: bytes left.
    Extra(u16),
    /// In the name, up to a zero byte.
    Name,
    /// In the comment, up to a zero byte.
    Comment,
    /// In the header's check sum: bytes left. It is not checked; the body's is.
    HeaderCrc(u8),
    /// In the deflate stream.
    Body,
    /// In the trailer: bytes seen, and their value so far.
    Trailer(u8, u64),
    /// After the last member.
    Padding,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Self {
            at: At::Fixed(0),
            inner: Decompress::new(false),
            crc: Crc::new(),
            flags: 0,
            later_member: false,
        }
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self.at {
            At::Body => {
                let (step, ended) = inflate(&mut self.inner, input, output);
                self.crc.update(&output[..step.written]);
                if ended {
                    self.at = At::Trailer(0, 0);
                }
                step
            }
            At::Padding => Step::took(input.len()),
            _ => {
                for (index, &byte) in input.iter().enumerate() {
                    match self.frame(byte) {
                        Some(at) => self.at = at,
                        None => return Step::BROKEN,
                    }
                    if matches!(self.at, At::Body | At::Padding) {
                        return Step::took(index + 1);
                    }
                }
                Step::took(input.len())
            }
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        match self.at {
            At::Padding | At::Fixed(0) => true,
            // The beginning of the magic number is padding until the rest of it comes.
            At::Fixed(1) => self.later_member,
            _ => false,
        }
    }

    /// One byte of a header or a trailer: where it leads, or `None` if it cannot be there.
    fn frame(&mut self, byte: u8) -> Option<At> {
        Some(match self.at {
            At::Fixed(seen @ 0..=1) if byte != MAGIC[usize::from(seen)] => {
                return self.later_member.then_some(At::Padding);
            }
            At::Fixed(2) if byte != METHOD_DEFLATE => return None,
            At::Fixed(3) if byte & flag::RESERVED != 0 => return None,
            At::Fixed(seen) => {
                if seen == 3 {
                    self.flags = byte;
                }
                if seen < 9 { At::Fixed(seen + 1) } else { self.next_field() }
            }
            At::ExtraLength(0, _) => At::ExtraLength(1, u16::from(byte)),
            At::ExtraLength(_, low) => match low | u16::from(byte) << 8 {
                0 => self.next_field(),
                length => At::Extra(length),
            },
            At::Extra(left @ 2..) => At::Extra(left - 1),
            At::HeaderCrc(left @ 2..) => At::HeaderCrc(left - 1),
            At::Name | At::Comment if byte != 0 => self.at,
            At::Extra(_) | At::HeaderCrc(_) | At::Name | At::Comment => self.next_field(),
            At::Trailer(seen, value) => {
                let value = value | u64::from(byte) << (8 * seen);
                if seen < 7 {
                    At::Trailer(seen + 1, value)
                } else {
                    return self.next_member(value);
                }
            }
            At::Body | At::Padding => self.at,
        })
    }

    /// The next optional field of the header, in their order, or the body.
    fn next_field(&mut self) -> At {
        const ORDER: [(u8, At); 4] = [
            (flag::EXTRA, At::ExtraLength(0, 0)),
            (flag::NAME, At::Name),
            (flag::COMMENT, At::Comment),
            (flag::HEADER_CRC, At::HeaderCrc(2)),
        ];
        for (bit, at) in ORDER {
            if self.flags & bit != 0 {
                self.flags &= !bit;
                return at;
            }
        }
        At::Body
    }

    /// Compares a trailer with what was decoded, and makes ready for another member.
    fn next_member(&mut self, trailer: u64) -> Option<At> {
        let decoded = u64::from(self.crc.sum()) | u64::from(self.crc.amount()) << 32;
        if decoded != trailer {
            return None;
        }
        self.inner.reset(false);
        self.crc.reset();
        self.later_member = true;
        Some(At::Fixed(0))
    }
}
