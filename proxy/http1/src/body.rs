//! A body in any framing: its payload in a slice, and its end.

use std::ops::Range;

use crate::chunks::Chunks;
use crate::fault::Invalid;

/// The rest of a body.
#[derive(Clone, Debug)]
pub enum Body {
    /// This many bytes remain.
    Length(u64),
    /// Chunks remain.
    Chunked(Chunks),
    /// A response that ends with its connection.
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

    /// Returns the next part of `slice` from `at` on, and moves `at` behind it; `None` if more bytes are needed. A body that
    /// has ended returns its end again. [`Body::Close`] has no end here: the caller sees that of the connection.
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

    /// The trailer section of an ended body, for [`crate::trailers`]; empty if it has no fields.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Self::Chunked(chunks) => chunks.trailers(),
            Self::Length(_) | Self::Close => &[],
        }
    }
}
