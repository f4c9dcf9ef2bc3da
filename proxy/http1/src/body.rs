//! A body in any framing: which bytes of a slice are its payload, and where it ends.

use std::ops::Range;

use crate::chunks::Chunks;
use crate::fault::Invalid;

/// The rest of a body.
#[derive(Clone, Debug)]
pub enum Body {
    /// By its length: this many bytes remain.
    Length(u64),
    /// By its chunks.
    Chunked(Chunks),
    /// By the end of its connection; only a response's.
    Close,
}

/// A part of a body within one slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Payload.
    Data {
        /// Its range in the slice, never empty.
        data: Range<usize>,
        /// The range that may be forwarded as it is to a peer with the same framing: a whole canonical chunk with its line
        /// and its CRLF, or the payload itself of a body that is not chunked.
        verbatim: Option<Range<usize>>,
    },
    /// The end of the body.
    End {
        /// The range of a canonical last chunk without trailers.
        verbatim: Option<Range<usize>>,
        /// The position behind the body.
        end: usize,
    },
}

impl Body {
    /// A message without a body.
    pub const EMPTY: Self = Self::Length(0);

    /// Returns the next part of `slice` from `at`, which moves behind it; `None` if there is no more. A body that has ended
    /// gives its end again. The end of a connection ends no other body than [`Body::Close`].
    #[inline]
    pub fn next(&mut self, slice: &[u8], at: &mut usize) -> Result<Option<Part>, Invalid> {
        let here = slice.len() - *at;
        let len = match self {
            Self::Chunked(chunks) => return chunks.next(slice, at),
            Self::Length(0) => return Ok(Some(Part::End { verbatim: None, end: *at })),
            Self::Length(left) => {
                let len = (*left).min(here as u64);
                *left -= len;
                len as usize
            }
            Self::Close => here,
        };
        let data = *at..*at + len;
        *at = data.end;
        Ok((len > 0).then(|| Part::Data { verbatim: Some(data.clone()), data }))
    }

    /// True if all of the body was read. A body that the end of its connection ends has none before it.
    pub const fn is_ended(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_ended(),
            Self::Close => false,
        }
    }

    /// The trailer section of an ended body, for [`crate::trailers`]; empty if it has no fields.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Self::Chunked(chunks) => chunks.trailers(),
            Self::Length(_) | Self::Close => &[],
        }
    }
}
