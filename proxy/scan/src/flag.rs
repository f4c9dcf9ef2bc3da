//! Flags as servers in Python take them: pydantic, in the lax mode that vLLM, SGLang and most others leave
//! it in, reads some words and numbers as yes or no. The law: what pydantic refuses is neither here; who
//! is stricter refuses the request, and nothing depends on how we read it.
//!
//! A server that takes its request as a plain dictionary asks for Python's truth of a value instead. `stream` is
//! read so where pydantic refuses it: a stream that is not expected is a prompt that is not counted.

/// A word (a string's inside, unescaped) as a flag; `None` if it is none.
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

/// A number, as JSON has it, as a flag: one and zero, however they are written; `None` of any other.
pub fn number(text: &[u8]) -> Option<bool> {
    let number: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    [(0.0, false), (1.0, true)].into_iter().find(|(of, _)| *of == number).map(|(_, flag)| flag)
}

/// A word as a flag, by Python's truth where it is none.
pub fn word_truth(text: &[u8]) -> bool {
    word(text).unwrap_or(!text.is_empty())
}

/// A number as a flag, by Python's truth where it is none.
pub fn number_truth(text: &[u8]) -> bool {
    number(text).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_is_what_is_not_empty_or_zero() {
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
    fn words_and_numbers() {
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
