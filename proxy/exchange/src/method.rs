//! The methods of requests that may run a model although they are not POSTs to an endpoint: those that no known server has
//! for its path, those with a body where none belongs, and those whose method or path is replaced before a server or a
//! framework routes them.

use http::{HeaderMap, Method};

use crate::query::parameters;

/// Returns true if no known endpoint takes such a request, other than a POST to a path that runs a model. `has_body`: it has
/// a body.
pub fn is_unusual(
    method: &Method,
    path: &str,
    (query, headers): (Option<&str>, &HeaderMap),
    has_body: bool,
) -> bool {
    // Microsoft's IIS, and frameworks beside it.
    let is_rerouted = ["x-original-url", "x-rewrite-url"].iter().any(|name| headers.contains_key(*name));
    match *method {
        _ if is_rerouted => true,
        Method::POST => false,
        Method::DELETE if path == OLLAMA_DELETE => false,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE => {
            has_body || is_replaced(query, headers)
        }
        _ => true,
    }
}

/// Returns true if the head names another method than those that run no model.
fn is_replaced(query: Option<&str>, headers: &HeaderMap) -> bool {
    let runs = |value: &[u8]| {
        let is = |name: &&str| value.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
        !["", "GET", "HEAD", "OPTIONS", "DELETE"].iter().any(is)
    };
    headers.iter().any(|(name, value)| names_method(name.as_str()) && runs(value.as_bytes()))
        || query.into_iter().flat_map(parameters).any(|(name, value)| is_parameter(&name) && runs(&value))
}

/// Returns true for a header field whose value replaces the method: `X-HTTP-Method-Override`, `X-HTTP-Method`,
/// `X-Method-Override`, and others of these words.
fn names_method(name: &str) -> bool {
    let mut words = name.rsplit(['-', '_']);
    let mut last = words.next();
    if last == Some("override") {
        last = words.next();
    }
    // A browser asks beforehand whether it may send a method.
    last == Some("method") && name != "access-control-request-method"
}

/// Returns true for a parameter whose value replaces the method: `_method`, or one with a field's name.
fn is_parameter(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    name.trim_start_matches('$') == "_method"
        || name.starts_with("x-") && names_method(&name)
        || matches!(
            &*name,
            "$httpmethod" | "httpmethod" | "http_method" | "methodoverride" | "method_override"
        )
}

/// The one path of a DELETE with a body.
const OLLAMA_DELETE: &str = "/api/delete";

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn unusual(method: &str, target: &str, field: Option<(&str, &str)>, has_body: bool) -> bool {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = field {
            headers.insert(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        is_unusual(&method.parse().unwrap(), path, (query, &headers), has_body)
    }

    #[test]
    fn methods_that_may_run_a_model_are_unusual() {
        for method in ["PUT", "PATCH", "QUERY", "FOO", "post", "TRACE", "PROPFIND"] {
            assert!(unusual(method, "/v1/chat/completions", None, false), "{method}");
        }
        for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
            assert!(!unusual(method, "/v1/chat/completions", None, false), "{method}");
            assert!(unusual(method, "/v1/chat/completions", None, true), "{method}");
            for (field, value) in [
                ("x-http-method-override", "POST"),
                ("x-http-method", "post"),
                ("x-method-override", " Put"),
                ("x-original-http-method", "POST"),
                ("x_http_method_override", "PATCH"),
            ] {
                assert!(unusual(method, "/", Some((field, value)), false), "{method} {field}");
            }
            for query in
                ["_method=POST", "a=b&%5Fmethod=post", "X-HTTP-Method-Override=POST", "_METHOD=query"]
            {
                assert!(unusual(method, &format!("/v1/messages?{query}"), None, false), "{method} {query}");
            }
        }
    }

    #[test]
    fn requests_to_another_path_are_unusual() {
        for method in ["POST", "GET", "HEAD"] {
            for field in ["x-original-url", "X-Rewrite-URL"] {
                assert!(
                    unusual(method, "/tokenize", Some((field, "/v1/chat/completions")), false),
                    "{method}"
                );
            }
            assert!(!unusual(method, "/tokenize", Some(("x-original-host", "h")), false), "{method}");
        }
    }

    #[test]
    fn usual_requests_are_not() {
        assert!(!unusual("POST", "/v1/x", Some(("x-http-method-override", "GET")), true));
        assert!(!unusual("DELETE", "/api/delete", None, true));
        assert!(!unusual("GET", "/v1/models?method=POST&_method=GET", Some(("x-http-method", "GET")), false));
        assert!(!unusual("OPTIONS", "/v1/models", Some(("access-control-request-method", "POST")), false));
    }
}
