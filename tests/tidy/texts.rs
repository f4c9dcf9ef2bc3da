//! The texts of Rust source that a reader sees: string literals and doc comments, with the line on which each begins.

/// A text in a source file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// The line on which the text begins, from 1.
    pub(crate) line: usize,
    /// The text on one line: white space at line ends is one space.
    pub(crate) text: String,
}

/// The string literals and the doc comments of one file.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// String literals, raw ones and those of attributes too, without their quotes. Escapes are as written.
    pub(crate) strings: Vec<Text>,
    /// Doc comments; the lines of one comment are one text.
    pub(crate) docs: Vec<Text>,
}

impl Texts {
    /// Reads the source of a file. Code, ordinary comments, characters and lifetimes are skipped.
    pub(crate) fn of(source: &str) -> Self {
        let mut texts = Self::default();
        let mut line = 1;
        let mut doc_ends = 0;
        let mut rest = source;
        let mut in_word = false;
        while let Some(first) = rest.chars().next() {
            let length = if rest.starts_with("//") {
                let length = rest.find('\n').unwrap_or(rest.len());
                let comment = &rest[..length];
                if comment.starts_with("//!") || (comment.starts_with("///") && !comment.starts_with("////"))
                {
                    let text = comment[3..].trim();
                    match texts.docs.last_mut() {
                        Some(doc) if doc_ends + 1 == line => doc.text = format!("{} {text}", doc.text),
                        _ => texts.docs.push(Text { line, text: text.to_owned() }),
                    }
                    doc_ends = line;
                }
                length
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else if let Some((open, close)) = quotes(rest, in_word) {
                let content = &rest[open..];
                let end = if close == "\"" { closing_quote(content) } else { content.find(&close) };
                let content = &content[..end.expect("a string has an end")];
                texts.strings.push(Text { line, text: on_one_line(content) });
                open + content.len() + close.len()
            } else if first == '\'' {
                character(rest)
            } else {
                first.len_utf8()
            };
            line += rest[..length].matches('\n').count();
            in_word = first.is_alphanumeric() || first == '_';
            rest = &rest[length..];
        }
        texts
    }
}

/// The length of the opening quotes of a string at the beginning of `rest`, and the closing ones. `in_word` if an
/// identifier ends before `rest`: its last letter is then no prefix of a raw string.
fn quotes(rest: &str, in_word: bool) -> Option<(usize, String)> {
    if rest.starts_with('"') {
        return Some((1, "\"".to_owned()));
    }
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r')).filter(|_| !in_word)?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    raw[hashes..].starts_with('"').then(|| {
        let open = rest.len() - raw.len() + hashes + 1;
        (open, format!("\"{}", "#".repeat(hashes)))
    })
}

/// The position of the first `"` behind no backslash.
fn closing_quote(content: &str) -> Option<usize> {
    let mut escaped = false;
    content.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// The length of the character literal at the beginning of `rest`, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    let content = &rest[1..];
    let first = content.chars().next().map_or(0, char::len_utf8);
    if content.starts_with('\\') {
        // At least one character follows the backslash, which may itself be a quote.
        content.get(2..).and_then(|content| content.find('\'')).map_or(1, |end| end + 4)
    } else if content[first..].starts_with('\'') {
        first + 2
    } else {
        1
    }
}

/// The text of a string literal whose lines may end in a backslash.
fn on_one_line(content: &str) -> String {
    let mut lines = content.split('\n');
    let mut text = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        // The backslash removes the end of its line and the white space that begins the next.
        if text.ends_with('\\') {
            text.pop();
        } else {
            text.push(' ');
        }
        text.push_str(line.trim_start());
    }
    text
}

#[test]
fn texts_are_strings_and_doc_comments() {
    let source = r####"//! A file
//! of two lines.

/// What one is.
#[error("a \
         long {}", '"')]
fn a<'a>(b: &'a str) { // "no text"
    c("d \" e", '\'', r#"f " g"#, br"h", for"i", "
      j");
}
"####;
    let texts = Texts::of(source);
    let of = |texts: &[Text]| texts.iter().map(|one| (one.line, one.text.clone())).collect::<Vec<_>>();
    let expected = |texts: &[(usize, &str)]| {
        texts.iter().map(|(line, text)| (*line, (*text).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(of(&texts.docs), expected(&[(1, "A file of two lines."), (4, "What one is.")]));
    let strings = [(5, "a long {}"), (8, "d \\\" e"), (8, "f \" g"), (8, "h"), (8, "i"), (8, " j")];
    assert_eq!(of(&texts.strings), expected(&strings));
}
