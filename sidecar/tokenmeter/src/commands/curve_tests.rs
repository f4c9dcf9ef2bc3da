//! The flags and the errors of `curve`.

use std::time::Duration;

use clap::{Args, Command, FromArgMatches};

use super::{CurveArgs, CurveError, admin, over};

fn command() -> Command {
    CurveArgs::augment_args(Command::new("curve"))
}

fn args(line: &str) -> CurveArgs {
    CurveArgs::from_arg_matches(&command().try_get_matches_from(line.split(' ')).unwrap()).unwrap()
}

#[test]
fn clap_accepts_the_command() {
    command().debug_assert();
}

#[test]
fn durations_are_parsed() {
    for (text, seconds) in [("60", 60), ("60s", 60), ("5m", 300), ("2h", 7200), ("24h", 86_400)] {
        assert_eq!(over(text), Ok(Duration::from_secs(seconds)), "{text}");
    }
    for text in ["", "s", "0", "25h", "-5", "5d", "1.5m", "5 m", "99999999999999999999", "99999999999999999h"]
    {
        assert!(over(text).is_err(), "{text}");
    }
}

#[test]
fn metrics_page_is_a_valid_address() {
    for text in ["http://gpu:9464", "http://gpu:9464/", "http://gpu:9464/metrics", "http://gpu:9464/metrics/"]
    {
        assert_eq!(admin(text).unwrap().to_string(), "http://gpu:9464", "{text}");
    }
    assert_eq!(admin("http://gpu/meter/metrics").unwrap().to_string(), "http://gpu:80/meter");
    assert_eq!(
        admin("127.0.0.1:9464").unwrap_err(),
        "not a URL; write http://HOST:PORT, as in http://127.0.0.1:9464"
    );
    assert!(args("curve").from.to_string() == "http://127.0.0.1:9464");
}

#[test]
fn missing_streams_have_an_explanation() {
    let error = |line: &str, timed: &[&str]| {
        let timed = timed.iter().map(|name| name.to_string()).collect();
        CurveError::Nothing { args: Box::new(args(line)), timed }.to_string()
    };
    assert_eq!(
        error("curve --model qwen3-8", &["llama-3", "qwen3-8b"]),
        "http://127.0.0.1:9464/metrics has timed no stream of a model `qwen3-8`; did you mean `qwen3-8b`?"
    );
    assert_eq!(
        error("curve --model gpt", &["llama-3", "a\u{1b}b"]),
        "http://127.0.0.1:9464/metrics has timed no stream of a model `gpt`; it has llama-3, a\\u{1b}b"
    );
    assert_eq!(
        error("curve --over 1m", &[]),
        "no stream ended within those 60 s; use a longer window, or omit --over for all since its start"
    );
    assert_eq!(
        error("curve --model qwen3-8b", &[]),
        "http://127.0.0.1:9464/metrics has timed no stream yet; send streamed requests through that tokenmeter and \
         try again"
    );
}
