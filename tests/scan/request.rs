//! What a request asks for, read as it passes: recorded requests and made-up ones, in any pieces,
//! compared with the naive reader.

use harness::{Transcript, naive};
use scan::{Request, RequestScanner};

fn read(body: &[u8], step: usize) -> Request {
    let mut scanner = RequestScanner::new();
    for slice in body.chunks(step) {
        scanner.feed(slice);
    }
    scanner.end()
}

fn check(name: &str, body: &[u8]) -> Option<()> {
    let whole = read(body, usize::MAX);
    for step in [1, 7, 64] {
        assert_eq!(format!("{:?}", read(body, step)), format!("{whole:?}"), "{name} in steps of {step}");
    }
    let asked = naive::read_request(body)?;
    assert!(whole.whole, "{name}");
    let said = naive::Asked {
        model: whole.model.as_str().to_owned(),
        stream: whole.stream,
        answers: whole.answers,
        prompt_ids: whole.prompt_ids,
        include_usage: whole.include_usage,
        continuous_usage: whole.continuous_usage,
        echo: whole.echo,
    };
    assert_eq!(said, asked, "{name}: {}", String::from_utf8_lossy(&body[..body.len().min(300)]));
    Some(())
}

#[test]
fn recorded_requests() {
    for transcript in Transcript::all() {
        let known = check(&transcript.name, &transcript.request);
        assert!(known.is_some() || transcript.name.ends_with("error-bad-json"), "{}", transcript.name);
    }
}

#[test]
fn made_up_requests() {
    for body in [
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
        r#"{"stream_options":{"include_usage":false},"stream":false}"#,
        r#"{"stream":null,"stream_options":null,"n":null}"#,
        r#"{"n":3,"prompt":["a","b"]}"#,
        r#"{"n":0,"prompt":[]}"#,
        r#"{"n_cmpl":4,"prompt":"x"}"#,
        r#"{"prompt":[1,2,3]}"#,
        r#"{"prompt":[[1,2],[3]],"n":2}"#,
        r#"{"prompt":["a",12,"b"]}"#,
        r#"{"prompt":[12,"a",13,"b"],"n":2}"#,
        r#"{"echo":true,"model":"a\u0062c"}"#,
        r#"{"messages":[{"content":"\"stream\":true","model":"no","n":9}],"model":"yes"}"#,
        r#"{"metadata":{"model":"no","stream":true},"prompt":"\\"}"#,
        r#"{"n":99999999999}"#,
        r#"{"n":-1}"#,
        r#"[{"model":"no"}]"#,
    ] {
        check(body, body.as_bytes()).unwrap_or_else(|| panic!("no opinion on {body}"));
    }
}

#[test]
fn what_is_no_request_is_not_whole() {
    for body in ["", " ", "{", "{\"model\":\"m\"", "x", "{}}", "{\"model\":\"m\"}x"] {
        assert!(!read(body.as_bytes(), usize::MAX).whole, "{body}");
    }
}
