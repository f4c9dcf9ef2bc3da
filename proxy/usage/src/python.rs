//! The input that Python's `json` accepts beyond JSON, and with it servers in Python: a byte order mark,
//! `NaN` and `Infinity`, lone surrogates in a string's bytes. Law: every byte keeps its position, so that a
//! position in the copy is valid in the body.

/// Returns the body with each of these replaced by JSON of the same length; `None` if it has none of them.
/// The rest is not checked.
pub(crate) fn as_json(body: &[u8]) -> Option<Vec<u8>> {
    let mut copy = body.to_vec();
    let mut at = 0;
    if body.starts_with(MARK) {
        copy[..MARK.len()].fill(b' ');
        at = MARK.len();
    }
    let mut in_string = false;
    while at < body.len() {
        let mut read = 1;
        match body[at] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => read = 2,
            // No relevant name contains an x.
            0x80.. if in_string => copy[at] = b'x',
            b'N' | b'I' if !in_string => {
                let known = NUMBERS.iter().find(|(word, _)| body[at..].starts_with(word));
                if let Some((word, number)) = known {
                    copy[at..at + word.len()].copy_from_slice(number);
                    read = word.len();
                }
            }
            _ => {}
        }
        at += read;
    }
    (copy != body).then_some(copy)
}

const MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Numbers that are not flags either.
const NUMBERS: [(&[u8], &[u8]); 2] = [(b"NaN", b"2.0"), (b"Infinity", b"2.000000")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_keeps_its_place() {
        for (body, expected) in [
            (
                &b"{\"a\":NaN,\"b\":[-Infinity, Infinity]}"[..],
                Some("{\"a\":2.0,\"b\":[-2.000000, 2.000000]}"),
            ),
            (b"\xEF\xBB\xBF{\"a\":1}", Some("   {\"a\":1}")),
            (b"{\"\xED\xA0\x80\\\"NaN\":1}", Some("{\"xxx\\\"NaN\":1}")),
            (b"{\"a\":\"NaN \\\\\",\"b\":NaN}", Some("{\"a\":\"NaN \\\\\",\"b\":2.0}")),
            (b"{\"a\":\"NaN\"}", None),
            (b"{\"a\":Na", None),
            (b"{\xC3\xA9:1}", None),
            (b"\"\\", None),
            (b"", None),
        ] {
            assert_eq!(as_json(body).as_deref(), expected.map(str::as_bytes));
        }
    }
}
