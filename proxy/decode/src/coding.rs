//! The coding of a body, from the values of its `Content-Encoding` fields (RFC 9110 §8.4). The caller finds
//! the fields; this file parses their values.

/// A supported content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip` or `x-gzip`, RFC 1952.
    Gzip,
    /// `deflate`: RFC 1950, as the name is defined, or bare RFC 1951, as some servers send it.
    Deflate,
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878 with the window of RFC 9659.
    Zstd,
}

impl Coding {
    /// The coding that one field value names; `None` if it names none, several, or an unsupported one.
    pub fn from_field(value: &[u8]) -> Option<Self> {
        match Codings::read(std::iter::once(value)) {
            Codings::One(coding) => Some(coding),
            Codings::Identity | Codings::Unknown => None,
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        const NAMES: [(&str, Coding); 5] = [
            ("gzip", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("deflate", Coding::Deflate),
            ("br", Coding::Brotli),
            ("zstd", Coding::Zstd),
        ];
        NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map(|(_, coding)| *coding)
    }
}

/// The meaning of all `Content-Encoding` fields of a message together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codings {
    /// The body is not encoded: no field, or only `identity` and empty names.
    Identity,
    /// One coding, which a [`Decoder`](crate::Decoder) can decode.
    One(Coding),
    /// An unsupported coding, or several stacked ones. No supported server stacks codings, and each layer
    /// would multiply the cost of a bomb.
    Unknown,
}

impl Codings {
    /// Reads the values of all fields, in their order.
    pub fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut names = values
            .flat_map(|value| value.split(|&byte| byte == b','))
            .map(|name| name.trim_ascii())
            .filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"));
        match (names.next(), names.next()) {
            (None, _) => Self::Identity,
            (Some(name), None) => Coding::from_name(name).map_or(Self::Unknown, Self::One),
            (Some(_), Some(_)) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_encoding_fields_follow_rfc_9110() {
        use Codings::{Identity, One, Unknown};
        let table: &[(&[&str], Codings)] = &[
            (&[], Identity),
            (&[""], Identity),
            (&["identity"], Identity),
            (&[" Identity ", ", ,"], Identity),
            (&["gzip"], One(Coding::Gzip)),
            (&["GZip"], One(Coding::Gzip)),
            (&["x-gzip"], One(Coding::Gzip)),
            (&["\t deflate "], One(Coding::Deflate)),
            (&["br"], One(Coding::Brotli)),
            (&["zstd"], One(Coding::Zstd)),
            (&["identity, br"], One(Coding::Brotli)),
            (&["", "zstd,"], One(Coding::Zstd)),
            (&["gzip, br"], Unknown),
            (&["gzip", "br"], Unknown),
            (&["gzip, gzip"], Unknown),
            (&["compress"], Unknown),
            (&["gzip;q=1"], Unknown),
            (&["g zip"], Unknown),
            (&["gzi"], Unknown),
        ];
        for (fields, codings) in table {
            assert_eq!(Codings::read(fields.iter().map(|field| field.as_bytes())), *codings, "{fields:?}");
        }
        assert_eq!(Coding::from_field(b" X-GZIP"), Some(Coding::Gzip));
        for none in [&b"gzip, br"[..], b"", b"identity", b"\xff"] {
            assert_eq!(Coding::from_field(none), None, "{none:?}");
        }
    }
}
