//! The proxy's own answers, in the error shape that clients of inference servers already read. They name the event, the
//! responsible side and the remedy, and never quote the request (law 11).

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http1::Fault;

use scan::{Dialect, ErrorShape};

use crate::request::error_body;
use crate::{Gap, Refusal, Refused};

/// An answer of the proxy.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The reason for the metric.
    pub(crate) refusal: Refusal,
    /// A stable code for programs.
    pub(crate) code: &'static str,
    message: String,
    shape: ErrorShape,
    retry_after_s: Option<u64>,
}

impl Answer {
    /// An answer in OpenAI's error shape.
    fn new(status: StatusCode, refusal: Refusal, code: &'static str, message: impl Into<String>) -> Self {
        let (message, shape) = (message.into(), ErrorShape::Openai);
        Self { status, refusal, code, message, shape, retry_after_s: None }
    }

    /// The same in the error shape of `dialect`.
    fn shaped(self, dialect: Dialect) -> Self {
        Self { shape: dialect.error_shape(), ..self }
    }

    /// The same with `Retry-After`.
    fn after(self, seconds: u64) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// The error message: the event, the responsible side, and the remedy.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The request breaks a rule. `message`: its fault.
    pub(crate) fn refused(status: StatusCode, refusal: Refusal, code: &'static str, message: &str) -> Self {
        let message = format!("tokenmeter did not forward this request: {message}. Fix the client.");
        Self::new(status, refusal, code, message)
    }

    /// The bytes of an HTTP/1.1 client are not a request, or its framing is not valid.
    pub(crate) fn not_a_request(fault: Fault) -> Self {
        let code = match fault {
            Fault::Target => "invalid_target",
            Fault::LongRequestLine => "target_too_long",
            Fault::LongHead | Fault::ManyFields => "head_too_large",
            Fault::Version => "unsupported_version",
            Fault::UnknownCoding => "unsupported_transfer_coding",
            _ => "invalid_framing",
        };
        let status = StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::BAD_REQUEST);
        Self::refused(status, Refusal::Framing, code, fault.message())
    }

    /// The target is too long under the upstream's prefix.
    pub(crate) fn target_too_long() -> Self {
        let status = StatusCode::URI_TOO_LONG;
        Self::refused(status, Refusal::Target, "target_too_long", "its target is too long")
    }

    /// The request body is incomplete, and the client has not left.
    pub(crate) fn malformed_body() -> Self {
        let message = "its body is not framed as its head says";
        Self::refused(StatusCode::BAD_REQUEST, Refusal::Framing, "invalid_framing", message)
    }

    /// No connection to the upstream.
    pub(crate) fn unreachable(upstream: &str, why: &str) -> Self {
        let message = format!(
            "tokenmeter could not connect to the inference server '{upstream}' ({why}). The request was not sent. \
             Check that the server runs and that its address is right."
        );
        Self::new(StatusCode::BAD_GATEWAY, Refusal::UpstreamUnreachable, "upstream_unreachable", message)
    }

    /// The upstream did not accept a connection in time.
    pub(crate) fn connect_timeout(upstream: &str, why: &str) -> Self {
        let message = format!(
            "tokenmeter could not connect to the inference server '{upstream}': {why}. The request was not sent; it \
             may be tried again."
        );
        let status = StatusCode::GATEWAY_TIMEOUT;
        Self::new(status, Refusal::UpstreamUnreachable, "upstream_connect_timeout", message)
    }

    /// TLS with the upstream failed.
    pub(crate) fn tls(upstream: &str, why: &str) -> Self {
        let message = format!(
            "tokenmeter could not use the inference server '{upstream}': {why}. No answer was received; the operator \
             of tokenmeter or of the server has to correct this."
        );
        Self::new(StatusCode::BAD_GATEWAY, Refusal::UpstreamUnreachable, "upstream_tls", message)
    }

    /// The upstream broke off before its answer. `how`: the rest of a sentence that begins with the server.
    pub(crate) fn broken(upstream: &str, how: &str) -> Self {
        let message = format!(
            "The inference server '{upstream}' {how} before it answered. It may have started on the request: look at \
             its log before trying again."
        );
        Self::new(StatusCode::BAD_GATEWAY, Refusal::UpstreamBroken, "upstream_broken", message)
    }

    /// The upstream refused the request each time it was sent, and processed nothing of it.
    pub(crate) fn unprocessed(upstream: &str) -> Self {
        let message = format!(
            "The inference server '{upstream}' refused the request before it processed any of it (HTTP/2: \
             REFUSED_STREAM or GOAWAY). It is at a limit or shuts down; the request may be tried again."
        );
        Self::new(StatusCode::BAD_GATEWAY, Refusal::UpstreamBroken, "upstream_refused", message).after(1)
    }

    /// The upstream's connection is open, but nothing answers on it.
    pub(crate) fn silent(upstream: &str) -> Self {
        let message = format!(
            "The inference server '{upstream}' did not answer an HTTP/2 PING in time, so its connection was closed. \
             It may have started on the request: check that it runs and is reachable."
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, Refusal::UpstreamBroken, "upstream_silent", message)
    }

    /// The upstream's answer cannot be forwarded. `fault`: the rest of a sentence that begins with the server.
    pub(crate) fn invalid(upstream: &str, fault: &str) -> Self {
        let message = format!(
            "The inference server '{upstream}' {fault}. tokenmeter cannot forward that answer; check that the \
             address is the server's HTTP port."
        );
        Self::new(StatusCode::BAD_GATEWAY, Refusal::UpstreamInvalid, "upstream_invalid", message)
    }

    /// The upstream sent too many interim responses.
    pub(crate) fn interim_flood(upstream: &str) -> Self {
        Self::invalid(upstream, "answered with a flood of interim responses")
    }

    /// The tenant may not spend at the moment; in the error shape of `dialect`.
    pub(crate) fn over_budget(dialect: Dialect, refused: Refused) -> Self {
        let Refused { message, retry_after_s } = refused;
        let answer = Self::new(StatusCode::TOO_MANY_REQUESTS, Refusal::Budget, "budget_exceeded", message);
        answer.shaped(dialect).after(retry_after_s)
    }

    /// The tenant may not use that model; in the error shape of `dialect`.
    pub(crate) fn unpriced(dialect: Dialect, message: Box<str>) -> Self {
        Self::new(StatusCode::FORBIDDEN, Refusal::Unpriced, "model_unpriced", message).shaped(dialect)
    }

    /// The work would continue after its client left; in the error shape of `dialect`.
    pub(crate) fn detached(dialect: Dialect) -> Self {
        let message = "Batches and responses in the background are refused here, because they cannot be counted: a \
                       budget is enforced. The request was not sent. Ask without `background` and one by one, or ask \
                       the operator of tokenmeter to set `detached_work: allow`.";
        Self::new(StatusCode::FORBIDDEN, Refusal::Detached, "background_refused", message).shaped(dialect)
    }

    /// The tenant may not use what cannot be fully metered; in the error shape of `dialect`.
    pub(crate) fn unmetered(dialect: Dialect, gap: Gap, message: Box<str>) -> Self {
        let refusal = match gap {
            Gap::UnknownPath | Gap::UnknownMethod => Refusal::UnknownPath,
            Gap::Unreadable => Refusal::Unreadable,
            Gap::Uncountable => Refusal::Uncountable,
        };
        Self::new(StatusCode::FORBIDDEN, refusal, gap.name(), message).shaped(dialect)
    }

    /// The proxy has reached one of its own limits.
    pub(crate) fn overloaded() -> Self {
        let message = "tokenmeter is out of file descriptors or memory. The request was not sent; try again in a \
                       moment, and raise the proxy's limits.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Refusal::Overload, "proxy_overloaded", message).after(1)
    }

    /// The client sent its body too slowly.
    pub(crate) fn slow_body() -> Self {
        let status = StatusCode::REQUEST_TIMEOUT;
        Self::refused(status, Refusal::SlowBody, "request_body_timeout", "its body came too slowly")
    }

    /// The upstream has its maximum of requests.
    pub(crate) fn upstream_full(upstream: &str) -> Self {
        let message = format!(
            "The inference server '{upstream}' has as many requests as tokenmeter may send it at once, or as this \
             client may have. The request was not answered; try again in a moment."
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Refusal::UpstreamFull, "upstream_full", message).after(1)
    }

    /// The request must be read before it may pass, and there is no memory for it; in the error shape of `dialect`.
    pub(crate) fn no_gather_room(dialect: Dialect) -> Self {
        let message = "tokenmeter has to read this request before it may pass, and has no memory for it at the \
                       moment. The request was not sent; try again in a moment.";
        let answer =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, Refusal::GatherRoom, "proxy_overloaded", message);
        answer.shaped(dialect).after(1)
    }

    /// Makes the response. `close` ends the client's connection after it, which is necessary while some of the request
    /// body is unread: it would be read as the next request.
    pub(crate) fn into_response(self, close: bool) -> Response<Bytes> {
        let kind = match self.refusal {
            Refusal::Budget => self.code,
            _ if self.status.is_client_error() => "invalid_request_error",
            _ => "api_error",
        };
        let body = error_body::json(self.shape, self.status.as_u16(), (kind, self.code), &self.message);
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_shape_is_the_one_clients_read() {
        let response = Answer::unreachable("a\"b\\c\n", "connection refused").into_response(true);
        assert_eq!(response.status(), 502);
        assert_eq!(response.headers()[CONNECTION], "close");
        let body = str::from_utf8(response.body()).unwrap();
        assert!(body.starts_with(r#"{"error":{"message":"tokenmeter could not connect"#), "{body}");
        assert!(body.contains(r#"'a\"b\\c\u000a'"#), "{body}");
        assert!(
            body.ends_with(r#","type":"api_error","param":null,"code":"upstream_unreachable"}}"#),
            "{body}"
        );
    }

    #[test]
    fn client_errors_have_the_clients_type() {
        let body = Answer::malformed_body().into_response(false).into_body();
        assert!(body.windows(21).any(|window| window == b"invalid_request_error"));
    }
}
