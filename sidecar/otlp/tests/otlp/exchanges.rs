//! Finished exchanges for the tests.

use std::sync::Arc;

use meter::{
    Ending, ExchangeId, Identity, LoadSpan, Provenance, Record, Spans, Timing, TokenType, Tokens, Trace,
};
use otlp::Finished;
use scan::{Dialect, Finish, Links, Name, Sampling};

pub(crate) use crate::collector::said;

pub(crate) const TRACE: [u8; 16] = [7; 16];
pub(crate) const CALLER: [u8; 8] = [1; 8];
pub(crate) const SERVER: [u8; 8] = [2; 8];
pub(crate) const CLIENT: [u8; 8] = [3; 8];
pub(crate) const STARTED: u64 = 1_800_000_000_000_000_000;
pub(crate) const UPLOAD: u64 = 300_000_000;

/// Returns a successful streamed chat: 120 input tokens, 100 of them cached, and 50 output tokens.
pub(crate) fn chat() -> Record {
    let mut identity = Identity::new("gpu-1", "vllm", Dialect::OpenaiChat, "qwen3-8b");
    identity.exchange = ExchangeId([0xab; 16]);
    identity.response_model = Some("qwen3-8b-fp8".into());
    identity.response_id = Some("chatcmpl-1".into());
    identity.links = Some(Box::new(Links {
        previous_response: Name::cut(b"resp_0"),
        conversation: Name::cut(b"conv_1"),
        ..Links::default()
    }));
    identity.started_unix_ns = STARTED;
    identity.trace = Some(Box::new(Trace {
        trace_id: TRACE,
        parent: Some(CALLER),
        sampled: true,
        spans: Some(Spans { server: SERVER, client: CLIENT, method: "POST", is_tls: false }),
        state: "vendor=x".into(),
    }));
    let mut tokens = Tokens {
        input_provenance: Provenance::Reported,
        output_provenance: Provenance::Reported,
        ..Tokens::NONE
    };
    tokens.by_type[TokenType::Input as usize] = 20;
    tokens.by_type[TokenType::InputCached as usize] = 100;
    tokens.by_type[TokenType::Output as usize] = 40;
    tokens.by_type[TokenType::OutputReasoning as usize] = 10;
    let mut finishes = [None; meter::record::FINISHES];
    finishes[0] = Some(Finish::Stop);
    Record {
        identity,
        asked_stream: true,
        streamed: true,
        status: 200,
        answers: 1,
        choices: 1,
        finishes,
        sampling: Sampling { temperature: Some(0.7), max_tokens: Some(256), ..Sampling::default() },
        ending: Ending::Complete,
        tokens,
        timing: Timing {
            upload_ns: UPLOAD,
            duration_ns: 2_000_000_000,
            first_byte_ns: Some(190_000_000),
            first_chunk_ns: Some(195_000_000),
            first_token_ns: Some(200_000_000),
            first_visible_ns: Some(900_000_000),
            concurrency: 2.5,
            ..Timing::default()
        },
        load: LoadSpan::single(),
        visible_chars: 160,
        usage_rejected: 0,
        cached_excess: 0,
        disagreement: None,
        unknown_counts: Vec::new(),
        is_compacted: false,
        upstream_attempts: 1,
    }
}

/// Returns the same exchange without a trace.
pub(crate) fn untraced() -> Record {
    let mut record = chat();
    record.identity.trace = None;
    record
}

pub(crate) fn finished(record: Record) -> Finished {
    Finished { record: Arc::new(record), energy: None, charge: None }
}
