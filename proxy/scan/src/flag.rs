//! Flags as servers in Python read them: pydantic in lax mode, the default of vLLM, SGLang and most others,
//! accepts some words and numbers as booleans. Values that pydantic refuses are not flags here; a stricter
//! server refuses the request, so its reading has no effect.
//!
//! A server that reads its request as a plain dictionary tests Python's truth of a value instead. `stream`
//! is read that way where pydantic refuses it: in an unexpected stream the prompt would not be counted.

/// A word (an unescaped string) as a flag; `None` if it is none.
pub fn word(word: &[u8]) -> Option<bool> {
    let is = |words: [&[u8]; 6]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
    if is([b"true", b"1", b"yes", b"on", b"t", b"y"]) {
        Some(true)
    } else if is([b"false", b"0", b"no", b"off", b"f", b"n"]) {
        Some(false)
    } else {
        None
    }
}

/// A JSON number as a flag: one and zero, in any notation; `None` for others.
pub fn number(text: &[u8]) -> Option<bool> {
    let number: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    [(0.0, false), (1.0, true)].into_iter().find(|(of, _)| *of == number).map(|(_, flag)| flag)
}

/// A word as a flag, or its truth in Python if it is none.
pub fn word_truth(text: &[u8]) -> bool {
    word(text).unwrap_or(!text.is_empty())
}

/// A number as a flag, or its truth in Python if it is none.
pub fn number_truth(text: &[u8]) -> bool {
    number(text).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_and_zeros_are_false() {
        for text in ["true", "2", "please", " ", "1.0"] {
            assert!(word_truth(text.as_bytes()), "{text}");
        }
        for text in ["", "false", "0", "Off"] {
            assert!(!word_truth(text.as_bytes()), "{text}");
        }
        for (text, truth) in
            [("2", true), ("-1", true), ("NaN", true), ("1e999", true), ("0.0", false), ("-0", false)]
        {
            assert_eq!(number_truth(text.as_bytes()), truth, "{text}");
        }
    }

    #[test]
    fn pydantic_words_and_numbers_are_flags() {
        for text in ["true", "TRUE", "1", "yes", "Yes", "on", "t", "T", "y"] {
            assert_eq!(word(text.as_bytes()), Some(true), "{text}");
        }
        for text in ["false", "False", "0", "no", "off", "OFF", "f", "n"] {
            assert_eq!(word(text.as_bytes()), Some(false), "{text}");
        }
        for text in ["", " true", "2", "1.0", "truth", "enabled", "null", "ja"] {
            assert_eq!(word(text.as_bytes()), None, "{text}");
        }
        for text in ["1", "1.0", "1e0", "10E-1", "0.1e1"] {
            assert_eq!(number(text.as_bytes()), Some(true), "{text}");
        }
        for text in ["0", "0.0", "-0", "0e9"] {
            assert_eq!(number(text.as_bytes()), Some(false), "{text}");
        }
        for text in ["", "2", "-1", "1.5", "NaN", "Infinity", "1e999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
