//! The facts of an exchange in the fields of its response head: counts and times that are not in the body. Times there
//! are whole milliseconds.
//!
//! - text-generation-inference, unstreamed only (`router/src/server.rs`): `x-prompt-tokens`, `x-generated-tokens`,
//!   `x-queue-time`. Of the sequences of `best_of` the output is that of the best one. Its `x-inference-time` is the sum
//!   of prefill and decode, and `x-time-per-token` is that sum divided by the tokens, so neither part is known.
//! - text-embeddings-inference: `x-compute-tokens`, the only count of its answers.
//! - Amazon Bedrock, unstreamed only: `x-amzn-bedrock-input-token-count` and `-output-token-count`. The answers of some
//!   models have no count; one in an answer replaces these.
//! - vLLM, for embeddings sent as bytes: `metadata`, a JSON object with the usage in it.

use http::HeaderMap;
use scan::{Count, Counts, Dialect, Event, Extent, Framing, Scanner, Scope, ServerReport, Sink, Usage};

/// Milliseconds in nanoseconds.
const MS: u64 = 1_000_000;

/// Returns true if the head of an answer in bytes holds the usage of an embedding.
pub(crate) fn is_counted(headers: &HeaderMap) -> bool {
    headers.contains_key(METADATA)
}

/// The field in which vLLM sends the usage of embeddings that are sent as bytes.
const METADATA: &str = "metadata";

/// Passes the events of a response head to `sink`. With `best_of`, the request asks for the best of several sequences.
pub(crate) fn read(dialect: Dialect, headers: &HeaderMap, best_of: bool, sink: &mut impl Sink) {
    let [mut generated, mut prompt, mut only_prompt, mut queue_time] = [None; 4];
    // Most heads have none of these fields: comparing the names of all fields costs less than three hashes.
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix("x-") else { continue };
        let number = match name {
            "generated-tokens" | "amzn-bedrock-output-token-count" => &mut generated,
            "prompt-tokens" => &mut prompt,
            "compute-tokens" | "amzn-bedrock-input-token-count" => &mut only_prompt,
            "queue-time" => &mut queue_time,
            _ => continue,
        };
        // Of several fields of a name, the first counts.
        number.get_or_insert_with(|| value.to_str().ok()?.trim().parse::<u64>().ok());
    }
    let mut has_any = false;
    if let Some(output) = generated.flatten() {
        let (scope, output) = match best_of {
            true => (Scope::Running(0), None),
            false => (Scope::Whole, Some(output)),
        };
        let input = prompt.or(only_prompt).flatten();
        let counts = Counts::of([(Count::Input, input), (Count::Output, output)]);
        sink.event(Event::Usage(Usage { scope, counts }));
        has_any = true;
    } else if let Some(input) =
        only_prompt.flatten().filter(|_| !dialect.generates() || dialect == Dialect::Unknown)
    {
        let counts = Counts::of([(Count::Input, input)]);
        sink.event(Event::Usage(Usage { scope: Scope::Whole, counts }));
        has_any = true;
    }
    if let Some(queue) = queue_time.flatten() {
        let queue_ns = Some(queue.saturating_mul(MS));
        sink.event(Event::Server(ServerReport { queue_ns, ..ServerReport::default() }));
        has_any = true;
    }
    if dialect == Dialect::Embeddings
        && let Some(metadata) = headers.get(METADATA)
    {
        let mut scanner = Scanner::new(dialect, Framing::Json);
        scanner.feed(metadata.as_bytes(), sink);
        scanner.end(sink);
    }
    if has_any {
        sink.frame(Extent { from: 0, to: 0, whole: true, is_usage: false, usage: None, timings: None });
    }
}
