//! The query of a history: `scope=all&step=1`.

use hyper::StatusCode;
use live::Step;
use percent_encoding::percent_decode_str;

use crate::source::{Content, JSON, Source};

/// Returns the history that a query names, or the response's error.
pub(crate) fn content(source: &dyn Source, query: Option<&str>) -> Result<Content, (StatusCode, String)> {
    let (mut scope, mut step) = ("all".to_owned(), Step::Second);
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let bad = |why: &str| (StatusCode::BAD_REQUEST, why.to_owned());
        match name {
            "scope" => {
                let decoded = percent_decode_str(value).decode_utf8();
                scope = decoded.map_err(|_| bad("the scope is not UTF-8; percent-encode it"))?.into_owned();
            }
            "step" => {
                step = match value {
                    "1" => Step::Second,
                    "60" => Step::Minute,
                    _ => return Err(bad("write step=1 for 15 minutes or step=60 for 24 hours")),
                }
            }
            _ => return Err(bad("the parameters are scope and step")),
        }
    }
    let Some(history) = source.history(&scope, step) else {
        let why = "there is no such scope now: write all, or model: or tenant: with a name that /api/now has";
        return Err((StatusCode::NOT_FOUND, why.to_owned()));
    };
    let write = move |out: &mut dyn std::io::Write| serde_json::to_writer(out, &history).map_err(Into::into);
    Ok(Content { content_type: JSON, write: Box::new(write) })
}
