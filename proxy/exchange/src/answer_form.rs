//! The forms of an answer that a client can choose by the head of its request, and in which its usage is missing or is not
//! read: a selection of members (Google's APIs), another encoding than JSON, a script around it, an unknown compression.

use crate::path::plain;
use crate::query::parameters;
use crate::word_list;

/// Returns true if the answer to a request with this query may have such a form.
pub(crate) fn is_chosen(query: Option<&str>) -> bool {
    query.into_iter().flat_map(parameters).any(|(name, value)| is_parameter(&name, &value))
}

/// Returns true if this header field lets the answer have such a form.
pub(crate) fn is_chosen_by(name: &str, value: &[u8]) -> bool {
    match name {
        "accept" => accepts_unread(value),
        "accept-encoding" => tokens(value, b',').any(|coding| !word_list::has(CODINGS, coding)),
        "prefer" => tokens(value, b',').any(|wish| wish.eq_ignore_ascii_case(b"return=minimal")),
        name => name.ends_with("-fieldmask") || name.ends_with("-field-mask"),
    }
}

/// Returns false if no field with this end of its name chooses a form: most fields need no more.
pub(crate) fn may_choose(name: &[u8]) -> bool {
    matches!(name, [.., b'p', b't'] | [.., b'n', b'g'] | [.., b'e', b'r'] | [.., b's', b'k'])
}

/// Returns true if the answers of an endpoint are not read unless they are streams: SGLang's for Vertex AI.
pub(crate) fn is_unread(path: &str) -> bool {
    const END: &str = "/vertex_generate";
    let path = plain(path);
    let tail = path.len().checked_sub(END.len()).and_then(|from| path.as_bytes().get(from..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(END.as_bytes()))
}

/// Returns true for a parameter of a query. Google's system parameters may begin with `$`.
fn is_parameter(name: &[u8], value: &[u8]) -> bool {
    let name = name.strip_prefix(b"$").unwrap_or(name);
    let is_form = word_list::has(&["alt", "format", "output"], name);
    is_form && !word_list::has(&["", "json", "sse"], value) || word_list::has(SELECTIONS, name)
}

/// Returns true if a media type is accepted that is not read. Of types that no API of models answers with, a list has
/// some in clients that send the same list to every server, and these accept any type, too.
fn accepts_unread(accept: &[u8]) -> bool {
    let types = || tokens(accept, b',').filter(|media| !media.is_empty());
    let is_read =
        |media: &[u8]| word_list::has(READ, media) || media.to_ascii_lowercase().ends_with(b"+json");
    let is_general = types().any(|media| media == b"*/*" || is_read(media));
    !types().all(|media| is_read(media) || is_general && is_text_or_media(media))
}

fn is_text_or_media(media: &[u8]) -> bool {
    let kinds: [&[u8]; 4] = [b"text/", b"image/", b"audio/", b"video/"];
    let is_kind = |kind: &[u8]| media.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
    // Java's default has `*` alone.
    kinds.into_iter().any(is_kind)
        || word_list::has(
            &["*", "application/xhtml+xml", "application/xml", "application/signed-exchange"],
            media,
        )
}

/// The elements of a list, without their parameters.
fn tokens(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let elements = value.split(move |byte| *byte == separator);
    elements.map(|element| element.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
}

/// Parameters that select members of the answer, or wrap it in a script.
const SELECTIONS: &[&str] =
    &["fields", "fieldmask", "field_mask", "readmask", "select", "x-goog-fieldmask", "callback", "jsonp"];

/// The media types that are read, or accept one that is.
const READ: &[&str] = &[
    "*/*",
    "application/*",
    "text/*",
    "application/json",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "text/event-stream",
    "application/vnd.amazon.eventstream",
];

/// The content codings that are read.
const CODINGS: &[&str] = &["", "*", "identity", "gzip", "x-gzip", "deflate", "br", "zstd"];

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(query: &str, fields: &[(&str, &str)]) -> bool {
        let by = |(name, value): &(&str, &str)| {
            let is_chosen = is_chosen_by(name, value.as_bytes());
            assert!(!is_chosen || may_choose(name.as_bytes()), "{name}");
            is_chosen
        };
        is_chosen(Some(query)) || fields.iter().any(by)
    }

    #[test]
    fn forms_without_usage_are_known() {
        for query in [
            "fields=candidates",
            "$fields=candidates",
            "%24fields=candidates",
            "key=k&f%69elds=candidates",
            "FIELDS=x",
            "alt=proto",
            "alt=sse&$alt=media",
            "callback=x",
            "$callback=x",
            "X-Goog-FieldMask=candidates",
            "alt=sse;fields=x",
        ] {
            assert!(chosen(query, &[]), "{query}");
        }
        for field in [
            ("x-goog-fieldmask", "candidates"),
            ("accept", "application/x-protobuf"),
            ("accept", "application/json;q=0.1, application/x-protobuf"),
            ("accept", "text/csv"),
            ("accept", "application/msgpack, */*"),
            ("accept-encoding", "gzip, compress"),
            ("accept-encoding", "dcb;q=1"),
            ("prefer", "return=minimal"),
        ] {
            assert!(chosen("", &[field]), "{field:?}");
        }
    }

    /// The fields of common clients.
    #[test]
    fn usual_requests_choose_none() {
        for query in
            ["", "alt=sse", "alt=json&key=k", "api-version=1&$alt=json;enum-encoding=int", "prettyPrint=1"]
        {
            assert!(!chosen(query, &[]), "{query}");
        }
        for accept in [
            "*/*",
            "application/json",
            "application/json, text/plain, */*",
            "text/event-stream",
            "application/vnd.api+json",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
            "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
            "",
        ] {
            assert!(!chosen("", &[("accept", accept)]), "{accept}");
        }
        assert!(!chosen("", &[("accept-encoding", "gzip, deflate, br, zstd;q=0.5, identity, *;q=0")]));
    }
}
