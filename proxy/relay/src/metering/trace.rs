//! The position of an exchange in a distributed trace (W3C Trace Context, level 2), and the trace fields of the request
//! to the upstream. If no traces are exported, the fields are forwarded unchanged, and the record has the caller's trace
//! if the caller keeps it. If traces are exported, the upstream receives:
//!
//! | the client's `traceparent` | trace | `traceparent` | `tracestate` |
//! |---|---|---|---|
//! | one, valid | kept | the client's trace, with our client span as the parent | unchanged |
//! | one, valid | not kept | unchanged | unchanged |
//! | none, several, or invalid | kept | a new trace, with our client span as the parent | removed, as the specification requires |
//! | none, several, or invalid | not kept | a new trace that is marked as not kept, so that the upstream does not sample it | removed |

mod parent;
mod sampler;

use exchange::IdSource;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use meter::{Spans, Trace};

pub(crate) use parent::TraceParent;
pub use sampler::{Draw, Sampler};

use crate::limits;
use crate::request::headers;

/// The tracing of exchanges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracing {
    /// The rule for which traces are kept.
    pub sampler: Sampler,
    /// True if the upstream receives their fields.
    pub propagate: bool,
}

impl Default for Tracing {
    fn default() -> Self {
        Self { sampler: Sampler::default(), propagate: true }
    }
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The facts of a request that its span has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    method: &'static str,
    is_tls: bool,
}

impl Received {
    /// A request with this method, on a connection with or without TLS.
    pub(crate) fn new(method: &Method, is_tls: bool) -> Self {
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            // The convention's word. Requests with other methods are not metered.
            _ => "_OTHER",
        };
        Self { method, is_tls }
    }
}

/// The position of an exchange in its trace.
pub(crate) struct TracePosition {
    /// The trace in its record.
    pub(crate) trace: Option<Box<Trace>>,
    /// The parent that the upstream gets, if it is not the caller's.
    onward: Option<TraceParent>,
    /// True if the trace begins here.
    begins: bool,
}

impl TracePosition {
    /// Determines the position of a request with these fields.
    pub(crate) fn of(
        headers: &HeaderMap,
        received: Received,
        tracing: Option<&Tracing>,
        chance: &IdSource,
    ) -> Self {
        let caller = caller(headers);
        let Some(tracing) = tracing else {
            let kept = caller.filter(|caller| caller.sampled);
            return Self {
                trace: kept.map(|caller| noted(&caller, None, headers)),
                onward: None,
                begins: false,
            };
        };
        let parent = caller.unwrap_or_else(|| TraceParent {
            trace_id: chance.wide().max(1).to_be_bytes(),
            span: span(chance),
            sampled: false,
            random: true,
        });
        let kept = tracing.sampler.keeps(caller.map(|caller| caller.sampled), &parent.trace_id);
        let Received { method, is_tls } = received;
        let spans = kept.then(|| Spans { server: span(chance), client: span(chance), method, is_tls });
        let onward = match spans {
            Some(spans) => Some(TraceParent { span: spans.client, sampled: true, ..parent }),
            None => Some(parent).filter(|_| caller.is_none()),
        };
        let mut trace = noted(&parent, spans, headers);
        if caller.is_none() {
            (trace.parent, trace.state) = (None, "".into());
        }
        Self { trace: Some(trace), onward: onward.filter(|_| tracing.propagate), begins: caller.is_none() }
    }

    /// Leaves the fields unchanged: the upstream may not be an inference server.
    pub(crate) fn leave_untouched(&mut self) {
        self.onward = None;
    }

    /// Writes the fields for the upstream: in the place of the caller's, or else last.
    pub(crate) fn write(&self, fields: &mut HeaderMap) {
        let Some(onward) = self.onward else { return };
        if self.begins {
            headers::take_out(fields, &TRACESTATE);
        }
        if let Ok(value) = HeaderValue::from_bytes(&onward.format()) {
            fields.insert(TRACEPARENT, value);
        }
    }
}

/// Returns the caller's `traceparent`; `None` unless the request has exactly one, and it is valid.
fn caller(headers: &HeaderMap) -> Option<TraceParent> {
    // A request has few fields: comparing their names costs less than a hash.
    let mut values = headers.iter().filter(|(name, _)| *name == TRACEPARENT).map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then(|| TraceParent::parse(value.as_bytes()))?
}

fn noted(parent: &TraceParent, spans: Option<Spans>, headers: &HeaderMap) -> Box<Trace> {
    Box::new(Trace {
        trace_id: parent.trace_id,
        parent: Some(parent.span),
        sampled: parent.sampled || spans.is_some(),
        spans,
        state: state(headers),
    })
}

fn span(chance: &IdSource) -> [u8; 8] {
    chance.bits().max(1).to_be_bytes()
}

/// Returns `tracestate`, its lines joined. If it is too long, the entries on the left that fit.
fn state(headers: &HeaderMap) -> Box<str> {
    let mut state = String::new();
    for line in headers.get_all(TRACESTATE) {
        let Ok(line) = str::from_utf8(line.as_bytes()) else { return "".into() };
        for entry in line.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let comma = usize::from(!state.is_empty());
            if state.len() + comma + entry.len() > limits::TRACESTATE_BYTES {
                return state.into();
            }
            state.extend([&","[..comma], entry]);
        }
    }
    state.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        let mut headers = HeaderMap::new();
        headers.extend(pairs);
        headers
    }

    fn list(headers: &HeaderMap) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
    }

    const PLAIN: Received = Received { method: "POST", is_tls: false };

    const KEPT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const DROPPED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[test]
    fn a_state_is_joined_and_cut_between_entries() {
        let long = format!("a={}", "x".repeat(255));
        for (lines, expected) in [
            (&[][..], String::new()),
            (&[""], String::new()),
            (&["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".into()),
            (&["foo=1", "bar=2,baz=3"], "foo=1,bar=2,baz=3".into()),
            (&["foo=1 , ,\tbar=2", "", ",,"], "foo=1,bar=2".into()),
            (&["ä=1"], "ä=1".into()),
            (&[&long, "b=1"], format!("{long},b=1")),
            (&[&long, &long[..254]], format!("{long},{}", &long[..254])),
            (&[&long, &long[..255], "b=1"], long.clone()),
            (&[&long, &long, "b=1"], long.clone()),
            (&[&"x".repeat(600)], String::new()),
        ] {
            let pairs: Vec<_> = lines.iter().map(|line| ("tracestate", *line)).collect();
            let state = state(&fields(&pairs));
            assert_eq!(*state, *expected, "{lines:?}");
            assert!(state.len() <= 512);
        }
        let mut odd = HeaderMap::new();
        odd.append(TRACESTATE, HeaderValue::from_bytes(b"a=\xff").unwrap());
        assert_eq!(&*state(&odd), "");
    }

    #[test]
    fn without_tracing_only_a_kept_trace_is_noted() {
        let chance = IdSource::new();
        let (one, two) = (("traceparent", KEPT), ("traceparent", DROPPED));
        let place = TracePosition::of(&fields(&[one, ("tracestate", "a=1")]), PLAIN, None, &chance);
        let trace = place.trace.unwrap();
        assert_eq!((trace.sampled, trace.spans, &*trace.state), (true, None, "a=1"));
        assert_eq!(trace.parent, Some([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]));
        for given in [&[][..], &[two], &[one, one], &[("traceparent", "00-x")]] {
            assert_eq!(TracePosition::of(&fields(given), PLAIN, None, &chance).trace, None, "{given:?}");
        }
    }

    #[test]
    fn the_fields_keep_their_order() {
        let chance = IdSource::new();
        let tracing = Tracing::default();
        let sent =
            fields(&[("a", "1"), ("traceparent", KEPT), ("tracestate", "s=1"), ("b", "2"), ("a", "3")]);
        let place = TracePosition::of(&sent, PLAIN, Some(&tracing), &chance);
        let mut onward = sent.clone();
        place.write(&mut onward);
        let (sent, onward) = (list(&sent), list(&onward));
        let differ: Vec<_> = (0..sent.len()).filter(|&at| sent[at] != onward[at]).collect();
        let client = place.trace.unwrap().spans.unwrap().client;
        let parent = TraceParent::parse(KEPT.as_bytes()).unwrap();
        let expected = TraceParent { span: client, ..parent }.format();
        assert_eq!((differ.len(), onward[differ[0]].1.as_bytes()), (1, &expected[..]));

        // A trace that begins here has no state yet; the other fields keep their order.
        let sent = fields(&[("tracestate", "s=1"), ("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]);
        let mut onward = sent.clone();
        TracePosition::of(&sent, PLAIN, Some(&tracing), &chance).write(&mut onward);
        let names: Vec<_> = list(&onward).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "a", "b", "c", "traceparent"]);
    }
}
