//! Constructed bodies, each scanned whole, byte by byte, cut at every byte, and with other line
//! ends. All results must agree.

use super::scan_every_way;
use crate::event::{Delta, Finish, Scope, Usage};
use crate::{Count, Counts, Dialect, Event, Framing, Scanner};

fn sse(body: &str) -> Vec<Event> {
    scan_every_way(Dialect::OpenaiChat, Framing::Sse, body).events()
}

fn text(choice: u32, chars: u32) -> Event {
    Event::Text(Delta { choice, chars, tokens: None })
}

fn usage(scope: Scope, input: u64, output: u64) -> Event {
    Event::Usage(Usage { scope, counts: Counts::of([(Count::Input, input), (Count::Output, output)]) })
}

/// A usage that states its total.
fn total(scope: Scope, input: u64, output: u64) -> Event {
    let counts = [(Count::Input, input), (Count::Output, output), (Count::Total, input + output)];
    let counts = Counts::of(counts);
    Event::Usage(Usage { scope, counts })
}

#[test]
fn a_space_after_the_colon_is_optional() {
    let body = "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
    assert_eq!(sse(body), [text(0, 1)]);
}

#[test]
fn comments_are_pings_and_make_no_frame() {
    assert_eq!(sse(":\n\n: keep-alive\n\n:\t\n\n"), [Event::Ping; 3]);
}

#[test]
fn done_in_an_unfinished_tail_counts() {
    assert_eq!(sse("data: [DONE]\n\n"), [Event::Done]);
    assert_eq!(sse("data:[DONE]\n\n"), [Event::Done]);
    assert_eq!(sse("data: [DONE]"), [Event::Done]);
    assert_eq!(sse("data: [DONE] \n\n"), [Event::Done]);
}

#[test]
fn usage_inside_a_string_is_text() {
    let body = r#"data: {"choices":[{"index":0,"delta":{"content":"\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":999}"}}],"usage":null}"#;
    assert_eq!(sse(&format!("{body}\n\n")), [text(0, 51)]);
}

#[test]
fn usage_is_found_before_and_after_the_choices() {
    assert_eq!(
        sse(
            "data: {\"usage\":{\"total_tokens\":3,\"completion_tokens\":1,\"prompt_tokens\":2},\"choices\":[]}\n\n"
        ),
        [total(Scope::Whole, 2, 1)]
    );
    assert_eq!(
        sse(
            "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1},\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":2}}\n\n"
        ),
        [usage(Scope::Whole, 2, 2)]
    );
}

#[test]
fn an_escaped_key_is_recognised() {
    assert_eq!(
        sse("data: {\"us\\u0061ge\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\n\n"),
        [usage(Scope::Whole, 1, 1)]
    );
}

#[test]
fn an_even_run_of_backslashes_escapes_no_quote() {
    assert_eq!(
        sse(
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\\\\\\\"}}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n"
        ),
        [text(0, 2), usage(Scope::Running(0), 4, 2)]
    );
}

#[test]
fn escapes_count_as_their_characters() {
    assert_eq!(
        sse(
            "data: {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"é😀\"}}]}\n\ndata: {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"\\u00e9\\ud83d\\ude00\"}}]}\n\n"
        ),
        [text(3, 2), text(3, 2)]
    );
}

#[test]
fn end_mark_needs_no_field_name() {
    let frame = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (end, done) in [
        ("[DONE]\n\n", true),
        ("[DONE]\r\n\r\n", true),
        ("[DONE]\n", true),
        ("[DONE]", true),
        (": x\n[DONE]\n\n", true),
        ("[DONE] \n\n", false),
        ("[DONE", false),
        ("x[DONE]\n\n", false),
    ] {
        let seen = sse(&format!("{frame}{end}"));
        assert_eq!(seen.first(), Some(&text(0, 1)), "{end:?}");
        assert_eq!(seen.contains(&Event::Done), done, "{end:?}");
    }
}

#[test]
fn a_payload_may_span_lines() {
    assert_eq!(
        sse("data: {\ndata: \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\n\n"),
        [usage(Scope::Whole, 1, 1)]
    );
}

#[test]
fn frames_of_one_shape_yield_their_own_events() {
    let mut body = String::new();
    for (index, content) in ["a", "bc", "", "\\n", "\\u00e9", "d"].iter().enumerate() {
        body.push_str(&format!(
            "data: {{\"id\":\"x\",\"choices\":[{{\"index\":{},\"delta\":{{\"content\":\"{content}\"}}}}],\"usage\":{{\"prompt_tokens\":9,\"total_tokens\":{},\"completion_tokens\":{index}}}}}\n\n",
            index % 2,
            index + 9,
        ));
    }
    let expected: Vec<_> = [1, 2, 0, 1, 1, 1]
        .into_iter()
        .enumerate()
        .flat_map(|(index, chars)| {
            let choice = index as u32 % 2;
            let delta = Delta { choice, chars, tokens: None };
            let event = if chars == 0 { Event::Empty(delta) } else { Event::Text(delta) };
            [event, total(Scope::Running(choice), 9, index as u64)]
        })
        .collect();
    assert_eq!(sse(&body), expected);

    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    scanner.feed(body.as_bytes(), &mut super::Seen::default());
    let work = scanner.work();
    assert!(work.matched > 0, "the shape was never used: {work:?}");
}

#[test]
fn roles_finishes_and_tool_calls_are_events() {
    assert_eq!(
        sse("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n\
             data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":7,\"function\":{\"name\":\"dig\",\"arguments\":\"{\\\"usage\\\":1\"}}]}}]}\n\n\
             data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n\
             data: {\"error\": {\"message\": \"boom\"}}\n\n"),
        [
            Event::Role { choice: 0 },
            Event::Tool(Delta { choice: 0, chars: 13, tokens: None }),
            Event::Finish { choice: 0, reason: Finish::ToolCalls },
            Event::Error,
        ]
    );
}

#[test]
fn an_unfinished_block_yields_usage_but_no_text() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n";
    assert_eq!(
        sse(body),
        [Event::Finish { choice: 0, reason: Finish::Stop }, usage(Scope::Choice(Some(0)), 1, 1)]
    );
}

#[test]
fn a_depth_bomb_is_one_unreadable_frame() {
    let body = format!("data: {}\n\ndata: [DONE]\n\n", "[".repeat(100_000));
    let seen = super::scan(Dialect::OpenaiChat, Framing::Sse, body.as_bytes().chunks(4096));
    assert_eq!(seen.events(), [Event::Other, Event::Done]);
}

#[test]
fn impossible_counts_are_rejected() {
    for number in ["-1", "1.5", "1e400", "9007199254740994", "18446744073709551616", "NaN", "\"x\""] {
        let body = format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":{number}}}}}\n\n"
        );
        let counts = Counts::of([(Count::Input, 3)]).with_rejected(1);
        assert_eq!(sse(&body), [Event::Usage(Usage { scope: Scope::Whole, counts })], "{number}");
    }
    assert_eq!(
        sse("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12.0,\"completion_tokens\":1e3}}\n\n"),
        [usage(Scope::Whole, 12, 1000)]
    );
}
