//! The path of a request as the most lenient server reads it. Servers unescape before they route (uvicorn does): `%6F`
//! is `o`, `//` is `/`, and a trailing `/` has no meaning. cpp-httplib, which llama.cpp uses, also accepts `%u006F` for
//! `o`. Starlette matches a route with `$`, before which Python allows one line feed. nginx and others remove dot
//! segments (RFC 3986 §5.2.4), escaped ones too. The reading decides the route only; the upstream receives the path
//! unchanged. Nothing is unescaped twice, and a path without escapes and dot segments is not copied.

use std::borrow::Cow;

/// Unescapes the plain characters of a path. An escaped slash (`%2F`) stays, as a character of its segment, and so does
/// `%25`, so that the result has no other meaning.
pub(crate) fn plain(path: &str) -> Cow<'_, str> {
    let has_odd_segment = || path.as_bytes().windows(2).any(|pair| matches!(pair, b"//" | b"/."));
    if !path.contains('%') && !has_odd_segment() {
        return Cow::Borrowed(ended(path));
    }
    Cow::Owned(undone(path, false))
}

/// Unescapes the slashes of a path, as many servers do, and reads a backslash as one, as URL parsers of browsers do;
/// `None` without any.
pub(crate) fn slashed(path: &str) -> Option<String> {
    if !path.contains('%') && !path.contains('\\') {
        return None;
    }
    let has =
        |slash: &[u8]| path.as_bytes().windows(slash.len()).any(|part| part.eq_ignore_ascii_case(slash));
    [&b"%2f"[..], b"%u002f", b"\\", b"%5c", b"%u005c"].into_iter().any(has).then(|| undone(path, true))
}

/// Splits the last segment from a path. `rsplit_once` is dear for segments as short as these.
pub(crate) fn split_last(path: &str) -> Option<(&str, &str)> {
    let at = path.bytes().rposition(|byte| byte == b'/')?;
    Some((&path[..at], &path[at + 1..]))
}

/// Removes the slash at the end of a path, unless the slash is the whole path.
fn ended(path: &str) -> &str {
    path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path)
}

fn undone(path: &str, slashes: bool) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(next) = rest.chars().next() {
        let (meant, length) = match escaped(rest) {
            Some((Meant::Nothing, length)) => {
                rest = &rest[length..];
                continue;
            }
            // Python's `$` matches before it.
            Some((Meant::Character('\n'), length)) if rest[length..].trim_start_matches('/').is_empty() => {
                rest = &rest[length..];
                continue;
            }
            Some((Meant::Character(meant), length)) if is_plain(meant, slashes) => (meant, length),
            _ => (next, next.len_utf8()),
        };
        rest = &rest[length..];
        let meant = if slashes && meant == '\\' { '/' } else { meant };
        if meant != '/' || !plain.ends_with('/') {
            plain.push(meant);
        }
    }
    if plain.contains("/.") {
        plain = without_dots(&plain);
    }
    plain.truncate(ended(&plain).len());
    plain
}

/// Removes the segments `.` and `..` of an absolute path, the latter with the segment before it.
fn without_dots(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "." => {}
            // The first one is empty, before the root.
            ".." => segments.truncate(segments.len().saturating_sub(1).max(1)),
            segment => segments.push(segment),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") || segments.len() == 1 {
        segments.push("");
    }
    segments.join("/")
}

/// Returns true if this character is unescaped.
fn is_plain(meant: char, slashes: bool) -> bool {
    match meant {
        '/' => slashes,
        '%' => false,
        _ => meant.is_ascii_graphic(),
    }
}

/// The character of an escape.
enum Meant {
    Character(char),
    /// Half a surrogate pair: cpp-httplib drops it.
    Nothing,
}

/// The character of the escape at the beginning of this text, and the escape's length in bytes.
fn escaped(text: &str) -> Option<(Meant, usize)> {
    let (code, length) = tenant::escape(text.as_bytes())?;
    Some((char::from_u32(code).map_or(Meant::Nothing, Meant::Character), length))
}

/// Returns the bytes of a name in a path that [`plain`] returned, as a server reads them.
pub(crate) fn unescaped(name: &str) -> Cow<'_, [u8]> {
    if !name.contains('%') {
        return Cow::Borrowed(name.as_bytes());
    }
    let (mut plain, mut rest) = (Vec::with_capacity(name.len()), name);
    while let Some(next) = rest.chars().next() {
        let length = match tenant::escape(rest.as_bytes()) {
            Some((byte, length @ 3)) => {
                plain.extend(u8::try_from(byte));
                length
            }
            Some((code, length)) => {
                plain.extend(char::from_u32(code).iter().flat_map(|meant| meant.to_string().into_bytes()));
                length
            }
            None => {
                plain.extend(next.to_string().into_bytes());
                next.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_equal_to_servers_are_equal() {
        for (path, meant) in [
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("/v1/chat/complet%69ons", "/v1/chat/completions"),
            ("/%76%31/chat/completions/", "/v1/chat/completions"),
            ("/v1//chat///completions//", "/v1/chat/completions"),
            ("/v1beta/models/g%2D2%3AgenerateContent", "/v1beta/models/g-2:generateContent"),
            ("/", "/"),
            ("//", "/"),
            ("", ""),
            ("*", "*"),
            // Dot segments, escaped or not, and names that begin with a dot.
            ("/v1/responses/.", "/v1/responses"),
            ("/v1/responses/x/..", "/v1/responses"),
            ("/v1/./chat/../chat/completions", "/v1/chat/completions"),
            ("/v1/%2e/chat/x/%2E%2e//completions/%2e", "/v1/chat/completions"),
            ("/../../v1/responses", "/v1/responses"),
            ("/.", "/"),
            ("/a/..", "/"),
            ("/v1/.../.a/..b", "/v1/.../.a/..b"),
            // Unescaped once only; an escaped slash stays in its segment.
            ("/v1/complet%2569ons", "/v1/complet%2569ons"),
            ("/v2/models/a%2Fb/generate", "/v2/models/a%2Fb/generate"),
            ("/v2/models/a%2fb/generate/", "/v2/models/a%2fb/generate"),
            // llama.cpp's server (cpp-httplib) reads four digits too, and drops half a pair.
            ("/v1/chat/completion%u0073", "/v1/chat/completions"),
            ("/v1/chat/completion%u006E%73/", "/v1/chat/completionns"),
            ("/v1/chat/completion%ud800s%uDFFF", "/v1/chat/completions"),
            ("/v1/%ud800/chat", "/v1/chat"),
            ("/v1/a%u002Fb", "/v1/a%u002Fb"),
            ("/v1/%u0025u0073", "/v1/%u0025u0073"),
            ("/a%u00e9%u0000%U0073%u007%u%u007g", "/a%u00e9%u0000%U0073%u007%u%u007g"),
            ("/a%u007%73", "/a%u007s"),
            // Invalid escapes, and characters that are not plain.
            ("/a%/b%6/c%zz", "/a%/b%6/c%zz"),
            ("/a%20b%C3%A9%00", "/a%20b%C3%A9%00"),
            ("/é%é6", "/é%é6"),
            ("/a%+1", "/a%+1"),
        ] {
            assert_eq!(plain(path), meant, "{path}");
        }
    }

    #[test]
    fn one_line_feed_at_the_end_is_ignored() {
        for feed in ["%0a", "%0A", "%u000a", "%u000A"] {
            for (path, meant) in [
                (format!("/v1/chat/completions{feed}"), "/v1/chat/completions".to_owned()),
                (format!("/v1/chat/completions/{feed}"), "/v1/chat/completions".to_owned()),
                (format!("/v1/chat/completions{feed}/"), "/v1/chat/completions".to_owned()),
                (format!("/v1/chat/completions//{feed}//"), "/v1/chat/completions".to_owned()),
                (format!("/{feed}"), "/".to_owned()),
                // Not at the end, or one of two.
                (format!("/v1/chat{feed}/completions"), format!("/v1/chat{feed}/completions")),
                (format!("/v1/completions{feed}{feed}"), format!("/v1/completions{feed}")),
                (format!("/v1/completions%0d{feed}"), "/v1/completions%0d".to_owned()),
            ] {
                assert_eq!(plain(&path), meant, "{path}");
            }
            let path = format!("/v1%2Fchat/completions{feed}");
            assert_eq!(slashed(&path).as_deref(), Some("/v1/chat/completions"), "{path}");
        }
        for other in ["%0d%0a%20", "%00", "%20", "%0b", "%85", ";x", "%25%30a"] {
            let path = format!("/v1/chat/completions{other}");
            assert_ne!(plain(&path), "/v1/chat/completions", "{path}");
        }
    }

    #[test]
    fn escaped_slashes_may_separate_segments() {
        for (path, meant) in [
            ("/v1%2Fchat%2fcomplet%69ons", Some("/v1/chat/completions")),
            ("/v1%2F/chat/completions%2F", Some("/v1/chat/completions")),
            ("/v1\\chat/completions", Some("/v1/chat/completions")),
            ("/v1%5Cchat\\\\completions%u005c", Some("/v1/chat/completions")),
            ("/v1/x%2F..%2Fchat/completions%2F.", Some("/v1/chat/completions")),
            ("/v1%u002fchat%u002Fcompletion%u0073", Some("/v1/chat/completions")),
            ("/v1%252Fchat", None),
            ("/v1%u0025002fchat", None),
            ("/v1/chat/complet%69ons", None),
        ] {
            assert_eq!(slashed(path).as_deref(), meant, "{path}");
        }
    }

    #[test]
    fn names_are_unescaped_once() {
        for (name, meant) in [
            ("a-1", "a-1"),
            ("a%2Fb", "a/b"),
            ("a%u002fb%C3%A9%u00e9", "a/béé"),
            ("é%2", "é%2"),
            ("a%252Fb", "a%2Fb"),
            ("a%ud800b", "ab"),
        ] {
            assert_eq!(unescaped(name), meant.as_bytes(), "{name}");
        }
    }

    #[test]
    fn an_ordinary_path_is_not_copied() {
        for path in ["/", "/v1/chat/completions", "/v1/chat/completions/", "/é", "*"] {
            assert!(matches!(plain(path), Cow::Borrowed(_)) && slashed(path).is_none(), "{path}");
        }
    }
}
