//! The marks of a watched response.

use bytes::Bytes;
use scan::{Dialect, Event, Extent, Framing, Scanner, Sink, UsageValue};

use crate::{AddedOptions, Editor, UsageFilter};

const END: Option<AddedOptions> = Some(AddedOptions { include: true, continuous: false, timings: false });
const BOTH: Option<AddedOptions> = Some(AddedOptions { include: true, continuous: true, timings: false });
const RUNNING: Option<AddedOptions> = Some(AddedOptions { include: false, continuous: true, timings: false });

#[derive(Default)]
struct Counter {
    events: u32,
    frames: u32,
}

impl Sink for Counter {
    fn event(&mut self, _event: Event) {
        self.events += 1;
    }

    fn frame(&mut self, _extent: Extent) {
        self.frames += 1;
    }
}

/// The result of a body: the client's bytes, whether usage was unrequested, and missed edits.
#[derive(Debug, PartialEq)]
struct Outcome {
    body: String,
    sends_unrequested: bool,
    missed: u64,
}

fn watched(added: Option<AddedOptions>, asked: bool, slices: &[&str]) -> Outcome {
    filtered(UsageFilter::new(added, asked), slices)
}

fn filtered(mut filter: UsageFilter, slices: &[&str]) -> Outcome {
    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    filter.arm(&mut scanner);
    let (mut editor, mut body) = (Editor::new(), Vec::new());
    for slice in slices {
        scanner.feed(slice.as_bytes(), &mut filter.listen(&mut Counter::default()));
        let out = editor.edit(Bytes::copy_from_slice(slice.as_bytes()), filter.cuts(&scanner));
        body.extend_from_slice(&out);
    }
    scanner.end(&mut filter.listen(&mut Counter::default()));
    body.extend_from_slice(&editor.release());
    let body = String::from_utf8(body).expect("UTF-8");
    Outcome { body, sends_unrequested: filter.sends_unrequested(), missed: editor.missed() }
}

fn text(usage: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}]{usage}}}\n\n")
}

fn finish(usage: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]{usage}}}\n\n")
}

const SOME: &str = ",\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}";
const ZERO: &str = ",\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}";
const NULL: &str = ",\"usage\":null";
const LAST: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// Checks a stream of these frames against the expected outcome.
fn check(
    case: &str,
    (added, asked): (Option<AddedOptions>, bool),
    frames: &[&str],
    kept: &[&str],
    sends_unrequested: bool,
) {
    let got = watched(added, asked, &[&frames.concat()]);
    assert_eq!(got, Outcome { body: kept.concat(), sends_unrequested, missed: 0 }, "{case}");
    let whole = frames.concat();
    let bytes: Vec<&str> = (0..whole.len()).map(|at| &whole[at..at + 1]).collect();
    let pieces = watched(added, asked, &bytes);
    assert_eq!(pieces, Outcome { body: kept.concat(), sends_unrequested, missed: 0 }, "{case}, byte by byte");
}

#[test]
fn injected_usage_is_cut() {
    let (plain, counted) = (text(""), text(SOME));
    let (end, counted_end) = (finish(""), finish(SOME));
    let all = [&*counted, &*counted_end, LAST, DONE];
    let bare = [&*plain, &*end, LAST, DONE];
    check("the last event", (END, false), &bare, &[&plain, &end, DONE], false);
    check("each of several", (END, false), &[&end, LAST, &end, LAST, DONE], &[&end, &end, DONE], false);
    check("members and event", (BOTH, false), &all, &[&plain, &end, DONE], false);
    check("members only", (RUNNING, true), &all, &[&plain, &end, LAST, DONE], false);
    check("the client requested all", (None, true), &all, &all, false);
    check("a server without running counts", (BOTH, false), &bare, &[&plain, &end, DONE], false);
}

#[test]
fn other_frames_stay() {
    // Vector 11: an extension beside null usage; answers beside usage; an error.
    let extension = "data: {\"choices\":[],\"sglext\":{\"usage\":{}},\"usage\":null}\n\n";
    let error = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4},\"error\":{\"message\":\"x\"}}\n\n";
    let no_choices = "data: {\"usage\":{\"prompt_tokens\":4}}\n\n";
    let own = finish(SOME);
    for frame in [extension, error, no_choices, &own] {
        check(frame, (END, false), &[&finish(""), frame, DONE], &[&finish(""), frame, DONE], false);
    }
    check("null stays", (BOTH, false), &[&text(NULL), LAST], &[&text(NULL)], false);
    let (plain, counted) = (text(""), finish(SOME));
    check(
        "the server's own usage",
        (BOTH, false),
        &[&plain, &counted, DONE],
        &[&plain, &counted, DONE],
        false,
    );
    check("a single frame", (BOTH, false), &[&counted, DONE], &[&finish(""), DONE], false);
}

#[test]
fn event_of_three_lines_is_one_event() {
    let usage = "data: {\ndata: \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\n\n";
    check("three lines", (END, false), &[&finish(""), usage, DONE], &[&finish(""), DONE], false);
}

#[test]
fn removed_event_leaves_its_comments() {
    let usage = "event: message\nid: 9\n: inside\ndata: {\"usage\":{},\"choices\":[]}\n\n: keep-alive\n\n";
    check(
        "comments stay",
        (END, false),
        &[&finish(""), usage, DONE],
        &[&finish(""), ": inside\n: keep-alive\n\n", DONE],
        false,
    );
}

#[test]
fn unrequested_usage_is_detected() {
    let (plain, counted, end) = (text(""), text(SOME), finish(""));
    let own = finish(SOME);
    let forced = [&*counted, &*end, LAST, DONE];
    check("running counts prove it", (END, false), &forced, &forced, true);
    check("without injection, too", (None, false), &forced, &forced, true);
    let last = [&*plain, &*end, LAST, DONE];
    check("so does the last event", (None, false), &last, &last, true);
    for no_proof in [ZERO, NULL, ""] {
        let frame = text(no_proof);
        check(no_proof, (END, false), &[&frame, &end, LAST, DONE], &[&frame, &end, DONE], false);
        check(no_proof, (None, false), &[&frame, &end, DONE], &[&frame, &end, DONE], false);
    }
    check("an answer's own usage", (None, false), &[&plain, &own, DONE], &[&plain, &own, DONE], false);
    let after = [&*end, &*counted, LAST, DONE];
    check("after a finish it proves nothing", (END, false), &after, &[&end, &counted, DONE], false);
    check("requested by the client", (RUNNING, true), &forced, &[&plain, &end, LAST, DONE], false);
}

/// LiteLLM's usage event has a choice without content.
#[test]
fn usage_beside_a_bare_choice_is_cut() {
    let (plain, end) = (text(""), finish(""));
    let usage = r#""usage":{"completion_tokens":24,"prompt_tokens":19,"total_tokens":43}"#;
    let event = |choice: &str| format!("data: {{\"model\":\"tiny\",\"choices\":[{choice}],{usage}}}\n\n");
    for bare in [r#"{"index":0,"delta":{}}"#, r#"{"index":0}"#, r#"{"delta":{}}"#] {
        let last = event(bare);
        check(bare, (END, false), &[&plain, &end, &last, DONE], &[&plain, &end, DONE], false);
        check(bare, (BOTH, false), &[&plain, &end, &last, DONE], &[&plain, &end, DONE], false);
        let all = [&*plain, &end, &last, DONE];
        check(bare, (None, true), &all, &all, false);
    }
    for choice in [
        r#"{"index":0,"delta":{"content":""}}"#,
        r#"{"index":0,"delta":{"role":"assistant"}}"#,
        r#"{"index":0,"delta":{},"finish_reason":null}"#,
        r#"{"index":0,"delta":{},"finish_reason":"stop"}"#,
        r#"{"index":0,"delta":{},"logprobs":{"content":[]}}"#,
        r#"{"index":0,"delta":{}},{"index":1,"delta":{}}"#,
        "null",
    ] {
        let last = event(choice);
        let all = [&*plain, &end, &last, DONE];
        check(choice, (END, false), &all, &all, false);
    }
}

/// ATOM's usage event has no list of choices, which strict clients refuse.
#[test]
fn usage_without_choices_is_cut() {
    let (plain, end) = (text(""), finish(""));
    let usage = r#""usage":{"completion_tokens":24,"prompt_tokens":19,"total_tokens":43}"#;
    let last =
        format!("data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",{usage}}}\n\n");
    check("no list", (END, false), &[&plain, &end, &last, DONE], &[&plain, &end, DONE], false);
    let all = [&*plain, &end, &last, DONE];
    check("the client requested it", (None, true), &all, &all, false);
}

#[test]
fn only_a_usage_member_is_usage_sent_unasked() {
    let mut filter = UsageFilter::new(END, false);
    let mut sink = Counter::default();
    let counts = scan::Counts::of([(scan::Count::Output, 3)]);
    let usage = scan::Usage { scope: scan::Scope::Running(0), counts };
    let extent = Extent { from: 0, to: 9, whole: true, is_usage: false, usage: None, timings: None };
    let member = |value| Some(scan::UsageMember { from: 3, to: 8, value });
    for (usage_member, is_sent) in [
        // A count in llama.cpp's timings, in a choice, or below a vendor's member.
        (None, false),
        (member(UsageValue::Null), false),
        (member(UsageValue::Zeros), false),
        (member(UsageValue::Counts), true),
    ] {
        let mut listen = filter.listen(&mut sink);
        listen.event(Event::Usage(usage));
        listen.frame(Extent { usage: usage_member, ..extent });
        assert_eq!(filter.sends_unrequested(), is_sent, "{usage_member:?}");
    }
    assert_eq!((sink.events, sink.frames), (4, 4), "everything passes on");
}

#[test]
fn inject_holds_nothing_before_a_finish() {
    let (plain, end) = (text(""), finish(""));
    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    let mut filter = UsageFilter::new(END, false);
    let mut editor = Editor::new();
    let mut pass = |text: &str| {
        scanner.feed(text.as_bytes(), &mut filter.listen(&mut Counter::default()));
        let out = editor.edit(Bytes::copy_from_slice(text.as_bytes()), filter.cuts(&scanner));
        (out.len() == text.len(), editor.is_holding())
    };
    assert_eq!(pass(&plain[..30]), (true, false));
    assert_eq!(pass(&plain[30..]), (true, false));
    assert_eq!(pass(&end), (true, false), "a complete finish is not held");
    assert_eq!(pass(": keep"), (true, false), "nor is a comment");
    assert_eq!(pass("-alive\n\n"), (true, false));
    assert_eq!(pass("d"), (false, true));
    // Before any finish, a torn usage event has already passed.
    let got = watched(END, false, &[&plain, &LAST[..20], &LAST[20..], &end, DONE]);
    assert_eq!(
        got,
        Outcome { body: [&plain, LAST, &end, DONE].concat(), sends_unrequested: false, missed: 1 }
    );
}

#[test]
fn a_torn_end_is_released() {
    let end = finish("");
    for cut in 1..LAST.len() {
        let got = watched(END, false, &[&end, &LAST[..cut]]);
        let kept = [&end, &LAST[..cut]].concat();
        assert_eq!(got, Outcome { body: kept, sends_unrequested: false, missed: 0 }, "{cut}");
    }
}

const TIMINGS: Option<AddedOptions> = Some(AddedOptions { include: true, continuous: false, timings: true });

/// llama.cpp's count beside a piece, as build 11669 sends it.
const COUNT: &str = ",\"timings\":{\"cache_n\":15,\"prompt_n\":1,\"prompt_ms\":0.389,\"predicted_n\":2,\"predicted_ms\":0.001}";

#[test]
fn timings_of_each_piece_are_cut() {
    let (plain, counted) = (text(""), text(COUNT));
    let (end, counted_end) = (finish(""), finish(COUNT));
    let last = format!("data: {{\"choices\":[]{SOME}{COUNT}}}\n\n");
    let kept = [&*plain, &*end, DONE];
    check("pieces and the last event", (TIMINGS, false), &[&counted, &end, &last, DONE], &kept, false);
    let only = Some(AddedOptions { include: false, continuous: false, timings: true });
    let kept = [&*plain, &*counted_end, DONE];
    check(
        "the server always sends those of the finish",
        (only, true),
        &[&counted, &counted_end, DONE],
        &kept,
        false,
    );
    let own = finish(&[SOME, COUNT].concat());
    check("beside usage too", (only, false), &[&counted, &own, DONE], &[&plain, &own, DONE], false);
    check("the client's own stay", (END, true), &[&counted, &end, DONE], &[&counted, &end, DONE], false);
    let first = "data: {\"timings\":{\"predicted_n\":1},\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";
    let bare = "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";
    check("the first member", (only, false), &[first, DONE], &[bare, DONE], false);
}

/// llama.cpp repeats a frame's timings for a client that requests `verbose`, and the setting in the last one.
#[test]
fn injected_timings_are_cut_from_verbose_frames() {
    const TIMINGS: Option<AddedOptions> =
        Some(AddedOptions { include: false, continuous: false, timings: true });
    let times = r#"{"prompt_n":1,"prompt_ms":0.5,"predicted_n":2,"predicted_ms":0.25}"#;
    let frame = |verbose: &str, timings: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}],\"__verbose\":{{\"stop\":false{verbose}}}{timings}}}\n\n"
        )
    };
    let last = |setting: &str| {
        let verbose = format!(
            "\"generation_settings\":{{\"stream\":true,\"timings_per_token\":{setting},\"lora\":[]}},\"timings\":{times}"
        );
        finish(&format!(",\"__verbose\":{{{verbose}}},\"timings\":{times}"))
    };
    let asked = frame(&format!(",\"timings\":{times}"), &format!(",\"timings\":{times}")) + &last("true");
    let plain = frame("", "") + &last("false");
    let got = |added, sent: &str| {
        let whole = watched(added, false, &[sent]);
        let bytes: Vec<String> = sent.chars().map(String::from).collect();
        let cut: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(watched(added, false, &cut), whole, "in single bytes");
        assert_eq!((whole.sends_unrequested, whole.missed), (false, 0));
        whole.body
    };
    assert_eq!(got(TIMINGS, &asked), plain);
    assert_eq!(got(None, &asked), asked, "the client requested it");
    // The other order, and only injected ones.
    let reordered = asked.replace(
        "\"__verbose\":{\"stop\":false",
        "\"timings\":{\"predicted_n\":2},\"__verbose\":{\"stop\":false",
    );
    let reordered = reordered.replacen(&format!("}},\"timings\":{times}}}\n"), "}}\n", 1);
    assert_eq!(got(TIMINGS, &reordered), plain);
}

/// The frame of a text, with a usage of this value in place `at` of its members; none without a value.
fn placed(at: usize, gap: &str, text: &str, usage: Option<&str>) -> String {
    let choices = format!("\"choices\":{gap}[{{\"index\":0,{gap}\"delta\":{text}}}]");
    let mut members = vec!["\"id\":\"x\"".to_owned(), choices, "\"obfuscation\":\"ab\"".to_owned()];
    if let Some(usage) = usage {
        members.insert(at, format!("\"usage\":{gap}{usage}"));
    }
    format!("data: {{{}}}\n\n", members.join(&format!(",{gap}")))
}

/// A stream of frames with `usage`, the frame with the counts included, if the option for it was `added`.
fn stream(at: usize, gap: &str, usage: &str, added: bool) -> String {
    let texts = [
        "{\"role\":\"assistant\",\"content\":\"\"}",
        "{\"content\":\"a\"}",
        "{\"content\":\"b, \\\"usage\\\":\"}",
    ];
    let texts =
        texts.iter().chain(&["{\"content\":\"größer\"}", "{\"content\":\"d\"},\"finish_reason\":\"stop\""]);
    let frames: String = texts.map(|text| placed(at, gap, text, added.then_some(usage))).collect();
    format!("{frames}{}{DONE}", if added { LAST } else { "" })
}

const ZEROS: &str = "{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}";

/// The client receives what a server sends without the option, however the answer is cut.
#[test]
fn answer_with_the_option_equals_the_one_without() {
    for (at, gap, usage) in every(&[0, 1, 2, 3], &["", " "], &["null", ZEROS]) {
        let (asked, plain) = (stream(at, gap, usage, true), stream(at, gap, usage, false));
        let wanted = Outcome { body: plain, sends_unrequested: false, missed: 0 };
        let got = |slices: &[&str]| filtered(UsageFilter::new(END, false).without_placeholders(), slices);
        assert_eq!(got(&[&asked]), wanted, "{at} {gap:?} {usage}");
        for cut in (0..=asked.len()).filter(|cut| asked.is_char_boundary(*cut)) {
            let (head, tail) = asked.split_at(cut);
            assert_eq!(got(&[head, tail]), wanted, "{at} {gap:?} {usage} after {head:?}");
        }
        let bytes: Vec<String> = asked.chars().map(String::from).collect();
        assert_eq!(got(&bytes.iter().map(String::as_str).collect::<Vec<_>>()), wanted, "byte by byte");
        // Of a server that sends them in any case, and of a client that requested usage itself, they stay.
        let kept = Outcome { body: asked.replace(LAST, ""), ..wanted };
        assert_eq!(filtered(UsageFilter::new(END, false), &[&asked]), kept);
        let kept = Outcome { body: asked.clone(), ..kept };
        assert_eq!(filtered(UsageFilter::new(None, true).without_placeholders(), &[&asked]), kept);
    }
}

fn every<'a>(
    places: &'a [usize],
    gaps: &'a [&'a str],
    usages: &'a [&'a str],
) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
    let usages = move |at, gap| usages.iter().map(move |usage| (at, gap, *usage));
    places.iter().flat_map(move |at| gaps.iter().flat_map(move |gap| usages(*at, *gap)))
}

/// A usage that the server sends to everyone in another place than the option's: in a choice (Moonshot), below a member of
/// its own (Groq), or in llama.cpp's timings.
const NESTED: [(&str, &str); 3] = [
    ("\"finish_reason\":", "\"usage\":V,\"finish_reason\":"),
    ("\"choices\":", "\"x_vendor\":{\"id\":\"r\",\"usage\":V},\"choices\":"),
    ("\"obfuscation\":", "\"timings\":{\"prompt_n\":4,\"predicted_n\":2},\"obfuscation\":"),
];

/// A frame of a text or of an end, of which `finish` is the reason. `own`: the value of the option's usage member, if any.
fn frame_with(
    content: &str,
    finish: &str,
    nested: Option<(&str, &str, &str)>,
    own: Option<(usize, &str)>,
) -> String {
    let choice = format!("{{\"index\":0,\"delta\":{content},\"finish_reason\":{finish}}}");
    let mut members = vec![
        "\"id\":\"x\"".to_owned(),
        format!("\"choices\":[{choice}]"),
        "\"obfuscation\":\"ab\"".to_owned(),
    ];
    if let Some((place, with, value)) = nested {
        for member in &mut members {
            *member = member.replacen(place, &with.replace('V', value), 1);
        }
    }
    if let Some((at, value)) = own {
        members.insert(at, format!("\"usage\":{value}"));
    }
    format!("data: {{{}}}\n\n", members.join(","))
}

/// Whatever a server says of its counts elsewhere, in whatever frames: the client receives what it would without the option.
#[test]
fn usage_in_another_place_does_not_keep_the_added_one() {
    let running = "{\"prompt_tokens\":4,\"completion_tokens\":2,\"total_tokens\":6}";
    let contents = [
        "{\"role\":\"assistant\",\"content\":\"\"}",
        "{\"content\":\"a\"}",
        "{\"content\":\"b\"}",
        "{\"content\":\"c\"}",
        "{}",
    ];
    for (place, with) in NESTED {
        for value in [running, "null", ZEROS, "{}"] {
            for counted in [0b11111_u32, 0b00001, 0b00010, 0b01100, 0b10000] {
                // The option adds the last frame, and of some servers a member of the others.
                for own in [None, Some((0, "null")), Some((2, ZEROS)), Some((3, "null"))] {
                    let stream = |is_added: bool| {
                        let frames = contents.iter().enumerate().map(|(at, content)| {
                            let finish = if at == 4 { "\"stop\"" } else { "null" };
                            let nested = (counted & 1 << at != 0).then_some((place, with, value));
                            frame_with(content, finish, nested, own.filter(|_| is_added))
                        });
                        let frames: String = frames.collect();
                        format!("{frames}{}{DONE}", if is_added { LAST } else { "" })
                    };
                    let (asked, plain) = (stream(true), stream(false));
                    let wanted = Outcome { body: plain, sends_unrequested: false, missed: 0 };
                    let got = |slices: &[&str]| {
                        let filter = UsageFilter::new(END, false);
                        filtered(if own.is_some() { filter.without_placeholders() } else { filter }, slices)
                    };
                    let case = format!("{with} {value} {counted:b} {own:?}");
                    for cut in 0..=asked.len() {
                        let (head, tail) = asked.split_at(cut);
                        assert_eq!(got(&[head, tail]), wanted, "{case} after {head:?}");
                    }
                    let bytes: Vec<&str> = (0..asked.len()).map(|at| &asked[at..=at]).collect();
                    assert_eq!(got(&bytes), wanted, "{case}, byte by byte");
                }
            }
        }
    }
}

/// Before the first finish, of a torn frame only the bytes wait that may be part of a usage member: those of a key until it
/// is known, and all from that of the usage on.
#[test]
fn text_of_a_torn_frame_is_not_held() {
    let frame = placed(2, "", "{\"content\":\"a\"}", Some("null"));
    let at = |key: &str| frame.find(key).map(|from| (from, from + key.len())).expect("a key");
    let (usage, _) = at(",\"usage\"");
    let keys = [at("\"id\""), at(",\"choices\""), (usage, frame.len())];
    for cut in 1..frame.len() {
        let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
        let mut filter = UsageFilter::new(END, false).without_placeholders();
        let mut editor = Editor::new();
        let torn = Bytes::copy_from_slice(&frame.as_bytes()[..cut]);
        scanner.feed(&torn, &mut filter.listen(&mut Counter::default()));
        let passed = editor.edit(torn, filter.cuts(&scanner)).len();
        let held = keys.iter().find(|(from, to)| (from + 1..*to).contains(&cut));
        assert_eq!(passed, held.map_or(cut, |(from, _)| *from), "{:?}", &frame[..cut]);
    }
}
