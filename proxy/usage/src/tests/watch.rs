//! What a response is watched for.

use bytes::Bytes;
use scan::{Dialect, Event, Extent, Framing, Scanner, Sink};

use crate::{Added, Editor, Watch};

const END: Option<Added> = Some(Added { include: true, continuous: false });
const BOTH: Option<Added> = Some(Added { include: true, continuous: true });
const RUNNING: Option<Added> = Some(Added { include: false, continuous: true });

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

/// What came of a body: what the client got, whether usage was unasked, and edits missed.
#[derive(Debug, PartialEq)]
struct Got {
    body: String,
    unasked: bool,
    missed: u64,
}

fn watched(added: Option<Added>, asked: bool, slices: &[&str]) -> Got {
    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    let mut watch = Watch::new(added, asked);
    watch.arm(&mut scanner);
    let (mut editor, mut body) = (Editor::new(), Vec::new());
    for slice in slices {
        scanner.feed(slice.as_bytes(), &mut watch.listen(&mut Counter::default()));
        let out = editor.edit(Bytes::copy_from_slice(slice.as_bytes()), watch.marks(&scanner));
        body.extend_from_slice(&out);
    }
    scanner.end(&mut watch.listen(&mut Counter::default()));
    body.extend_from_slice(&editor.release());
    let body = String::from_utf8(body).expect("UTF-8");
    Got { body, unasked: watch.unasked(), missed: editor.missed() }
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

/// A stream of these frames, and what is expected of it.
fn check(what: &str, (added, asked): (Option<Added>, bool), frames: &[&str], kept: &[&str], unasked: bool) {
    let got = watched(added, asked, &[&frames.concat()]);
    assert_eq!(got, Got { body: kept.concat(), unasked, missed: 0 }, "{what}");
    let whole = frames.concat();
    let bytes: Vec<&str> = (0..whole.len()).map(|at| &whole[at..at + 1]).collect();
    let pieces = watched(added, asked, &bytes);
    assert_eq!(pieces, Got { body: kept.concat(), unasked, missed: 0 }, "{what}, byte by byte");
}

#[test]
fn what_we_asked_for_goes() {
    let (plain, counted) = (text(""), text(SOME));
    let (end, counted_end) = (finish(""), finish(SOME));
    let all = [&*counted, &*counted_end, LAST, DONE];
    let bare = [&*plain, &*end, LAST, DONE];
    check("the last event", (END, false), &bare, &[&plain, &end, DONE], false);
    check("each of several", (END, false), &[&end, LAST, &end, LAST, DONE], &[&end, &end, DONE], false);
    check("members and event", (BOTH, false), &all, &[&plain, &end, DONE], false);
    check("members only", (RUNNING, true), &all, &[&plain, &end, LAST, DONE], false);
    check("all of it is the client's", (None, true), &all, &all, false);
    check("a server that cannot count as it goes", (BOTH, false), &bare, &[&plain, &end, DONE], false);
}

#[test]
fn what_is_not_usage_stays() {
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
    check("usage of its own", (BOTH, false), &[&plain, &counted, DONE], &[&plain, &counted, DONE], false);
    check("a single frame", (BOTH, false), &[&counted, DONE], &[&finish(""), DONE], false);
}

#[test]
fn vector_33_is_one_event() {
    let usage = "data: {\ndata: \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\n\n";
    check("three lines", (END, false), &[&finish(""), usage, DONE], &[&finish(""), DONE], false);
}

#[test]
fn vector_34_keeps_the_comment() {
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
fn usage_nobody_asked_for_is_recognised() {
    let (plain, counted, end) = (text(""), text(SOME), finish(""));
    let own = finish(SOME);
    let forced = [&*counted, &*end, LAST, DONE];
    check("running counts give it away", (END, false), &forced, &forced, true);
    check("to a watcher too", (None, false), &forced, &forced, true);
    let last = [&*plain, &*end, LAST, DONE];
    check("so does the last event", (None, false), &last, &last, true);
    for proves_nothing in [ZERO, NULL, ""] {
        let frame = text(proves_nothing);
        check(proves_nothing, (END, false), &[&frame, &end, LAST, DONE], &[&frame, &end, DONE], false);
        check(proves_nothing, (None, false), &[&frame, &end, DONE], &[&frame, &end, DONE], false);
    }
    check("an answer's own usage", (None, false), &[&plain, &own, DONE], &[&plain, &own, DONE], false);
    let after = [&*end, &*counted, LAST, DONE];
    check("after a finish it proves nothing", (END, false), &after, &[&end, &counted, DONE], false);
    check("asked for by the client", (RUNNING, true), &forced, &[&plain, &end, LAST, DONE], false);
}

#[test]
fn the_servers_own_times_are_no_usage() {
    // llama.cpp's `timings_per_token` counts, too, but its client asked for that alone.
    let mut watch = Watch::new(END, false);
    let mut sink = Counter::default();
    let counts = scan::Counts { output: Some(3), ..scan::Counts::default() };
    let usage = scan::Usage { scope: scan::Scope::Running(0), counts };
    let extent = Extent { from: 0, to: 9, whole: true, is_usage: false, usage: None };
    let mut listen = watch.listen(&mut sink);
    listen.event(Event::Usage(usage));
    listen.event(Event::Server(scan::ServerTimes::default()));
    listen.frame(extent);
    assert!(!watch.unasked());
    let mut listen = watch.listen(&mut sink);
    listen.event(Event::Usage(usage));
    listen.frame(extent);
    assert!(watch.unasked());
    assert_eq!((sink.events, sink.frames), (3, 2), "all is handed on");
}

#[test]
fn inject_holds_nothing_before_a_finish() {
    let (plain, end) = (text(""), finish(""));
    let mut scanner = Scanner::new(Dialect::OpenaiChat, Framing::Sse);
    let mut watch = Watch::new(END, false);
    let mut editor = Editor::new();
    let mut pass = |text: &str| {
        scanner.feed(text.as_bytes(), &mut watch.listen(&mut Counter::default()));
        let out = editor.edit(Bytes::copy_from_slice(text.as_bytes()), watch.marks(&scanner));
        (out.len() == text.len(), editor.is_holding())
    };
    assert_eq!(pass(&plain[..30]), (true, false));
    assert_eq!(pass(&plain[30..]), (true, false));
    assert_eq!(pass(&end), (true, false), "a finish that is whole is not held");
    assert_eq!(pass(": keep"), (true, false), "nor is a comment");
    assert_eq!(pass("-alive\n\n"), (true, false));
    assert_eq!(pass("d"), (false, true));
    // In mid-stream, before any finish, a torn usage event cannot be taken back.
    let got = watched(END, false, &[&plain, &LAST[..20], &LAST[20..], &end, DONE]);
    assert_eq!(got, Got { body: [&plain, LAST, &end, DONE].concat(), unasked: false, missed: 1 });
}

#[test]
fn a_torn_end_is_given_back() {
    let end = finish("");
    for cut in 1..LAST.len() {
        let got = watched(END, false, &[&end, &LAST[..cut]]);
        let kept = [&end, &LAST[..cut]].concat();
        assert_eq!(got, Got { body: kept, unasked: false, missed: 0 }, "{cut}");
    }
}
