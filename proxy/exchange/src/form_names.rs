//! The parameters of a body whose content type is a form's, and which is read as JSON. Most servers read JSON under any
//! type, and curl's default type is a form's. But LiteLLM then reads a form, and one text can be both:
//! `{"model":"a","x":"&model=b"}`. One text can also name two models in two encodings; some frameworks use the encoding
//! that the content type names.

use http::HeaderValue;
use http::header::GetAll;

use crate::head_models;
use crate::query::unescaped;
use crate::word_list;

/// A search for a parameter that may name a model.
pub(crate) struct FormNames {
    name: [u8; NAME_BYTES],
    /// The length of the parameter's name so far; `None` in its value, and before the first separator.
    length: Option<usize>,
    names_model: bool,
}

/// The longest name that is read; an escaped `deployment_name` is shorter.
const NAME_BYTES: usize = 64;

impl FormNames {
    /// Returns a reader for a request with these content types; `None` unless one is a form's, or names another encoding.
    pub(crate) fn of(types: &GetAll<'_, HeaderValue>) -> Option<Self> {
        // Most requests have this type, and searching in it costs more than the comparison.
        if types.iter().all(|value| value == "application/json") {
            return None;
        }
        let has = |word: &[u8]| {
            let mut parts = types.iter().flat_map(|value| value.as_bytes().windows(word.len()));
            parts.any(|part| part.eq_ignore_ascii_case(word))
        };
        let is_encoded = has(b"charset") && types.iter().any(|value| is_encoded_otherwise(value.as_bytes()));
        // No client sends JSON under the other type of forms.
        let names_model = is_encoded || has(b"multipart");
        (is_encoded || has(b"form")).then_some(Self { name: [0; NAME_BYTES], length: None, names_model })
    }

    /// Reads the next slice.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.length = match (byte, self.length) {
                (b'&' | b';', _) => Some(0),
                (b'=', Some(length)) => {
                    self.names_model |= head_models::is_parameter(&unescaped(&self.name[..length]));
                    None
                }
                (_, Some(length)) if length < NAME_BYTES => {
                    self.name[length] = byte;
                    Some(length + 1)
                }
                _ => None,
            };
        }
    }

    /// Returns true if the body may name a model as a form.
    pub(crate) fn names_model(&self) -> bool {
        self.names_model
    }
}

/// Returns true if a content type names an encoding in which ASCII may be other text, such as UTF-7 or Shift JIS.
fn is_encoded_otherwise(content_type: &[u8]) -> bool {
    content_type.split(|byte| *byte == b';').skip(1).any(|parameter| {
        let mut parts = parameter.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
        let is_charset = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"charset"));
        let name = parts.next().unwrap_or_default();
        let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
        is_charset && !word_list::has(&ASCII_OR_WIDE, name)
    })
}

/// Encodings of which ASCII is a part, or in which no JSON is ASCII.
const ASCII_OR_WIDE: [&str; 13] = [
    "utf-8",
    "utf8",
    "us-ascii",
    "ascii",
    "iso-8859-1",
    "latin1",
    "windows-1252",
    "utf-16",
    "utf-16le",
    "utf-16be",
    "utf-32",
    "utf-32le",
    "utf-32be",
];

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::CONTENT_TYPE;

    use super::{FormNames, HeaderValue};

    fn names_model(content_type: &'static str, body: &str) -> Option<bool> {
        let mut headers = HeaderMap::new();
        for one in ["application/json", content_type] {
            headers.append("content-type", HeaderValue::from_static(one));
        }
        let mut names = FormNames::of(&headers.get_all(CONTENT_TYPE))?;
        body.as_bytes().chunks(3).for_each(|slice| names.feed(slice));
        Some(names.names_model())
    }

    #[test]
    fn model_in_a_form_is_found() {
        let form = "application/x-www-form-urlencoded";
        for body in [
            "{\"model\":\"a\",\"x\":\"&model=b",
            "x=1&model=b",
            "x;Model[]=b",
            "&mod%65l%5B%5D=",
            "&a=model&deployment_id=b",
            "&&models=",
        ] {
            assert_eq!(names_model(form, body), Some(true), "{body}");
            assert_eq!(names_model("application/json", body), None);
        }
        let long = format!("&{}model=b", "x".repeat(100));
        for body in ["", "{\"model\":\"a\",\"prompt\":\"1 = 2 & 3\"}", "&model&x=", "&mode=l", "&x=&", &*long]
        {
            assert_eq!(names_model(form, body), Some(false), "{body}");
        }
        assert_eq!(names_model("application/json; x=\"Multipart/Form-data\"", ""), Some(true));
    }

    #[test]
    fn text_in_another_encoding_may_name_any_model() {
        for charset in ["utf-7", "\"UTF-7\"", " shift_jis", "cp037", "iso-2022-jp", ""] {
            let content_type = format!("application/json; a=b; Charset={charset}");
            assert_eq!(names_model(content_type.leak(), "{}"), Some(true), "{charset}");
        }
        for charset in ["utf-8", "\"UTF-8\"", "utf8 ", "US-ASCII", "iso-8859-1", "utf-16"] {
            let content_type = format!("application/json;charset={charset}");
            assert_eq!(names_model(content_type.leak(), "{}"), None, "{charset}");
        }
    }
}
