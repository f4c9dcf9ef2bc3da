//! Running counts on the wire: what the proxy requests from each kind of server, and the count of a stream that its
//! client left.

use meter::{Ending, Provenance};
use relay::{ServerKind, UsageStep};
use usage::Policy;

use crate::support::{Proxy, now};
use crate::usage::{ASKED, FINISH, HEAD, PLAIN, Server, ask, chunk, delta, record, request, steps};

/// llama.cpp's frames with `timings_per_token`, as build 11669 sends them.
const COUNTED: &str = concat!(
    "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"reasoning_content\":\"in\"}}],\"created\":1,\"id\":\"chatcmpl-z\",",
    "\"model\":\"tiny\",\"object\":\"chat.completion.chunk\",\"timings\":{\"cache_n\":15,\"prompt_n\":1,\"prompt_ms\":0.389,",
    "\"prompt_per_token_ms\":0.389,\"predicted_n\":3,\"predicted_ms\":0.501}}\n\n"
);
const BARE: &str = concat!(
    "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"reasoning_content\":\"in\"}}],\"created\":1,\"id\":\"chatcmpl-z\",",
    "\"model\":\"tiny\",\"object\":\"chat.completion.chunk\"}\n\n"
);

fn llama_cpp(server: &Server) -> Proxy {
    Proxy::with(server.upstream.address, |plan| {
        plan.upstreams[0].usage = Policy::Continuous;
        plan.upstreams[0].kind = Some(ServerKind::LlamaCpp);
    })
}

/// Streams one counted frame and then nothing.
fn stalling(frame: &'static str) -> Server {
    Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(chunk(frame));
        peer.closed_after(now());
    })
}

#[test]
fn aborted_llama_cpp_stream_is_counted_by_timings() {
    let server = stalling(COUNTED);
    let proxy = llama_cpp(&server);
    let mut client = proxy.connect();
    client.send(request(PLAIN));
    client.head();
    let seen = client.until("\n\n");
    drop(client);
    assert!(seen.contains(BARE.trim_end()) && !seen.contains("timings"), "{seen}");
    let asked =
        r#"{"model":"m","stream": true,"timings_per_token":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(server.bodies(), [asked]);
    let record = record(&proxy);
    assert_eq!((record.ending, record.tokens.input(), record.tokens.output()), (Ending::ClientAbort, 16, 3));
    assert_eq!(record.tokens.input_provenance, Provenance::Running);
    assert_eq!(record.tokens.output_provenance, Provenance::Running);
    assert_eq!(steps(&proxy), [UsageStep::Continuous]);
}

#[test]
fn aborted_llama_cpp_response_is_counted_by_timings() {
    let frame = concat!(
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"in\",\"item_id\":\"rs_1\",",
        "\"timings\":{\"cache_n\":15,\"prompt_n\":1,\"prompt_ms\":0.3,\"predicted_n\":2,\"predicted_ms\":0.1}}\n\n"
    );
    let bare = frame.split(",\"timings\"").next().unwrap().to_owned() + "}";
    let server = stalling(frame);
    let proxy = llama_cpp(&server);
    let mut client = proxy.connect();
    client.send(request(PLAIN).replace("/chat/completions", "/responses"));
    client.head();
    let seen = client.until("\n\n");
    drop(client);
    assert!(seen.contains(&bare) && !seen.contains("timings"), "{seen}");
    assert_eq!(server.bodies(), [r#"{"model":"m","stream": true,"timings_per_token":true}"#]);
    let record = record(&proxy);
    assert_eq!((record.tokens.input(), record.tokens.output()), (16, 2));
}

#[test]
fn only_timings_are_requested_from_llama_cpp_completions() {
    let server = Server::streaming();
    let proxy = llama_cpp(&server);
    ask(proxy.address(), &request(PLAIN).replace("/chat/completions", "/completions"));
    let client_asks = r#"{"stream":true,"timings_per_token":true}"#;
    ask(proxy.address(), &request(client_asks).replace("/chat/completions", "/completions"));
    assert_eq!(server.bodies(), [r#"{"model":"m","stream": true,"timings_per_token":true}"#, client_asks]);
    assert_eq!(steps(&proxy), [UsageStep::Continuous, UsageStep::ClientAsked]);
}

/// An offset into the bytes of a conversation counts the server's bytes.
#[test]
fn resumable_conversation_keeps_its_frames() {
    let server = Server::streaming();
    let proxy = llama_cpp(&server);
    ask(proxy.address(), &request(PLAIN).replace("Host: h", "Host: h\r\nX-Conversation-Id: c1"));
    assert_eq!(server.bodies(), [ASKED]);
}

#[test]
fn no_timings_are_requested_from_unknown_servers() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| plan.upstreams[0].usage = Policy::Continuous);
    ask(proxy.address(), &request(PLAIN));
    assert_eq!(server.bodies(), [ASKED]);
}

/// Without the final count, a client that leaves between the finish and the usage event would pay for its answer only.
#[test]
fn stream_left_after_finish_is_counted_in_full() {
    let member = r#","usage":{"prompt_tokens":100000,"completion_tokens":2}}"#;
    let counted = |frame: &str| frame.replace("}\n\n", &format!("{member}\n\n"));
    let sent = format!("{}{}", counted(&delta("a")), counted(FINISH));
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&sent));
        peer.closed_after(now());
    });
    let proxy = server.proxy(Policy::Continuous);
    let mut client = proxy.connect();
    client.send(request(PLAIN));
    client.head();
    client.until(FINISH);
    drop(client);
    let record = record(&proxy);
    assert_eq!((record.tokens.input(), record.tokens.output()), (100_000, 2));
    assert_ne!(record.tokens.input_provenance, Provenance::None);
}

/// vLLM ignores `continuous_usage_stats` alone, so the proxy adds the option that it needs.
#[test]
fn running_counts_alone_get_the_usage_option() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        plan.upstreams[0].usage = Policy::Continuous;
        plan.upstreams[0].kind = Some(ServerKind::Vllm);
    });
    let sent = r#"{"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":true}}"#;
    let (_, body) = ask(proxy.address(), &request(sent));
    assert!(!body.contains("usage"), "{body}");
    assert_eq!(server.bodies(), [sent.replace("false", "true")]);
    assert_eq!(record(&proxy).tokens.input(), 7);
}

/// llama.cpp rejects a flag that is neither `true` nor `false`: its client must get that answer.
#[test]
fn flags_rejected_by_llama_cpp_reach_it() {
    let server = Server::streaming();
    let proxy = llama_cpp(&server);
    let sent = [
        r#"{"stream":true,"timings_per_token":0}"#,
        r#"{"stream":true,"timings_per_token":"false"}"#,
        r#"{"stream":true,"stream_options":{"include_usage":0}}"#,
    ];
    for body in sent {
        ask(proxy.address(), &request(body));
    }
    assert_eq!(server.bodies(), sent);
    assert_eq!(steps(&proxy), [UsageStep::Unreadable; 3]);
}

/// A frame of `/v1/completions` with `"verbose":true`, as build 11669 sends it.
#[test]
fn verbose_completion_is_as_without_timings() {
    const TIMINGS: &str = concat!(
        ",\"timings\":{\"cache_n\":0,\"prompt_n\":1,\"prompt_ms\":0.533,\"predicted_n\":1,\"predicted_ms\":0.001,",
        "\"predicted_per_token_ms\":0.0,\"predicted_per_second\":0.0}"
    );
    let frame = |timings: &str| {
        format!(
            "data: {{\"choices\":[{{\"text\":\"(new\",\"index\":0,\"logprobs\":null,\"finish_reason\":null}}],\"model\":\"tiny\",\"object\":\"text_completion\",\"__verbose\":{{\"index\":0,\"content\":\"(new\",\"tokens\":[1744],\"stop\":false,\"id_slot\":-1,\"tokens_predicted\":1,\"tokens_evaluated\":1{timings}}}{timings}}}\n\n"
        )
    };
    let sent = frame(TIMINGS);
    let server = Server::start(move |peer, _| {
        peer.send(HEAD);
        peer.send(chunk(&sent));
        peer.closed_after(now());
    });
    let proxy = llama_cpp(&server);
    let mut client = proxy.connect();
    client.send(request(r#"{"stream":true,"verbose":true}"#).replace("/chat/completions", "/completions"));
    client.head();
    let seen = client.until("\n\n");
    drop(client);
    assert!(seen.ends_with(&frame("")), "{seen}");
    let record = record(&proxy);
    assert_eq!((record.tokens.input(), record.tokens.output()), (1, 1), "counted by timings");
}
