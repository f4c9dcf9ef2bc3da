//! The edit of a request.

use bytes::Bytes;

use crate::{AddedOptions, Injection, NotInjected, Policy, UsageOptions, inject_usage};

const INJECT: UsageOptions =
    UsageOptions { include: true, continuous: false, timings: false, alone_is_void: false, is_strict: false };
const CONTINUOUS: UsageOptions =
    UsageOptions { include: true, continuous: true, timings: false, alone_is_void: false, is_strict: false };
const RUNNING: UsageOptions =
    UsageOptions { include: false, continuous: true, timings: false, alone_is_void: false, is_strict: false };

/// The body after the edit, or the reason that there is none.
fn inject(body: &str, allowed: UsageOptions) -> Result<(String, AddedOptions), NotInjected> {
    match inject_usage(body.as_bytes(), allowed) {
        Injection::Nothing(why) => Err(why),
        Injection::Edit { edit, added, .. } => {
            let original = Bytes::copy_from_slice(body.as_bytes());
            let parts: Vec<Bytes> = edit.apply(&original).collect();
            assert!(parts.iter().all(|part| !part.is_empty()), "{body}");
            let edited = parts.concat();
            assert_eq!(edited.len(), edit.new_len(body.len()), "{body}");
            assert_eq!(edited.len() as i64, body.len() as i64 + edit.delta_len(), "{body}");
            Ok((String::from_utf8(edited).expect("UTF-8"), added))
        }
    }
}

#[test]
fn options_are_merged_into_the_request() {
    // Body, allowed options, edited body, added options.
    let both = AddedOptions { include: true, continuous: true, timings: false };
    let end = AddedOptions { include: true, continuous: false, timings: false };
    let running = AddedOptions { include: false, continuous: true, timings: false };
    for (body, allowed, edited, added) in [
        // No stream_options.
        (r#"{"stream":true}"#, INJECT, r#"{"stream":true,"stream_options":{"include_usage":true}}"#, end),
        (
            r#"{"model":"m", "stream" : true , "n":2}"#,
            CONTINUOUS,
            r#"{"model":"m", "stream" : true,"stream_options":{"include_usage":true,"continuous_usage_stats":true} , "n":2}"#,
            both,
        ),
        (
            r#"{"stream":true}"#,
            RUNNING,
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":true}}"#,
            running,
        ),
        // Vector 41: null, and a false flag.
        (
            r#"{"stream":true,"stream_options":null}"#,
            INJECT,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":false}}"#,
            INJECT,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":null}}"#,
            INJECT,
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":false}}"#,
            CONTINUOUS,
            r#"{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
            both,
        ),
        (
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":false,"include_usage":false}}"#,
            CONTINUOUS,
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true}}"#,
            both,
        ),
        // Empty, and with other members.
        (
            r#"{"stream_options":{},"stream":true}"#,
            INJECT,
            r#"{"stream_options":{"include_usage":true},"stream":true}"#,
            end,
        ),
        (
            "{\"stream_options\":{ \n},\"stream\":true}",
            CONTINUOUS,
            "{\"stream_options\":{\"include_usage\":true,\"continuous_usage_stats\":true \n},\"stream\":true}",
            both,
        ),
        (
            r#"{"stream_options":{ "include_obfuscation": false },"stream":true}"#,
            INJECT,
            r#"{"stream_options":{"include_usage":true, "include_obfuscation": false },"stream":true}"#,
            end,
        ),
        // One option is present, the other is added.
        (
            r#"{"stream_options":{"include_usage":true},"stream":true}"#,
            CONTINUOUS,
            r#"{"stream_options":{"continuous_usage_stats":true,"include_usage":true},"stream":true}"#,
            running,
        ),
        (
            r#"{"stream_options":{"include_usage":false},"stream":true}"#,
            CONTINUOUS,
            r#"{"stream_options":{"continuous_usage_stats":true,"include_usage":true},"stream":true}"#,
            both,
        ),
        (
            r#"{"stream_options":{"continuous_usage_stats":false},"stream":true}"#,
            INJECT,
            r#"{"stream_options":{"include_usage":true,"continuous_usage_stats":false},"stream":true}"#,
            end,
        ),
        // Escaped keys are recognised.
        (
            r#"{"str\u0065am":true,"stream_\u006fptions":{"incl\u0075de_usage":false}}"#,
            INJECT,
            r#"{"str\u0065am":true,"stream_\u006fptions":{"incl\u0075de_usage":true}}"#,
            end,
        ),
        // The last of two counts.
        (
            r#"{"stream":false,"stream":true}"#,
            INJECT,
            r#"{"stream":false,"stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":true},"stream_options":{}}"#,
            INJECT,
            r#"{"stream":true,"stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}"#,
            INJECT,
            r#"{"stream":true,"stream_options":{"include_usage":true,"include_usage":true}}"#,
            end,
        ),
        // Equal names at other paths, and text of every kind.
        (
            r#"{"messages":[{"content":"\"stream_options\":{} é😀\ud83d\ude00\u0000","stream":false}],"tools":{"stream_options":{"include_usage":true}},"stream":true}"#,
            INJECT,
            r#"{"messages":[{"content":"\"stream_options\":{} é😀\ud83d\ude00\u0000","stream":false}],"tools":{"stream_options":{"include_usage":true}},"stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            " \r\n\t{\r\n\t\"stream\"\t:\r\ntrue\r\n}\r\n ",
            INJECT,
            " \r\n\t{\r\n\t\"stream\"\t:\r\ntrue,\"stream_options\":{\"include_usage\":true}\r\n}\r\n ",
            end,
        ),
        // Half a surrogate pair in a text is left to the server.
        (
            r#"{"x":"\ud800","stream":true}"#,
            INJECT,
            r#"{"x":"\ud800","stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        // Half a pair in a key, too.
        (
            r#"{"\ud800":0,"model":"m","stream":true}"#,
            INJECT,
            r#"{"\ud800":0,"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream_options":{"\uDFFF\\":[],"include_usage":false}}"#,
            INJECT,
            r#"{"stream":true,"stream_options":{"\uDFFF\\":[],"include_usage":true}}"#,
            end,
        ),
        // More escaped keys.
        (
            r#"{"\u0073trea\u006d":true}"#,
            INJECT,
            r#"{"\u0073trea\u006d":true,"stream_options":{"include_usage":true}}"#,
            end,
        ),
        (
            r#"{"stream":true,"stream\ud800":false,"\u0073tream_options":null}"#,
            INJECT,
            r#"{"stream":true,"stream\ud800":false,"\u0073tream_options":{"include_usage":true}}"#,
            end,
        ),
    ] {
        assert_eq!(inject(body, allowed), Ok((edited.to_owned(), added)), "{body}");
    }
}

/// Flags as pydantic reads them; only a false one is replaced.
#[test]
fn flags_in_pydantics_forms_are_recognised() {
    for yes in
        ["1", "1.0", "1e0", r#""true""#, r#""True""#, r#""1""#, r#""yes""#, r#""on""#, r#""t""#, r#""Y""#]
    {
        let edited = format!(r#"{{"stream":{yes},"stream_options":{{"include_usage":true}}}}"#);
        for before in [
            format!(r#"{{"stream":{yes}}}"#),
            format!(r#"{{"stream":{yes},"stream_options":null}}"#),
            format!(r#"{{"stream":{yes},"stream_options":{{}}}}"#),
        ] {
            assert_eq!(inject(&before, INJECT).expect("an edit").0, edited, "{before}");
        }
    }
    for no in [
        "0",
        "0.0",
        "-0",
        r#""false""#,
        r#""\u0046ALSE""#,
        r#""0""#,
        r#""no""#,
        r#""off""#,
        r#""f""#,
        r#""N""#,
    ] {
        let before = format!(r#"{{"stream":true,"stream_options":{{"include_usage": {no} }}}}"#);
        let (edited, added) = inject(&before, INJECT).expect("an edit");
        assert_eq!(edited, r#"{"stream":true,"stream_options":{"include_usage": true }}"#);
        assert_eq!(added, AddedOptions { include: true, continuous: false, timings: false });
    }
}

/// Python's truth of a value decides where these values are no flags.
#[test]
fn any_true_value_requests_a_stream() {
    for value in ["2", "-1", "0.5", r#""please""#, r#"" ""#, "[1]", "[]", "{}", "1e999", "NaN"] {
        let edited = format!(r#"{{"stream":{value},"stream_options":{{"include_usage":true}}}}"#);
        assert_eq!(inject(&format!(r#"{{"stream":{value}}}"#), INJECT).expect("an edit").0, edited);
    }
    let long = format!("0.{}", "0".repeat(40));
    for value in ["0", "-0.0", "null", "false", r#""""#, r#""off""#, &long] {
        let body = format!(r#"{{"stream":{value}}}"#);
        assert_eq!(
            inject_usage(body.as_bytes(), INJECT),
            Injection::Nothing(NotInjected::NotStreamed),
            "{body}"
        );
    }
}

/// The options have the position they would have in JSON, and every other byte is unchanged.
#[test]
fn input_that_python_accepts_is_edited() {
    let options = br#","stream_options":{"include_usage":true}"#;
    for (before, after) in [
        (&b"\xEF\xBB\xBF{\"stream\":true"[..], &b"}"[..]),
        (b"{\"x\":NaN,\"stream\":true", b",\"y\":[-Infinity,Infinity]}"),
        (b"{\"\xED\xA0\x80\":1,\"stream\":true", b",\"z\":\"\xED\xA0\x80\"}"),
    ] {
        let body = Bytes::from([before, after].concat());
        let Injection::Edit { edit, .. } = inject_usage(&body, INJECT) else { panic!("an edit: {body:?}") };
        let edited: Vec<u8> = edit.apply(&body).flatten().collect();
        assert_eq!(edited, [before, options, after].concat());
    }
}

#[test]
fn json_booleans_are_plain_flags() {
    for (body, expected) in [
        (r#"{"stream":true}"#, true),
        (r#"{"stream":true,"stream_options":{"include_usage":null}}"#, true),
        (r#"{"stream":1}"#, false),
        (r#"{"stream":"on","stream_options":null}"#, false),
        (r#"{"stream":true,"stream_options":{"include_usage":0}}"#, false),
        (r#"{"stream":true,"stream_options":{"continuous_usage_stats":"no"}}"#, false),
    ] {
        let Injection::Edit { plain, .. } = inject_usage(body.as_bytes(), INJECT) else {
            panic!("an edit: {body}")
        };
        assert_eq!(plain, expected, "{body}");
    }
}

#[test]
fn other_requests_stay_unchanged() {
    for (body, allowed, why) in [
        // Vector 41: no option without a stream.
        (r#"{"stream":false,"stream_options":null}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"stream":null}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"stream":"no"}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"stream":0}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"stream":true,"stream":"off"}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"model":"m"}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"stream":true,"stream":false}"#, INJECT, NotInjected::NotStreamed),
        (r#"{"options":{"stream":true}}"#, INJECT, NotInjected::NotStreamed),
        ("{}", INJECT, NotInjected::NotStreamed),
        (r#"{"stream":true,"stream_options":{"include_usage":true}}"#, INJECT, NotInjected::AlreadyRequested),
        (
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true}}"#,
            CONTINUOUS,
            NotInjected::AlreadyRequested,
        ),
        (
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":true}}"#,
            RUNNING,
            NotInjected::AlreadyRequested,
        ),
        // vLLM answers this without usage, SGLang with running counts.
        (
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":true}}"#,
            INJECT,
            NotInjected::AlreadyRequested,
        ),
        (
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":1,"include_usage":false}}"#,
            CONTINUOUS,
            NotInjected::AlreadyRequested,
        ),
        (
            r#"{"stream":true}"#,
            UsageOptions {
                include: false,
                continuous: false,
                timings: false,
                alone_is_void: false,
                is_strict: false,
            },
            NotInjected::AlreadyRequested,
        ),
        (r#"{"stream":true,"stream_options":[]}"#, INJECT, NotInjected::UnexpectedType),
        (r#"{"stream":true,"stream_options":true}"#, INJECT, NotInjected::UnexpectedType),
        (r#"{"stream":true,"stream_options":"{}"}"#, INJECT, NotInjected::UnexpectedType),
        (r#"{"stream":true,"stream_options":7}"#, INJECT, NotInjected::UnexpectedType),
        // Flags in other forms.
        (r#"{"stream":1,"stream_options":{"include_usage":1}}"#, INJECT, NotInjected::AlreadyRequested),
        (
            r#"{"stream":true,"stream_options":{"continuous_usage_stats":"yes"}}"#,
            RUNNING,
            NotInjected::AlreadyRequested,
        ),
        (r#"{"stream":true,"stream_options":{"include_usage":2}}"#, INJECT, NotInjected::UnexpectedType),
        (
            r#"{"stream":true,"stream_options":{"include_usage":"maybe"}}"#,
            INJECT,
            NotInjected::UnexpectedType,
        ),
        (r#"{"stream":true,"stream_options":{"include_usage":{}}}"#, INJECT, NotInjected::UnexpectedType),
        (r#"[{"stream":true}]"#, INJECT, NotInjected::UnexpectedType),
        ("true", INJECT, NotInjected::UnexpectedType),
        ("", INJECT, NotInjected::NotJson),
        (r#"{"stream":true"#, INJECT, NotInjected::NotJson),
        (r#"{"stream":true}{"#, INJECT, NotInjected::NotJson),
        (r#"{"stream":true,}"#, INJECT, NotInjected::NotJson),
        (r#"{"stream":True}"#, INJECT, NotInjected::NotJson),
        (r#"{"stream":true,"stream_options":{"include_usage":NaN}}"#, INJECT, NotInjected::UnexpectedType),
        (r#"{"stream":true,"temperature":nan}"#, INJECT, NotInjected::NotJson),
        (r#"{"stream":true,"temperature":NaN"#, INJECT, NotInjected::NotJson),
        ("{\"stream\":true,\"x\":\"\n\"}", INJECT, NotInjected::NotJson),
        ("stream=true", INJECT, NotInjected::NotJson),
    ] {
        assert_eq!(inject(body, allowed), Err(why), "{body}");
    }
    assert_eq!(inject_usage(b"{\0\"\0s\0", INJECT), Injection::Nothing(NotInjected::NotJson));
}

#[test]
fn depth_and_size_are_no_limit() {
    let deep = "[".repeat(1_000_000);
    let torn = format!(r#"{{"stream":true,"x":{deep}"#);
    assert_eq!(inject(&torn, INJECT), Err(NotInjected::NotJson));
    let options = format!(r#"{{"stream":true,"stream_options":{deep}}}"#);
    assert_eq!(inject(&options, INJECT), Err(NotInjected::NotJson));
    // A complete body is left to the server: nothing here recurses.
    let whole = format!(r#"{{"x":{deep}{},"stream":true}}"#, "]".repeat(1_000_000));
    let (edited, _) = inject(&whole, INJECT).expect("an edit");
    assert_eq!(edited, whole.replace("true}", r#"true,"stream_options":{"include_usage":true}}"#));

    let long = format!(r#"{{"prompt":"{}","stream":true}}"#, "a".repeat(4 << 20));
    let (edited, _) = inject(&long, INJECT).expect("an edit");
    assert_eq!(edited.len(), long.len() + r#","stream_options":{"include_usage":true}"#.len());
}

#[test]
fn an_edit_copies_nothing() {
    let body = Bytes::from_static(br#"{"stream_options":{"include_usage":false},"stream":true}"#);
    let Injection::Edit { edit, .. } = inject_usage(&body, CONTINUOUS) else { panic!("an edit") };
    let parts: Vec<Bytes> = edit.apply(&body).collect();
    let own = parts.iter().filter(|part| body.as_ptr_range().contains(&part.as_ptr())).count();
    assert_eq!((parts.len(), own), (5, 3), "{parts:?}");
}

#[test]
fn edit_of_another_body_does_not_panic() {
    let body = br#"{"stream_options":{"include_usage":false},"stream":true}"#;
    let Injection::Edit { edit, .. } = inject_usage(body, CONTINUOUS) else { panic!("an edit") };
    for len in 0..body.len() {
        let other = Bytes::copy_from_slice(&body[..len]);
        let kept: Vec<u8> = edit.apply(&other).flatten().collect();
        assert!(kept.len() + "false".len() >= len, "{len}");
    }
}

#[test]
fn policy_names_are_the_settings() {
    assert_eq!(Policy::ALL.map(Policy::name), ["inject", "continuous", "observe"]);
}

const TIMINGS: UsageOptions =
    UsageOptions { include: true, continuous: false, timings: true, alone_is_void: true, is_strict: true };

#[test]
fn timings_are_injected_beside_usage_options() {
    let both = AddedOptions { include: true, continuous: false, timings: true };
    let alone = AddedOptions { include: false, ..both };
    for (body, expected, added) in [
        (
            r#"{"stream":true,"n":1}"#,
            r#"{"stream":true,"timings_per_token":true,"stream_options":{"include_usage":true},"n":1}"#,
            both,
        ),
        (
            r#"{"timings_per_token":false,"stream_options":{},"stream":true}"#,
            r#"{"timings_per_token":true,"stream_options":{"include_usage":true},"stream":true}"#,
            both,
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":true},"timings_per_token":null}"#,
            r#"{"stream":true,"stream_options":{"include_usage":true},"timings_per_token":true}"#,
            alone,
        ),
        (
            r#"{"timings_per_token":true,"stream":true}"#,
            r#"{"timings_per_token":true,"stream":true,"stream_options":{"include_usage":true}}"#,
            AddedOptions { timings: false, ..both },
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":true}}"#,
            r#"{"stream":true,"timings_per_token":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
            AddedOptions { continuous: true, ..both },
        ),
    ] {
        assert_eq!(injected(body, TIMINGS), (expected.to_owned(), added), "{body}");
    }
    let only = UsageOptions { include: false, ..TIMINGS };
    let body = r#"{"stream":true,"stream_options":[]}"#;
    let expected = r#"{"stream":true,"timings_per_token":true,"stream_options":[]}"#;
    assert_eq!(injected(body, only), (expected.to_owned(), alone), "options stay unchanged");
    for (body, allowed, why) in [
        (r#"{"stream":true,"timings_per_token":"x"}"#, TIMINGS, NotInjected::UnexpectedType),
        // llama.cpp must refuse these through the proxy, too.
        (r#"{"stream":true,"timings_per_token":0}"#, TIMINGS, NotInjected::UnexpectedType),
        (r#"{"stream":true,"timings_per_token":1}"#, TIMINGS, NotInjected::UnexpectedType),
        (r#"{"stream":true,"timings_per_token":"false"}"#, TIMINGS, NotInjected::UnexpectedType),
        (r#"{"stream":true,"stream_options":{"include_usage":0}}"#, TIMINGS, NotInjected::UnexpectedType),
        (
            r#"{"stream":true,"stream_options":{"include_usage":"true"}}"#,
            TIMINGS,
            NotInjected::UnexpectedType,
        ),
        (r#"{"stream":true,"timings_per_token":true}"#, only, NotInjected::AlreadyRequested),
        (r#"{"stream":false}"#, TIMINGS, NotInjected::NotStreamed),
    ] {
        assert_eq!(inject_usage(body.as_bytes(), allowed), Injection::Nothing(why), "{body}");
    }
}

#[test]
fn ineffective_running_counts_become_added() {
    let body = r#"{"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":true}}"#;
    assert_eq!(inject_usage(body.as_bytes(), CONTINUOUS), Injection::Nothing(NotInjected::AlreadyRequested));
    let expected = r#"{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
    let added = AddedOptions { include: true, continuous: true, timings: false };
    assert_eq!(
        injected(body, UsageOptions { alone_is_void: true, ..CONTINUOUS }),
        (expected.to_owned(), added)
    );
}

/// The edited body and the added options.
fn injected(body: &str, allowed: UsageOptions) -> (String, AddedOptions) {
    let Injection::Edit { edit, added, .. } = inject_usage(body.as_bytes(), allowed) else {
        panic!("no edit of {body}")
    };
    let parts: Vec<u8> = edit.apply(&Bytes::copy_from_slice(body.as_bytes())).flatten().collect();
    (String::from_utf8(parts).expect("UTF-8"), added)
}
