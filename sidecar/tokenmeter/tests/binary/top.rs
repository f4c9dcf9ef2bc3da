//! `tokenmeter top` on a pseudo-terminal and as text, beside an admin listener that sends what a test wants.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use live::{History, Now, Point, Recent, Scope, Totals};

use crate::access::Folder;
use crate::child::{PATIENCE, free, output};
use crate::fake_admin::FakeAdmin;
use crate::screen::Screen;

fn scope(name: &str, rate: f64, output: u64) -> Scope {
    let point = Point { in_flight: Some(3.0), first_token_p50_seconds: Some(0.21), ..Point::default() };
    let tokens = BTreeMap::from([("output".to_owned(), output)]);
    Scope {
        name: name.into(),
        point,
        recent: Recent { output_tokens_per_second_10s: Some(rate), ..Recent::default() },
        totals: Totals { exchanges: 5, tokens, ..Totals::default() },
        budget: None,
    }
}

/// Returns the reading of a second since the start; the rate of all traffic is 1000 and that second.
fn now(second: u32) -> Now {
    let started_unix_ms = 1_795_550_400_000;
    Now {
        version: "0.1.0".into(),
        started_unix_ms,
        at_unix_ms: started_unix_ms + u64::from(second) * 1000,
        all: scope("", 1000.0 + f64::from(second), 900),
        models: vec![scope("slow-model", 7.0, 800), scope("fast-model", 900.0, 100)],
        tenants: vec![scope("evil\u{1b}[2J\u{202e}", 1.0, 900)],
        ..Now::default()
    }
}

/// Starts a listener whose every reading is a second after the one before.
fn admin(address: Option<SocketAddr>) -> FakeAdmin {
    let second = Mutex::new(0);
    FakeAdmin::start(address, move |path, _| {
        let body = match path {
            "/api/now" => {
                let mut second = second.lock().unwrap();
                *second += 1;
                serde_json::to_string(&now(*second)).unwrap()
            }
            "/api/curve" => r#"{"window_seconds": null, "models": []}"#.to_owned(),
            path if path.starts_with("/api/history?scope=") => {
                serde_json::to_string(&History { step_seconds: 1, ..History::default() }).unwrap()
            }
            _ => return (404, r#"{"error": "no such path"}"#.to_owned()),
        };
        (200, body)
    })
}

fn start(admin: &FakeAdmin) -> Screen {
    Screen::start(&["top", "--admin", &admin.address.to_string()], &[], 24, 80)
}

fn place(text: &str, part: &str) -> usize {
    text.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{text}"))
}

#[test]
fn keys_sort_filter_and_quit() {
    let admin = admin(None);
    let mut screen = start(&admin);
    screen.shows(" output tokens/s");
    let text = screen.shows("fast-model");
    assert!(place(&text, "slow-model") < place(&text, "fast-model"), "the order of the listener:\n{text}");
    assert!(text.contains("evil\\u{1b}[2J"), "{text}");
    let first = text.lines().find(|line| line.contains("output tokens/s")).unwrap().to_owned();
    screen.until(|text| text.contains("all traffic") && !text.contains(&first));
    screen.press("s");
    let text = screen.shows("↓tokens/s");
    assert!(place(&text, "fast-model") < place(&text, "slow-model"), "{text}");
    // Arrows are escape sequences, and one that is alone is the key esc.
    screen.press("\u{1b}[B\r");
    screen.shows("model slow-model  7 output tokens/s");
    screen.press("\u{1b}");
    screen.shows("all traffic");
    screen.press("?");
    screen.shows("time to the first token");
    screen.press("?");
    screen.shows("all traffic");
    screen.press("q");
    assert_eq!(screen.ended(), Some(0));
    screen.assert_restored();
}

#[test]
fn interrupt_quits_and_restores_the_terminal() {
    let admin = admin(None);
    let mut screen = start(&admin);
    screen.shows("fast-model");
    screen.press("\u{3}");
    assert_eq!(screen.ended(), Some(0));
    screen.assert_restored();
}

#[test]
fn suspended_program_gives_the_terminal_back_and_goes_on() {
    let admin = admin(None);
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    let mut screen = Screen::open(&shell, &[("PS1", "shell> ")], 24, 80);
    screen.shows("shell> ");
    screen.press(&format!("{} top --admin {}\r", env!("CARGO_BIN_EXE_tokenmeter"), admin.address));
    screen.shows("fast-model");
    screen.press("\u{1a}");
    screen.until(|text| text.contains("Stopped") && !text.contains("fast-model"));
    screen.assert_left();
    screen.press("echo a$((6 * 7))b\r");
    screen.shows("a42b");
    screen.press("fg\r");
    screen.until(|text| text.contains("fast-model") && !text.contains("a42b"));
    screen.press("?");
    screen.shows("time to the first token");
    screen.press("q");
    screen.until(|text| text.contains("a42b") && text.trim_end().ends_with("shell>"));
    screen.assert_left();
    screen.press("exit\r");
    assert_eq!(screen.ended(), Some(0));
}

#[test]
fn signal_restores_the_terminal() {
    let admin = admin(None);
    for (name, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut screen = start(&admin);
        screen.shows("fast-model");
        screen.signal(name);
        assert_eq!(screen.ended(), Some(code), "{name}");
        screen.assert_restored();
    }
}

/// script(1) of util-linux holds the terminal and is killed, as an ssh server whose client is gone.
#[test]
fn hung_up_terminal_ends_it() {
    let last = Arc::new(Mutex::new(None));
    let asked = Arc::clone(&last);
    let admin = FakeAdmin::start(None, move |_, _| {
        *asked.lock().unwrap() = Some(Instant::now());
        (200, serde_json::to_string(&now(1)).unwrap())
    });
    // Its terminal has no size.
    let run = format!(
        "stty rows 24 cols 80; exec {} top --admin {}",
        env!("CARGO_BIN_EXE_tokenmeter"),
        admin.address
    );
    let mut command = Command::new("script");
    command.args(["-qec", &run, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut script = command.spawn().unwrap();
    let mut screen = script.stdout.take().unwrap();
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("fast-model") {
        let mut buffer = [0; 4096];
        let count = screen.read(&mut buffer).unwrap();
        assert!(count > 0, "{shown:?}");
        shown.extend(&buffer[..count]);
    }
    script.kill().unwrap();
    script.wait().unwrap();
    let end = Instant::now() + PATIENCE;
    while last.lock().unwrap().is_some_and(|asked| asked.elapsed() < Duration::from_secs(4)) {
        assert!(Instant::now() < end, "it still asks each second");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn new_size_is_drawn() {
    let admin = admin(None);
    let mut screen = start(&admin);
    screen.shows("fast-model");
    let wide = |text: &str| text.lines().any(|line| line.contains("in flight") && line.contains("per 1M"));
    assert!(!wide(&screen.text()), "{}", screen.text());
    screen.resize(50, 160);
    screen.until(wide);
    screen.resize(6, 20);
    screen.until(|text| text.contains("tokenmeter") && !text.contains("tenants"));
    screen.quit();
    assert_eq!(screen.ended(), Some(0));
    screen.assert_restored();
}

#[test]
fn listener_that_comes_back_is_shown_again() {
    let first = admin(None);
    let address = first.address;
    let mut screen = start(&first);
    screen.shows("fast-model");
    drop(first);
    let text = screen.shows("! the numbers are ");
    assert!(text.contains("no tokenmeter answers at") && text.contains("fast-model"), "{text}");
    let _second = admin(Some(address));
    screen.until(|text| !text.contains("! the numbers are ") && text.contains("fast-model"));
    screen.press("q");
    assert_eq!(screen.ended(), Some(0));
}

#[test]
fn no_color_has_no_colour() {
    let admin = admin(None);
    let is_colour = |screen: &Screen| {
        let text = String::from_utf8(screen.bytes()).unwrap();
        ["\u{1b}[3", "\u{1b}[4", "\u{1b}[9"].iter().any(|start| {
            // 3x, 4x, 9x: colours; 39 and 49 are the defaults.
            text.match_indices(start).any(|(at, _)| {
                let code: String =
                    text[at + 2..].chars().take_while(|c| *c != 'm' && !c.is_alphabetic()).collect();
                code.split(';').any(|code| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=97)))
                    && text[at + 2 + code.len()..].starts_with('m')
            })
        })
    };
    for (variables, colours) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let address = admin.address.to_string();
        let mut screen = Screen::start(&["top", "--admin", &address], variables, 24, 80);
        screen.shows("fast-model");
        screen.press("q");
        assert_eq!(screen.ended(), Some(0));
        assert_eq!(is_colour(&screen), colours, "{variables:?}");
    }
}

#[test]
fn text_has_no_escape_codes() {
    let admin = admin(None);
    let address = admin.address.to_string();
    let (code, stdout, stderr) = output(&["top", "--admin", &address]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout:?}");
    for part in ["all traffic  1001 output tokens/s", "slow-model", "evil\\u{1b}[2J\\u{202e}"] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }
    let url = format!("http://{address}/");
    let mut screen = Screen::start(&["top", "--once"], &[("TOKENMETER_ADMIN", &url)], 40, 160);
    assert_eq!(screen.ended(), Some(0));
    screen.shows("fast-model");
    assert!(!screen.bytes().contains(&0x1b), "{}", screen.text());
}

#[test]
fn token_is_sent() {
    let folder = Folder::new("top-token");
    let token = &folder.file("admin.token", "secret\n");
    let admin = FakeAdmin::start(None, |path, token| match (path, token) {
        ("/api/now", Some("Bearer secret")) => (200, serde_json::to_string(&now(1)).unwrap()),
        _ => (401, r#"{"error": "the token is missing"}"#.to_owned()),
    });
    let address = admin.address.to_string();
    let (code, stdout, stderr) = output(&["top", "--admin", &address, "--token-file", token]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let (code, _, stderr) = output(&["top", "--admin", &address]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("needs the admin token; name the file that has it with --token-file"),
        "{stderr}"
    );
    folder.file("admin.token", "other\n");
    let (code, _, stderr) = output(&["top", "--admin", &address, "--token-file", token]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("rejects the token"), "{stderr}");
    let (code, _, stderr) = output(&["top", "--admin", &address, "--token-file", "/nonexistent/token"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the token file /nonexistent/token cannot be read"), "{stderr}");
}

#[test]
fn error_says_what_to_do() {
    let fails = |admin: &str, part: &str| {
        let (code, stdout, stderr) = output(&["top", "--admin", admin]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains(part) && !stderr.contains('\u{1b}'), "{part:?} in {stderr:?}");
    };
    fails(&free().to_string(), "name its admin address with --admin");
    let responds = |api: (u16, &'static str), metrics: &'static str| {
        FakeAdmin::start(None, move |path, _| match path {
            "/api/now" => (api.0, api.1.to_owned()),
            _ => (200, metrics.to_owned()),
        })
    };
    for (api, metrics, part) in [
        ((404, "not found"), "# TYPE x gauge\ntokenmeter_x 1\n", "is older than this one and has no /api"),
        ((404, "not found"), "<html>", "is not a tokenmeter; name the admin address of a running one"),
        ((200, "<html>"), "", "is not a tokenmeter"),
        (
            (200, r#"{"version": "9.0\u001b[2J", "models": 7}"#),
            "",
            "has version 9.0\\u{1b}[2J and other numbers",
        ),
        ((503, "{\"error\": \"busy\\u001b[2J; try again\"}"), "", "responds 503: busy\\u{1b}[2J; try again"),
        ((421, "use an IP address\nsecond"), "", "responds 421: use an IP address\n"),
    ] {
        let admin = responds(api, metrics);
        fails(&admin.address.to_string(), part);
    }
    let (code, _, stderr) = output(&["top", "--admin", "10.0.0.7"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("write ADDRESS:PORT or http://HOST:PORT"), "{stderr}");
}
