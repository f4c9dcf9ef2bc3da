//! The configured members of a request, and the service tier of requests and answers.

use std::sync::Arc;

use super::scan_every_way;
use crate::{Dialect, Framing, Member, RequestScanner, SelectedMembers};

fn selected() -> Arc<SelectedMembers> {
    Arc::new(SelectedMembers::new([
        Member::User,
        Member::Metadata("user_id".into()),
        Member::SafetyIdentifier,
        Member::Metadata("a.b[]".into()),
    ]))
}

/// The values of the configured members, and the tier; equal for the whole body and every cut in two.
fn values(body: &str) -> ([String; 4], String) {
    let selected = selected();
    let read = |slices: [&[u8]; 2]| {
        let mut scanner = RequestScanner::selecting(Arc::clone(&selected));
        slices.iter().for_each(|slice| scanner.feed(slice));
        let request = scanner.end();
        let words: Vec<String> =
            scanner.selected_values().iter().map(|name| name.as_str().to_owned()).collect();
        let model = request.model().to_owned();
        (
            words.try_into().expect("four members are configured"),
            scanner.service_tier().as_str().to_owned(),
            model,
        )
    };
    let expected = read([body.as_bytes(), b""]);
    for cut in 0..body.len() {
        let (head, tail) = body.as_bytes().split_at(cut);
        assert_eq!(read([head, tail]), expected, "{body} at {cut}");
    }
    (expected.0, expected.1)
}

#[test]
fn configured_members_are_read() {
    let long = "u".repeat(128);
    let longer = format!("{long}u");
    let escaped = "\\u0041".repeat(60);
    for (body, expected) in [
        ("{}".to_owned(), ["", "", "", ""]),
        (
            r#"{"user":"u1","metadata":{"x":"no","user_id":"m1","a.b[]":"dots"},"safety_identifier":"s1"}"#
                .to_owned(),
            ["u1", "m1", "s1", "dots"],
        ),
        (
            r#"{"messages":[{"user":"no","metadata":{"user_id":"no"}}],"user":"yes"}"#.to_owned(),
            ["yes", "", "", ""],
        ),
        (r#"{"user":"\u00e9\"","metadata":null,"safety_identifier":7}"#.to_owned(), ["\u{e9}\"", "", "", ""]),
        // The last of two members counts; a replaced object is discarded.
        (
            r#"{"user":"a","user":"b","metadata":{"user_id":"m"},"metadata":{"x":"y"}}"#.to_owned(),
            ["b", "", "", ""],
        ),
        (r#"{"user":"a","user":null,"metadata":{"user_id":["m"]}}"#.to_owned(), ["", "", "", ""]),
        // Half a name would identify another person.
        (format!(r#"{{"user":"{long}","safety_identifier":"{longer}"}}"#), [long.as_str(), "", "", ""]),
        (format!(r#"{{"user":"{escaped}"}}"#), ["", "", "", ""]),
    ] {
        assert_eq!(values(&body).0, expected, "{body}");
    }
}

#[test]
fn nothing_is_kept_without_configured_members() {
    let mut scanner = RequestScanner::new();
    scanner.feed(br#"{"user":"u1","metadata":{"user_id":"m1"},"model":"m"}"#);
    assert_eq!(scanner.end().model(), "m");
    assert!(scanner.selected_values().is_empty());
}

#[test]
fn members_beyond_the_limit_are_ignored() {
    let members = (0..40).map(|n| Member::Metadata(format!("k{n}").into()));
    let selected = Arc::new(SelectedMembers::new(members));
    let mut scanner = RequestScanner::selecting(selected);
    scanner.feed(br#"{"metadata":{"k0":"first","k31":"last","k32":"none"}}"#);
    let values: Vec<&str> = scanner.selected_values().iter().map(|name| name.as_str()).collect();
    assert_eq!((values.len(), values[0], values[31]), (crate::limits::MAX_SELECTED_MEMBERS, "first", "last"));
}

#[test]
fn the_tier_of_a_request_is_read() {
    for (body, tier) in [
        (r#"{"service_tier":"flex"}"#, "flex"),
        (r#"{"serviceTier":"priority"}"#, "priority"),
        (r#"{"service_tier":"flex","service_tier":null}"#, ""),
        (r#"{"service_tier":"my secret"}"#, ""),
        (r#"{"service_tier":"a\nb"}"#, ""),
        (r#"{"service_tier":"a-word-that-is-longer-than-any-tier-is"}"#, ""),
    ] {
        assert_eq!(values(body).1, tier, "{body}");
    }
}

/// Each dialect has the words on which the price depends in its own places, streamed and not.
#[test]
fn every_member_on_which_the_price_depends_is_read() {
    let anthropic =
        |members: &str| format!(r#"{{"type":"message","usage":{{"output_tokens":1,{members}}}}}"#);
    let gemini = |members: &str| {
        format!(
            r#"{{"candidates":[{{"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":1,{members}}}}}"#
        )
    };
    let openai = |members: &str| format!(r#"{{"choices":[],"usage":{{"prompt_tokens":1,{members}}}}}"#);
    let rows = [
        (Dialect::Anthropic, anthropic(r#""service_tier":"standard","speed":"fast""#), "fast"),
        (Dialect::Anthropic, anthropic(r#""service_tier":"batch","inference_geo":"us""#), "batch+us"),
        (
            Dialect::Anthropic,
            anthropic(r#""speed":"fast","inference_geo":"us","service_tier":"priority""#),
            "fast+priority+us",
        ),
        (
            Dialect::Anthropic,
            anthropic(r#""service_tier":"standard","speed":"standard","inference_geo":"global""#),
            "standard",
        ),
        (Dialect::Anthropic, anthropic(r#""inference_geo":"not_available""#), ""),
        (
            Dialect::Anthropic,
            anthropic(r#""inference_geo":"not_available","speed":null,"service_tier":"batch""#),
            "batch",
        ),
        (Dialect::Gemini, gemini(r#""serviceTier":"priority""#), "priority"),
        (Dialect::Gemini, gemini(r#""serviceTier":"SERVICE_TIER_FLEX""#), "flex"),
        (Dialect::Gemini, gemini(r#""trafficType":"ON_DEMAND_PRIORITY""#), "priority"),
        (Dialect::Gemini, gemini(r#""trafficType":"ON_DEMAND_FLEX","serviceTier":"flex""#), "flex"),
        (Dialect::Gemini, gemini(r#""trafficType":"PROVISIONED_THROUGHPUT""#), "provisioned_throughput"),
        (Dialect::Gemini, gemini(r#""trafficType":"ON_DEMAND""#), "ON_DEMAND"),
        (Dialect::Gemini, gemini(r#""trafficType":"TRAFFIC_TYPE_UNSPECIFIED""#), ""),
        (
            Dialect::OpenaiChat,
            openai(r#""extra_properties":{"google":{"traffic_type":"ON_DEMAND_PRIORITY"}}"#),
            "priority",
        ),
        (Dialect::OpenaiChat, openai(r#""inference_geo":"us","speed":"fast""#), "fast+us"),
        (Dialect::Unknown, anthropic(r#""service_tier":"batch","inference_geo":"us""#), "batch+us"),
        (Dialect::Unknown, gemini(r#""trafficType":"ON_DEMAND_PRIORITY""#), "priority"),
        (Dialect::Unknown, r#"{"service_tier":"flex","usage":{"prompt_tokens":1}}"#.to_owned(), "flex"),
    ];
    for (dialect, body, tier) in rows {
        let streamed = format!("data: {body}\n\n");
        for (framing, text) in [(Framing::Json, body), (Framing::Sse, streamed)] {
            assert_eq!(scan_every_way(dialect, framing, &text).tier, tier, "{dialect:?} {framing:?}: {text}");
        }
    }
    let array = format!("[{}]", gemini(r#""trafficType":"ON_DEMAND_FLEX""#));
    assert_eq!(scan_every_way(Dialect::Gemini, Framing::Json, &array).tier, "flex");
}

#[test]
fn the_last_tier_of_an_answer_counts() {
    let sse =
        |payloads: &[&str]| payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect::<String>();
    let chunk = |tier: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}}}}],"service_tier":{tier}}}"#)
    };
    let (auto, priority, null) = (chunk(r#""auto""#), chunk(r#""priority""#), chunk("null"));
    let long = chunk(&format!("\"{}\"", "\\u0041".repeat(60)));
    for (dialect, framing, body, tier) in [
        (Dialect::OpenaiChat, Framing::Sse, sse(&[&auto, &auto, &priority, &null, &long]), "priority"),
        (Dialect::OpenaiChat, Framing::Json, r#"{"choices":[],"service_tier":"flex"}"#.to_owned(), "flex"),
        (
            Dialect::OpenaiResponses,
            Framing::Sse,
            sse(&[
                r#"{"type":"response.created","response":{"service_tier":"auto"}}"#,
                r#"{"type":"response.completed","response":{"status":"completed","service_tier":"default"}}"#,
            ]),
            "default",
        ),
        (
            Dialect::OpenaiResponses,
            Framing::Json,
            r#"{"object":"response","service_tier":"flex"}"#.to_owned(),
            "flex",
        ),
        (
            Dialect::Anthropic,
            Framing::Sse,
            sse(&[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"service_tier":"batch"}}}"#,
            ]),
            "batch",
        ),
        (
            Dialect::Anthropic,
            Framing::Json,
            r#"{"type":"message","usage":{"service_tier":"standard"}}"#.to_owned(),
            "standard",
        ),
        (Dialect::Tgi, Framing::Json, r#"{"generated_text":"a","service_tier":"flex"}"#.to_owned(), ""),
        (
            Dialect::Anthropic,
            Framing::Sse,
            sse(&[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"service_tier":"standard","inference_geo":"us"}}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"speed":"fast"}}"#,
            ]),
            "fast+us",
        ),
    ] {
        assert_eq!(scan_every_way(dialect, framing, &body).tier, tier, "{dialect:?}: {body}");
    }
}

#[test]
fn debug_of_a_name_shows_its_text() {
    assert_eq!(format!("{:?}", crate::Name::cut(b"m\"1")), r#""m\"1""#);
}
