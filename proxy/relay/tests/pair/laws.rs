//! The laws of a pair of connections, for any bytes of its peers: messages are forwarded in canonical form, with the meaning
//! in which they were received, and depend neither on cuts nor on bytes behind an error.

use http1::{Body, Part, Table, Version};
use meter::Tokens;
use relay::Dropped;

use super::canonical::{self, Message};
use super::naive::{self, Fields, Framing, Read};
use super::run::{Seen, SeenServer, Stage};
use super::script::Script;

/// A request, as an oracle reads it.
#[derive(Debug)]
struct Request {
    method: String,
    target: String,
    fields: Fields,
    payload: Vec<u8>,
    is_whole: bool,
    /// True if no other request follows it on its connection.
    is_last: bool,
}

/// A response, as the crate `http1` reads it, which has oracles of its own.
#[derive(Debug, Default)]
struct Answer {
    status: u16,
    fields: Fields,
    payload: Vec<u8>,
    is_whole: bool,
    /// True if another one may follow on its connection.
    is_reusable: bool,
}

/// The outcome of a script, without the parts that depend on cuts.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    requests: Vec<(String, String, String)>,
    answers: Vec<(u16, String, bool)>,
    /// The metered facts that do not depend on time: status, characters, tokens.
    records: Vec<(u16, u64, Tokens)>,
    /// True if a server sent more than its answers. Cuts decide if the proxy notices that before the next request.
    has_surplus: bool,
}

/// Asserts the laws of a script of any bytes.
pub(crate) fn assert_pair(stage: &Stage, input: &[u8]) {
    assert_script(stage, &Script::read(input));
}

/// Asserts the laws of a script.
pub(crate) fn assert_script(stage: &Stage, script: &Script) {
    // HTTP/2 and tunnels do not have HTTP/1.1 messages.
    let switches = |answer: &Vec<u8>| answer.windows(3).any(|status| status == b"101");
    if script.client.starts_with(b"PRI") || script.answers.iter().any(switches) {
        return;
    }
    let outcome = assert_laws(script, &stage.run(script));
    if script.only_cuts() && !script.steps.is_empty() {
        let script_of_whole = script.whole();
        let whole = assert_laws(&script_of_whole, &stage.run(&script_of_whole));
        let is_same = outcome == whole || outcome.has_surplus || whole.has_surplus;
        assert!(is_same, "cuts change {whole:#?}\nto {outcome:#?}\n{script}");
    }
}

fn assert_laws(script: &Script, seen: &Seen) -> Outcome {
    let show = || {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let servers = seen.servers.iter().map(|server| (text(&server.received), text(&server.sent)));
        format!(
            "{script}\n{} were sent, {} bytes of memory were free; received: {}\n{:#?}",
            seen.sent,
            seen.free_output_bytes,
            text(&seen.client),
            servers.collect::<Vec<_>>()
        )
    };
    assert_eq!(seen.in_use, [0; 4], "something is still in use\n{}", show());
    assert!(!seen.outlives, "a client that left is not noticed\n{}", show());
    assert!(!seen.lost.contains(&Dropped::Panic), "a panic\n{}", show());
    let sent = sent_requests(&script.client[..seen.sent]);
    let to_head = |number: usize| sent.get(number).is_some_and(|request: &Request| request.method == "HEAD");
    let received = canonical::responses(&seen.client, to_head);
    let received = received.unwrap_or_else(|fault| panic!("to the client: {fault}\n{}", show()));
    let finals: Vec<&Message> =
        received.iter().filter(|answer| !(100..200).contains(&answer.status())).collect();

    // Each whole request is one that was sent, in the same order.
    let (mut forwarded, mut has_surplus) = (Vec::new(), false);
    for server in &seen.servers {
        let requests = canonical::requests(&server.received);
        let requests = requests.unwrap_or_else(|fault| panic!("to the server: {fault}\n{}", show()));
        let (answers, rest) = answers(server, &requests);
        has_surplus |= answers.len() == requests.len() && !rest.is_empty();
        for (at, request) in requests.iter().enumerate() {
            let next = requests.get(at + 1);
            let is_upgrade = request.all("upgrade").next().is_some();
            let is_answered = answers.get(at).is_some_and(|answer| answer.is_reusable);
            let is_kept = request.is_whole && is_answered && !is_upgrade;
            assert!(next.is_none() || is_kept, "a connection was used again\n{}", show());
        }
        let mut answers = answers.into_iter();
        for (at, request) in requests.into_iter().enumerate() {
            let number = server.numbers.get(at).copied().unwrap_or(usize::MAX);
            forwarded.push((number, request, answers.next()));
        }
    }
    forwarded.sort_by_key(|(number, ..)| *number);
    let (mut from, mut requests) = (0, Vec::new());
    for (_, request, answer) in forwarded {
        let [method, target, _] = &request.start;
        let is = |sent: &Request| {
            let is_same = if request.is_whole && sent.is_whole {
                sent.payload == request.payload
            } else {
                !request.is_whole && sent.payload.starts_with(&request.payload)
            };
            sent.method == *method
                && sent.target.ends_with(target.as_str())
                && is_same
                && has_fields(&sent.fields, &request.fields)
        };
        if script.is_edited {
            // The same request may be sent again without its added option.
            let is_sent =
                sent.iter().any(|sent| sent.method == *method && sent.target.ends_with(target.as_str()));
            assert!(is_sent, "the client did not send {request:?}\n{}", show());
            continue;
        }
        let found = sent[from..].iter().position(is);
        let found = found.unwrap_or_else(|| panic!("the client did not send {request:?}\n{}", show()));
        // The client's response at this position is its answer, or the beginning of that.
        if let Some(given) = finals.get(from + found).filter(|given| !is_own(given)) {
            let answer = answer.unwrap_or_default();
            let is_right = given.status() == answer.status
                && answer.payload.starts_with(&given.payload)
                && (!given.is_whole || answer.is_whole && answer.payload == given.payload)
                && has_fields(&answer.fields, &given.fields);
            assert!(is_right, "{given:?} in place of {answer:?}\n{}", show());
        }
        from += found + 1;
        if request.is_whole {
            requests.push((method.clone(), target.clone(), request.payload.escape_ascii().to_string()));
        }
    }
    for answer in finals.iter().take(finals.len().saturating_sub(1)) {
        assert!(answer.is_whole && !closes(answer), "an answer after the last one\n{}", show());
    }
    let is_last = finals.last().is_some_and(|answer| closes(answer) || !answer.is_whole);
    let wholes = sent.iter().filter(|request| request.is_whole).count();
    let is_over = is_last || sent.iter().take(finals.len()).any(|request| request.is_last);
    assert!(!script.only_cuts() || is_over || finals.len() >= wholes, "a request has no answer\n{}", show());
    let answers = finals
        .iter()
        .map(|answer| (answer.status(), answer.payload.escape_ascii().to_string(), answer.is_whole));
    let records = seen.records.iter().map(|record| (record.status, record.visible_chars, record.tokens));
    Outcome { requests, answers: answers.collect(), records: records.collect(), has_surplus }
}

/// Returns true if each forwarded field was received, except for those of the hop.
fn has_fields(received: &Fields, forwarded: &Fields) -> bool {
    let is_of_hop = |name: &str| ["host", "connection", "transfer-encoding"].contains(&name);
    forwarded.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).all(|(name, value)| {
        let value = String::from_utf8_lossy(value);
        let is = |field: &&(String, Vec<u8>)| field.0.eq_ignore_ascii_case(&name);
        let mut values = received.iter().filter(is).map(|(_, value)| String::from_utf8_lossy(value));
        is_of_hop(&name) || values.any(|received| received == value || name == "content-length")
    })
}

/// Returns true if the proxy made this answer.
fn is_own(answer: &Message) -> bool {
    let text = String::from_utf8_lossy(&answer.payload);
    // An answer to HEAD has no text.
    let is_bare = answer.payload.is_empty() && answer.status() >= 400;
    text.contains("tokenmeter") || text.contains("under-test") || is_bare
}

fn closes(message: &Message) -> bool {
    message.all("connection").any(|value| value.to_ascii_lowercase().contains("close"))
}

/// Reads the requests that were sent, up to the first that is not valid; the last one may be incomplete.
fn sent_requests(bytes: &[u8]) -> Vec<Request> {
    let (mut rest, mut requests) = (bytes.to_vec(), Vec::new());
    while let Read::Whole(head, behind) = naive::request(&rest)
        && let Some(framing) = naive::request_framing(&head)
    {
        let ([method, target, version], fields) = head;
        let named = fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case("connection"));
        let named = named.map(|(_, value)| String::from_utf8_lossy(value).to_ascii_lowercase());
        let named = named.collect::<String>();
        let is_last = named.contains("close") || version == "HTTP/1.0" && !named.contains("keep-alive");
        let mut request = Request { method, target, fields, payload: Vec::new(), is_whole: false, is_last };
        if let Framing::Length(length) = framing {
            let here = usize::try_from(length).unwrap_or(usize::MAX).min(behind.len());
            request.payload = behind[..here].to_vec();
            request.is_whole = here as u64 == length;
            rest = behind[here..].to_vec();
        } else {
            match naive::chunked(&behind, true, &mut request.payload) {
                Read::Whole(_, next) => (request.is_whole, rest) = (true, next),
                Read::Partial | Read::Invalid => rest = Vec::new(),
            }
        }
        requests.push(request);
    }
    requests
}

/// Reads the answers that a server sent to these requests, and the bytes behind them.
fn answers<'a>(server: &'a SeenServer, requests: &[Message]) -> (Vec<Answer>, &'a [u8]) {
    let (mut rest, mut answers) = (&server.sent[..], Vec::new());
    for request in requests {
        let Some((answer, len)) = answer(rest, request.start[0] == "HEAD", server.is_ended) else { break };
        rest = &rest[len..];
        answers.push(answer);
    }
    (answers, rest)
}

fn answer(bytes: &[u8], to_head: bool, is_ended: bool) -> Option<(Answer, usize)> {
    let mut from = 0;
    loop {
        let mut table = Table::default();
        let head = http1::response(&bytes[from..], &mut table).ok().flatten()?;
        let status = head.start.code;
        let received = &bytes[from..];
        from += head.len;
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let fields = head.lines.iter().map(|line| (line.name.to_owned(), line.value.to_vec())).collect();
        let framing = http1::response_body(&head, to_head).ok()?;
        let is_closed = head
            .lines
            .all("connection")
            .any(|value| http1::tokens(value).any(|token| token.eq_ignore_ascii_case(b"close")));
        let mut body = framing.body;
        let (mut at, mut payload) = (head.len, Vec::new());
        let is_whole = loop {
            match body.next(received, &mut at) {
                Ok(Some(Part::Data { data, .. })) => payload.extend_from_slice(&received[data]),
                Ok(Some(Part::End { .. })) => break true,
                Ok(None) => break is_ended && matches!(body, Body::Close),
                Err(_) => break false,
            }
        };
        let is_reusable = is_whole && framing.is_reusable && !is_closed && head.version == Version::Http11;
        let start = from - head.len;
        return Some((Answer { status, fields, payload, is_whole, is_reusable }, start + at));
    }
}
