//! The role of an exchange where prefill and decode run on two servers: by the upstream's setting, or by the body of a
//! trusted router's request. A prefill leg is not charged, so the body decides for trusted routers only.

use http::HeaderMap;
use http::header::HeaderName;
use meter::{MAX_REQUEST_ID_BYTES, Role};
use scan::{Dialect, Request};

/// The source of the roles of an upstream's exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleSource {
    /// All exchanges have this role.
    Fixed(Role),
    /// The `kv_transfer_params` of a request determine it, if its peer is trusted.
    Body,
}

impl Default for RoleSource {
    fn default() -> Self {
        Self::Fixed(Role::Whole)
    }
}

impl RoleSource {
    /// The value of the setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed(role) => role.name(),
            Self::Body => "auto",
        }
    }

    /// The source for the requests of one peer.
    pub fn of_peer(self, is_trusted: bool) -> Self {
        match self {
            Self::Body if !is_trusted => Self::Fixed(Role::Whole),
            source => source,
        }
    }

    /// The role of an exchange before its request was read.
    pub(crate) fn first(self) -> Role {
        match self {
            Self::Fixed(role) => role,
            Self::Body => Role::Whole,
        }
    }

    /// The role of an exchange with this request. A prefill leg requests at most one token: more would be an answer
    /// that is not charged.
    pub(crate) fn role(self, request: &Request, dialect: Dialect) -> Role {
        let transfer = request.kv_transfer;
        match self {
            Self::Fixed(role) => role,
            Self::Body if !request.whole => Role::Whole,
            Self::Body => match (transfer.remote_decode, transfer.remote_prefill) {
                (true, false) if asks_for_one_token(request, dialect) => Role::Prefill,
                (false, true) => Role::Decode,
                _ => Role::Whole,
            },
        }
    }

    /// The role of an ended exchange with this number of output tokens: an answer of more than one token is charged,
    /// even if its request asks for a prefill leg.
    pub(crate) fn of_ended(self, role: Role, output: u64) -> Role {
        match (self, role) {
            (Self::Body, Role::Prefill) if output > 1 => Role::Whole,
            _ => role,
        }
    }
}

/// The role of one exchange, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeRole {
    source: RoleSource,
    role: Role,
}

impl ExchangeRole {
    /// The role before the request was read.
    pub(crate) fn new(source: RoleSource) -> Self {
        Self { source, role: source.first() }
    }

    /// The role, as far as it is known.
    #[inline]
    pub(crate) fn get(self) -> Role {
        self.role
    }

    /// Determines the role by the request, which was read.
    pub(crate) fn settle(&mut self, request: &Request, dialect: Dialect) {
        self.role = self.source.role(request, dialect);
    }

    /// Corrects the role at the end of the exchange, which has this number of output tokens.
    pub(crate) fn end(&mut self, output: u64) {
        self.role = self.source.of_ended(self.role, output);
    }
}

fn asks_for_one_token(request: &Request, dialect: Dialect) -> bool {
    request.output_limits.is_one_token(dialect) && request.clone().of(dialect).answers <= 1
}

/// The id that the client gave a request: the value of `X-Request-Id`, which routers set for both legs, else of
/// `Idempotency-Key`, which clients set to repeat a request. `None` unless it is printable ASCII of a bounded length.
pub fn request_id(headers: &HeaderMap) -> Option<&str> {
    static NAMES: [HeaderName; 2] =
        [HeaderName::from_static("x-request-id"), HeaderName::from_static("idempotency-key")];
    // A message has few fields: comparing their names costs less than a hash.
    NAMES.iter().find_map(|name| {
        let mut values = headers.iter().filter(|(field, _)| *field == name).map(|(_, value)| value);
        let id = checked_request_id(values.next()?.as_bytes())?;
        values.next().is_none().then_some(id)
    })
}

/// Returns a request id, if it is printable ASCII of a bounded length.
pub fn checked_request_id(id: &[u8]) -> Option<&str> {
    let is_valid =
        (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()) && id.iter().all(|byte| matches!(byte, b' '..=b'~'));
    std::str::from_utf8(id).ok().filter(|_| is_valid)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::{HeaderName, HeaderValue};
    use meter::Role;
    use scan::{Dialect, RequestScanner};

    use super::{RoleSource, request_id};

    fn role(source: RoleSource, body: &str) -> Role {
        let mut scanner = RequestScanner::new();
        scanner.feed(body.as_bytes());
        source.role(&scanner.end(), Dialect::OpenaiChat)
    }

    #[test]
    fn prefill_needs_one_token_and_one_answer() {
        let params = r#""kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false}"#;
        let with = |rest: &str| role(RoleSource::Body, &format!("{{{params}{rest}}}"));
        assert_eq!(with(r#","max_tokens":1"#), Role::Prefill);
        assert_eq!(with(r#","max_tokens":1,"n":1"#), Role::Prefill);
        for rest in [
            "",
            r#","max_tokens":2"#,
            r#","max_tokens":1,"n":5"#,
            r#","max_tokens":1,"max_completion_tokens":9"#,
            r#","max_tokens":1,"n_predict":700"#,
            r#","max_tokens":0,"n_predict":-1"#,
        ] {
            assert_eq!(with(rest), Role::Whole, "{rest}");
        }
        assert_eq!(role(RoleSource::Body, &format!("{{{params},\"max_tokens\":1")), Role::Whole, "cut off");
    }

    #[test]
    fn prefill_with_two_tokens_is_whole() {
        let prefill = RoleSource::Fixed(Role::Prefill);
        for (source, role, output, expected) in [
            (RoleSource::Body, Role::Prefill, 2, Role::Whole),
            (RoleSource::Body, Role::Prefill, 1, Role::Prefill),
            (RoleSource::Body, Role::Prefill, 0, Role::Prefill),
            (RoleSource::Body, Role::Decode, 2, Role::Decode),
            (prefill, Role::Prefill, 2, Role::Prefill),
        ] {
            assert_eq!(source.of_ended(role, output), expected, "{source:?} {role:?} {output}");
        }
    }

    #[test]
    fn contradictory_flags_give_no_role() {
        let body =
            r#"{"max_tokens":1,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":true}}"#;
        assert_eq!(role(RoleSource::Body, body), Role::Whole);
        let decode = r#"{"kv_transfer_params":{"do_remote_prefill":true}}"#;
        assert_eq!(role(RoleSource::Body, decode), Role::Decode);
    }

    #[test]
    fn untrusted_peer_is_whole() {
        assert_eq!(RoleSource::Body.of_peer(false), RoleSource::Fixed(Role::Whole));
        assert_eq!(RoleSource::Body.of_peer(true), RoleSource::Body);
        let prefill = RoleSource::Fixed(Role::Prefill);
        assert_eq!(prefill.of_peer(false), prefill, "the setting applies to all");
        assert_eq!(role(prefill, r#"{"bootstrap_room":7}"#), Role::Prefill);
    }

    #[test]
    fn request_id_is_one_bounded_printable_field() {
        let id = |fields: &[(&'static str, &[u8])]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
            }
            request_id(&headers).map(str::to_owned)
        };
        let long = [b'a'; 129];
        assert_eq!(id(&[("x-request-id", b"r-1"), ("idempotency-key", b"k")]), Some("r-1".to_owned()));
        assert_eq!(id(&[("idempotency-key", b"k")]), Some("k".to_owned()));
        assert_eq!(id(&[("x-request-id", b"")]), None);
        assert_eq!(id(&[("x-request-id", b"a"), ("x-request-id", b"b")]), None);
        assert_eq!(id(&[("x-request-id", b"\xff")]), None);
        assert_eq!(id(&[("x-request-id", &long)]), None);
        assert_eq!(id(&[("x-request-id", &long[..128])]).map(|id| id.len()), Some(128));
    }
}
