//! The metering of one exchange: the bytes of a request and of its response in, one [`Record`](meter::Record) out. No
//! HTTP engine, no clock, no thread: the caller hands in head fields, slices of bodies and ticks, in the order in which
//! they pass, and gets plain values back. Nothing is kept of a slice, nothing waits, and nothing fails.
//!
//! One exchange in the order of the calls:
//!
//! 1. [`route()`]: is the request metered, and in which dialect?
//! 2. [`TenantResolution::of_head`]: which tenant sent it? Without rules it is the default one.
//! 3. [`Exchange::begin`], then [`Exchange::request_body`] for each slice, and [`Exchange::request_complete`].
//! 4. [`UpstreamFacts::question`]: which usage may be requested for the client? [`Exchange::asked_more`] takes what
//!    was added to the request.
//! 5. [`Exchange::response_head`], then [`Exchange::response_body`] for each slice.
//! 6. [`Exchange::end`].
//!
//! ```
//! use exchange::{CallerFacts, Exchange, Setup, TenantResolution, route};
//! use http::header::CONTENT_TYPE;
//! use http::{HeaderMap, HeaderValue, Method};
//! use meter::{Close, ExchangeId, LoadSpan, Provenance, Tick};
//! use usage::Cuts;
//!
//! // The request: its head, its body in two slices, and the tick of its last byte.
//! let route = route(None, &Method::POST, "/v1/chat/completions").expect("a metered path");
//! let tenant = TenantResolution::default();
//! let mut exchange = Exchange::begin(route, &HeaderMap::new(), tenant, Setup::default(), Tick(0));
//! exchange.request_body(br#"{"model":"tiny","stream":true,"#);
//! exchange.request_body(br#""stream_options":{"include_usage":true},"messages":[]}"#);
//! exchange.request_complete(Tick(1_000));
//! exchange.sent();
//!
//! // The response: its head, and slices that end anywhere.
//! let mut headers = HeaderMap::new();
//! headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
//! exchange.response_head(200, &headers, None, Tick(2_000)).expect("an answer of a model");
//! let mut cuts = Cuts::default();
//! let slices = [
//!     &b"data: {\"id\":\"c1\",\"model\":\"tiny\",\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\nda"[..],
//!     b"ta: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
//!     b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
//! ];
//! for (slice, at) in slices.into_iter().zip([3_000, 4_000, 5_000]) {
//!     exchange.response_body(slice, Tick(at), &mut cuts).expect("a body without a content coding");
//! }
//!
//! // The end: what only the caller knows becomes part of the record's identity.
//! let caller = CallerFacts {
//!     id: ExchangeId::new(1_700_000_000_000_000_000, 1),
//!     started_unix_ns: 1_700_000_000_000_000_000,
//!     request_id: None,
//!     upstream: "gpu-1".into(),
//!     provider: "vllm".into(),
//!     is_provider_known: true,
//!     trace: None,
//! };
//! let close = Close::Clean { whole: false };
//! let ended = exchange.end(close, LoadSpan::single(), Tick(5_000), caller).expect("a record");
//! let record = ended.record;
//! assert_eq!((record.tokens.input(), record.tokens.output()), (5, 2));
//! assert_eq!(record.tokens.output_provenance, Provenance::Reported);
//! assert_eq!(record.timing.first_token_ns, Some(2_000));
//! assert_eq!((&*record.identity.model, record.identity.response_id.as_deref()), ("tiny", Some("c1")));
//! ```
//!
//! Modules in the order of an exchange:

mod control;
mod detached;
mod found_route;
mod method;
mod path;
mod route;

mod role;
mod tenant_resolution;

mod exchange;

mod answer_form;
mod form_names;
mod head_models;
mod model;
mod query;
mod request_reader;
mod request_state;
mod word_list;

mod seal;
mod usage_policy;

mod header_facts;
mod rate_limits;
mod response;
mod response_reader;

mod answered_ids;
mod detached_work;
mod fingerprint;
mod gauges;
mod ids;
mod names;

pub use self::answered_ids::AnsweredIds;
pub use self::exchange::{CallerFacts, Edits, Ended, Exchange, Head, Setup, UsageHabits};
pub use control::renames_model;
pub use decode::DecodeError;
pub use detached::begins_detached;
pub use detached_work::DetachedWork;
pub use fingerprint::fingerprint;
pub use gauges::Gauges;
pub use head_models::of_head as models_of_head;
pub use ids::IdSource;
pub use method::is_unusual;
pub use names::recorded;
pub use rate_limits::read as rate_limits;
pub use role::{RoleSource, checked_request_id, request_id};
pub use route::{ModelInPath, Route, Socket, Speaks, route, route_below, socket};
pub use seal::is_sealed;
pub use tenant_resolution::{RequestHead, RuleMembers, TenantResolution};
pub use usage_policy::{CONVERSATION_ID, Question, UpstreamFacts, keeps_conversations};

#[cfg(test)]
mod bedrock_tests;
#[cfg(test)]
mod label_tests;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod models_tests;
#[cfg(test)]
mod reported_tests;
#[cfg(test)]
mod tests;
