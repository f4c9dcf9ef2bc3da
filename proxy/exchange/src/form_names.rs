//! The parameters of a body that says to be a form, and is read as JSON. Most servers read JSON under any type, and curl's
//! default type is a form's. But LiteLLM reads a form then, and one text can be both: `{"model":"a","x":"&model=b"}`.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::head_models;
use crate::query::unescaped;

/// Finds out whether a parameter may name a model.
pub(crate) struct FormNames {
    name: [u8; NAME_BYTES],
    /// The length of the parameter's name so far; `None` in its value, and before the first separator.
    length: Option<usize>,
    names_model: bool,
}

/// The longest name that is read; an escaped `deployment_name` is shorter.
const NAME_BYTES: usize = 64;

impl FormNames {
    /// Returns a reader for a request with these fields; `None` unless its type is a form's.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let types = headers.get_all(CONTENT_TYPE);
        let has = |word: &[u8]| {
            let mut parts = types.iter().flat_map(|value| value.as_bytes().windows(word.len()));
            parts.any(|part| part.eq_ignore_ascii_case(word))
        };
        // No client sends JSON under the other type of forms.
        has(b"form").then(|| Self { name: [0; NAME_BYTES], length: None, names_model: has(b"multipart") })
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

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::FormNames;

    fn names_model(content_type: &'static str, body: &str) -> Option<bool> {
        let mut headers = HeaderMap::new();
        for one in ["application/json", content_type] {
            headers.append("content-type", HeaderValue::from_static(one));
        }
        let mut names = FormNames::of(&headers)?;
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
}
