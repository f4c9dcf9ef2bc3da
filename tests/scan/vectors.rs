//! Constructed bodies, each with one difficulty. Each is read whole, in steps, cut at every byte and with other line
//! ends, and compared with the oracle if that has a result.

use harness::{cuts, naive};
use scan::Dialect::{self, LlamacppCompletion as Native, OpenaiChat as Chat, OpenaiCompletions as Text};
use scan::Framing::{self, Json, Sse};

use crate::short::short;

/// Purpose, dialect and framing, body, events.
pub(crate) type Vector = (&'static str, Dialect, Framing, &'static str, &'static str);

#[test]
fn each_vector_gives_its_events() {
    let mut wrong = Vec::new();
    for (name, dialect, framing, body, expected) in all() {
        let body = body.as_bytes();
        let whole = match cuts::difference(*dialect, *framing, body, 0..body.len() + 1) {
            Ok(seen) => seen,
            Err(why) => {
                wrong.push(format!("{name}: {why}"));
                continue;
            }
        };
        if short(&whole) != *expected {
            wrong.push(format!("{name}: {:?}, not {expected:?}", short(&whole)));
        }
        if let Some(naive) = naive::read(*dialect, *framing, body)
            && naive != whole
        {
            wrong.push(format!("{name}: naive {}", cuts::first_difference(&naive, &whole)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All vectors of this file.
pub(crate) fn all() -> impl Iterator<Item = &'static Vector> {
    VECTORS.iter().chain(&DOUBLES).chain(&ORDER)
}

/// A frame with the text `a`, as vLLM writes it.
macro_rules! a {
    () => {
        r#"data: {"choices":[{"index":0,"delta":{"content":"a"}}]}"#
    };
}

const VECTORS: [Vector; 71] = [
    // Lines and blocks.
    (
        "no space after the colon",
        Chat,
        Sse,
        "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n",
        "text0/1 |",
    ),
    ("one space is stripped, the second is the payload's", Chat, Sse, "data:  [DONE]\n\n", "other |"),
    ("a tab is not stripped", Chat, Sse, "data:\t[DONE]\n\n", "other |"),
    ("comments", Chat, Sse, ":\n\n: keep-alive\n\n:\t\n\n", "ping ping ping"),
    ("a comment right before a frame", Chat, Sse, concat!(":hi\n", a!(), "\n\n"), "ping text0/1 |"),
    ("two data lines join", Chat, Sse, "data: {\"choices\":\ndata: []}\n\n", "meta |"),
    ("data without a colon", Chat, Sse, "data\n\n", "ping |"),
    ("two of them", Chat, Sse, "data\ndata\n\n", "ping |"),
    ("null", Chat, Sse, "data: null\n\n", "ping |"),
    ("an event without data is silent", Chat, Sse, "event: ping\n\n", ""),
    (
        "its name does not stick",
        Chat,
        Sse,
        concat!("event: error\n", a!(), "\n\n", a!(), "\n\n"),
        "error text0/1 | text0/1 |",
    ),
    (
        "of two names the last counts",
        Chat,
        Sse,
        concat!("event: error\nevent: x\n", a!(), "\n\n"),
        "text0/1 |",
    ),
    ("an error without data, as Dynamo sends it", Chat, Sse, "event: error\n: boom\n\n", "ping error |"),
    ("an unfinished one", Chat, Sse, "event: error", "error ~"),
    ("other fields", Chat, Sse, concat!(a!(), "\nid: 7\n: c\nfoo\nretry: 1e3\n\n"), "ping text0/1 |"),
    (
        "names are exact",
        Chat,
        Sse,
        "Data: [DONE]\n data: [DONE]\ndata : [DONE]\ndat: [DONE]\ndatas: [DONE]\n\n",
        "",
    ),
    ("a byte order mark", Chat, Sse, concat!("\u{FEFF}", a!(), "\n\n"), "text0/1 |"),
    ("a second one is part of a name", Chat, Sse, concat!("\u{FEFF}\u{FEFF}", a!(), "\n\n"), ""),
    ("so is a later one", Chat, Sse, concat!(a!(), "\n\n\u{FEFF}", a!(), "\n\n"), "text0/1 |"),
    ("the end of the body discards a block, but for the meter", Chat, Sse, a!(), "~"),
    ("also after its line end", Chat, Sse, concat!(a!(), "\n"), "~"),
    (
        "lines of every kind",
        Chat,
        Sse,
        concat!(a!(), "\r\n\r\n", a!(), "\r\r", a!(), "\n\n", a!(), "\r\n\n", a!(), "\n\r", a!(), "\r\n\r\n"),
        "text0/1 | text0/1 | text0/1 | text0/1 | text0/1 | text0/1 |",
    ),
    (
        "a comment inside a block, again",
        Chat,
        Sse,
        concat!("\n\nid: 1\n: c\n", a!(), "\n\nid: 1\n: c\n", a!(), "\n\nid: 1\n: c\n", a!(), "\n\n"),
        "ping text0/1 | ping text0/1 | ping text0/1 |",
    ),
    (
        "a comment after the data, again",
        Chat,
        Sse,
        concat!("\n", a!(), "\n: c\n\n", a!(), "\n: c\n\n", a!(), "\n: c\n\n"),
        "ping text0/1 | ping text0/1 | ping text0/1 |",
    ),
    (
        "a frame that breaks off, again",
        Chat,
        Sse,
        concat!("\n", a!(), "x\n\n", a!(), "x\n\n", a!(), "x\n\n"),
        "other | other | other |",
    ),
    // The end mark.
    ("the end mark", Chat, Sse, "data: [DONE]\n\n", "done |"),
    ("without the space", Chat, Sse, "data:[DONE]\n\n", "done |"),
    ("with a trailing one", Chat, Sse, "data: [DONE] \n\n", "done |"),
    ("unfinished", Chat, Sse, "data: [DONE]", "done ~"),
    ("torn", Chat, Sse, "data: [DON", "other ~"),
    ("not quite", Chat, Sse, "data: [DONUT]\n\n", "other |"),
    ("on two lines it is none", Chat, Sse, "data: [DO\ndata: NE]\n\n", "other |"),
    ("nor on the second", Chat, Sse, "data\ndata: [DONE]\n\n", "other |"),
    ("in an unstreamed body it is none", Chat, Json, "[DONE]", "other |"),
    // Frames.
    (
        "usage inside a string",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":1,\\\"completion_tokens\\\":999}\"}}],\"usage\":null}\n\n",
        "text0/51 |",
    ),
    (
        "usage before the choices",
        Chat,
        Sse,
        "data: {\"usage\":{\"total_tokens\":3,\"completion_tokens\":1,\"prompt_tokens\":2},\"choices\":[]}\n\n",
        "whole(in 2 out 1 total 3) |",
    ),
    (
        "an escaped key",
        Chat,
        Sse,
        "data: {\"us\\u0061ge\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\n\n",
        "whole(in 1 out 1) |",
    ),
    (
        "an even run of backslashes",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\\\\\\\\"}}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n",
        "text0/2 running0(in 4 out 2) |",
    ),
    (
        "no choices and no usage",
        Chat,
        Sse,
        "data: {\"choices\":[],\"sglext\":{\"cached\":1},\"usage\":null}\n\n",
        "meta |",
    ),
    (
        "llama.cpp, two choices: a usage frame each",
        Chat,
        Sse,
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3,\"prompt_tokens\":7},\"timings\":{}}\n\ndata: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":4,\"prompt_tokens\":7},\"timings\":{}}\n\ndata: [DONE]\n\n",
        "choice?(in 7 out 3) | text1/1 | choice?(in 7 out 4) | done |",
    ),
    (
        "vLLM, two choices, running usage and the sum",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n",
        "text0/1 running0(in 9 out 1) | text1/1 running1(in 9 out 1) | finish0:stop choice0(in 9 out 2) | whole(in 9 out 4) |",
    ),
    (
        "llama.cpp's own: counts without frames",
        Native,
        Sse,
        "data: {\"index\":0,\"content\":\"a\",\"tokens\":[4],\"stop\":false,\"tokens_predicted\":1,\"tokens_evaluated\":7}\n\ndata: {\"index\":0,\"content\":\"b\",\"tokens\":[5],\"stop\":false,\"tokens_predicted\":9,\"tokens_evaluated\":7}\n\ndata: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":true,\"tokens_predicted\":12,\"tokens_evaluated\":7,\"generation_settings\":{\"stop\":[]},\"stop_type\":\"limit\",\"timings\":{\"cache_n\":6}}\n\n",
        "text0/1=1 running0(in 7 out 1) | text0/1=1 running0(in 7 out 9) | finish0:length choice0(in 7 cached 6 out 12) |",
    ),
    (
        "trailing space",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]} \n\n",
        "role0 |",
    ),
    (
        "an error frame with spaces, then the end mark",
        Chat,
        Sse,
        "data: {\"error\": {\"message\": \"boom\", \"code\": 500}}\n\ndata: [DONE]\n\n",
        "error | done |",
    ),
    ("an error that is a string", Chat, Json, "{\"error\":\"Unauthorized\"}", "error |"),
    ("an error that is null is none", Chat, Sse, "data: {\"error\":null,\"choices\":[]}\n\n", "meta |"),
    (
        "a stream asked for, one body answered",
        Chat,
        Json,
        "{\"error\":{\"message\":\"x\",\"code\":400}}",
        "error |",
    ),
    (
        "several bytes a character, plain and escaped",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é😀\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\u00e9\\ud83d\\ude00\"}}]}\n\n",
        "text0/2 | text0/2 |",
    ),
    (
        "halves of surrogate pairs",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83dx\\ude00\\ud83d\\n\\ud83d\\ud83d\\ude00\"}}]}\n\n",
        "text0/7 |",
    ),
    (
        "usage over three lines",
        Chat,
        Sse,
        "data: {\ndata: \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\ndata:\n\n",
        "whole(in 1 out 1) |",
    ),
    (
        "numbers that are none are skipped",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"logprobs\":{\"content\":[{\"logprob\":NaN},{\"logprob\":-Infinity}]}}],\"x\":Infinity,\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
        "text0/1=2 running0(in 1 out 1) |",
    ),
    (
        "vLLM's Rust frontend",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "role0 | text0/1 | finish0:stop |",
    ),
    (
        "TGI's empty finish reasons",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"\"}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"eos_token\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
        "text0/1 | finish0:stop choice0(in 1 out 1) |",
    ),
    (
        "an unfinished block keeps its text and gives the rest",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n",
        "finish0:stop choice0(in 1 out 1) ~",
    ),
    (
        "usage, then the connection is lost",
        Chat,
        Sse,
        concat!(
            a!(),
            "\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [D"
        ),
        "text0/1 | whole(in 1 out 1) | other ~",
    ),
    (
        "parts of content",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"ab\"},{\"type\":\"text\",\"text\":\"c\"}]}}]}\n\n",
        "text0/3 |",
    ),
    (
        "a tool call",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":7,\"function\":{\"name\":\"dig\",\"arguments\":\"{\\\"usage\\\":1\"}}]}}]}\n\n",
        "tool0/13 |",
    ),
    (
        "reasoning and text in one delta, ids counted once",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"ab\",\"content\":\"c\"},\"token_ids\":[1,2,3]}]}\n\n",
        "reasoning0/2=3 text0/1=0 |",
    ),
    (
        "an empty delta with an id",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"token_ids\":[77]}]}\n\n",
        "empty0=1 |",
    ),
    (
        "a role with the first token's log probability",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null},\"logprobs\":{\"content\":[{}]}}]}\n\n",
        "role0 empty0=1 |",
    ),
    (
        "several choices in a frame",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}},{\"index\":0,\"delta\":{\"content\":\"bc\"},\"finish_reason\":\"length\"}]}\n\n",
        "text1/1 text0/2 finish0:length |",
    ),
    (
        "progress",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"prompt_progress\":{\"total\":9,\"processed\":5}}\n\n",
        "progress |",
    ),
    (
        "running timings",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"timings\":{\"prompt_n\":1,\"cache_n\":6,\"predicted_n\":3}}\n\n",
        "text0/1 running0(in 7 cached 6 out 3) |",
    ),
    (
        "a whole answer",
        Chat,
        Json,
        "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"ab\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n",
        "text0/2 finish0:stop choice0(in 1 out 2) |",
    ),
    (
        "two answers, one usage over both",
        Chat,
        Json,
        "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"ab\"}},{\"index\":1,\"message\":{\"content\":\"c\"}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
        "text0/2 text1/1 whole(in 1 out 2) |",
    ),
    (
        "two answers of llama.cpp, usage of one",
        Chat,
        Json,
        "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"ab\"}},{\"index\":1,\"message\":{\"content\":\"c\"}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2},\"timings\":{}}",
        "text0/2 text1/1 choice?(in 1 out 2) |",
    ),
    (
        "llama.cpp's own, an array of two prompts",
        Native,
        Json,
        "[{\"index\":0,\"content\":\"ab\",\"tokens\":[1],\"stop\":true,\"stop_type\":\"limit\",\"tokens_predicted\":2},{\"index\":1,\"content\":\"c\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":3}]",
        "text0/2=1 finish0:length choice0(out 2) text1/1 finish1:stop choice1(out 3) |",
    ),
    (
        "text of the other dialect",
        Text,
        Sse,
        "data: {\"choices\":[{\"index\":2,\"text\":\"ab\",\"logprobs\":{\"tokens\":[\"a\",\"b\"]},\"finish_reason\":null}]}\n\n",
        "text2/2=2 |",
    ),
    ("a number is no frame", Native, Sse, "data: 5\n\n", "other |"),
    ("nor is an empty list", Native, Json, "[]", "other |"),
    (
        "a list is no usage, an object no list of ids",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":{}},[]],\"usage\":[]}\n\n",
        "text0/1 |",
    ),
];

/// Of two members of one name the last counts.
const DOUBLES: [Vector; 9] = [
    (
        "usage",
        Chat,
        Sse,
        "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1},\"usage\":{\"completion_tokens\":2},\"choices\":[]}\n\n",
        "whole(out 2) |",
    ),
    (
        "usage, again and again",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9},\"usage\":{\"completion_tokens\":2}}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9},\"usage\":{\"completion_tokens\":2}}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":9},\"usage\":{\"completion_tokens\":2}}\n\n",
        "text0/1 running0(out 2) | text0/1 running0(out 2) | text0/1 running0(out 2) |",
    ),
    (
        "choices",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"a\"}}],\"choices\":[{\"delta\":{\"content\":\"bc\"}}]}\n\n",
        "text0/2 |",
    ),
    (
        "choices, again and again",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":3}],\"choices\":[{\"delta\":{\"content\":\"bc\"}}]}\n\ndata: {\"choices\":[{\"index\":3}],\"choices\":[{\"delta\":{\"content\":\"bc\"}}]}\n\ndata: {\"choices\":[{\"index\":3}],\"choices\":[{\"delta\":{\"content\":\"bc\"}}]}\n\n",
        "text0/2 | text0/2 | text0/2 |",
    ),
    (
        "content",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"abc\",\"content\":null}}]}\n\n",
        "empty0 |",
    ),
    (
        "index",
        Chat,
        Sse,
        "data: {\"choices\":[{\"index\":4,\"delta\":{\"content\":\"a\"},\"index\":null}]}\n\n",
        "text0/1 |",
    ),
    ("role", Chat, Sse, "data: {\"choices\":[{\"delta\":{\"role\":\"x\",\"role\":null}}]}\n\n", "empty0 |"),
    ("stop", Native, Sse, "data: {\"content\":\"a\",\"stop\":true,\"stop\":false}\n\n", "text0/1 |"),
    (
        "finish",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\",\"finish_reason\":null}]}\n\n",
        "empty0 |",
    ),
];

/// The order of members has no meaning.
const ORDER: [Vector; 8] = [
    (
        "ids, then log probabilities",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[1,2],\"logprobs\":{\"content\":[{},{},{}]}}]}\n\n",
        "text0/1=2 |",
    ),
    (
        "log probabilities, then ids",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"logprobs\":{\"content\":[{},{},{}]},\"token_ids\":[1,2]}]}\n\n",
        "text0/1=2 |",
    ),
    (
        "no ids, then log probabilities",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[],\"logprobs\":{\"content\":[{}]}}]}\n\n",
        "text0/1=1 |",
    ),
    (
        "log probabilities, then no ids",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"logprobs\":{\"content\":[{}]},\"token_ids\":[]}]}\n\n",
        "text0/1=1 |",
    ),
    (
        "an error object that says error null",
        Chat,
        Json,
        "{\"object\":\"error\",\"message\":\"x\",\"error\":null}",
        "error |",
    ),
    ("the other way round", Chat, Json, "{\"error\":null,\"object\":\"error\",\"message\":\"x\"}", "error |"),
    (
        "two spellings of reasoning",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"ab\",\"reasoning_content\":null}}]}\n\n",
        "reasoning0/2 |",
    ),
    (
        "the other way round",
        Chat,
        Sse,
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":null,\"reasoning\":\"ab\"}}]}\n\n",
        "reasoning0/2 |",
    ),
];

/// A line ends inside a string, which a match with the shape of the frame before must not skip.
#[test]
fn line_end_inside_a_string_ends_the_line() {
    for end in ["\n\n", "\r\r", "\n", "\\\n\n"] {
        let body = format!(
            "{a}\n\n{a}\n\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"x{end}data: y\"}}}}]}}\n\n{a}\n\n",
            a = a!()
        );
        let seen = cuts::difference(Chat, Sse, body.as_bytes(), 0..body.len())
            .unwrap_or_else(|why| panic!("{end:?} {why}"));
        // With this line end, it becomes two data lines, which are joined.
        let expected = if end == "\n" { "text0/3 |" } else { "other |" };
        assert!(short(&seen).contains(expected), "{end:?}: {}", short(&seen));
    }
}

/// The standard's own examples, for the oracle, with which all other results are compared.
#[test]
fn oracle_follows_the_standard() {
    let table: [(&str, &[&str]); 14] = [
        ("data: a\n\n", &["a"]),
        ("data:a\n\n", &["a"]),
        ("data:  a\n\n", &[" a"]),
        ("data: a\ndata: b\n\n", &["a\nb"]),
        ("data\n\n", &[""]),
        ("data\ndata\n\n", &["\n"]),
        ("event: ping\n\n", &[]),
        ("event: x\ndata: {}\n\ndata: {}\n\n", &["{}", "{}"]),
        (":hi\n\ndata: a\r\r", &["a"]),
        ("data: a\r\n\r\n", &["a"]),
        ("data: a\n", &[]),
        ("\u{FEFF}data: a\n\n", &["a"]),
        ("data: a\nid: 7\n: c\nfoo\nretry: 1e3\n\n", &["a"]),
        ("data: {\ndata: \"k\":1\ndata: }\n\n", &["{\n\"k\":1\n}"]),
    ];
    for (body, expected) in table {
        assert_eq!(naive::payloads(body.as_bytes()), expected, "{body:?}");
    }
}
