//! The demonstration, from its first line to its last.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{finished, output, tokenmeter};

#[test]
fn demo_prints_the_table_and_ends_in_time() {
    let began = Instant::now();
    let (code, stdout, stderr) =
        output(&["demo", "--seconds", "3", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(began.elapsed() >= Duration::from_secs(3), "it took {:?}", began.elapsed());
    assert!(!stdout.contains('\u{1b}') && !stdout.contains('\r'), "a log is plain: {stdout:?}");
    let first = stdout.lines().next().unwrap();
    assert!(first.starts_with("http://127.0.0.1:") && first.ends_with('/'), "the page's address: {stdout}");
    for part in ["Look at\n  the curve: ", "/metrics", "curl -N http://127.0.0.1:"] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }

    let head = stdout.lines().position(|line| line.contains("TTFT p50")).unwrap();
    let rows: Vec<Vec<&str>> = stdout
        .lines()
        .skip(head + 1)
        .take(4)
        .map(|row| row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let clients: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(clients, ["1", "10", "25", "50"], "{stdout}");
    for row in &rows {
        assert_eq!(row.len(), 7, "{row:?}");
        assert!(row[1].ends_with(" ms") && row[2].ends_with(" ms"), "{row:?}");
        assert!(row[3].parse::<f64>().unwrap() > 0.0 && row[4].parse::<f64>().unwrap() > 0.0, "{row:?}");
        assert!(row[5].parse::<u64>().unwrap() > 0, "{row:?}");
        assert_eq!(row[6], "0", "no errors: {row:?}");
    }

    // What the meter counted is what the clients got.
    let compared = stdout.lines().find(|line| line.starts_with("tokenmeter counted ")).unwrap();
    let numbers: Vec<u64> =
        compared.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers[0..2], numbers[2..4], "{compared}");
}

/// Eight busy threads on every core delay the last rows, and the bill waits for them.
#[test]
fn bill_under_load_has_every_exchange() {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let busy = std::sync::atomic::AtomicBool::new(true);
    let outputs: Vec<_> = std::thread::scope(|scope| {
        for _ in 0..8 * cores {
            scope.spawn(|| {
                while busy.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let demo =
            || output(&["demo", "--seconds", "3", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        let demos: Vec<_> = (0..2).map(|_| scope.spawn(demo)).collect();
        let outputs = demos.into_iter().map(|demo| demo.join().unwrap()).collect();
        busy.store(false, std::sync::atomic::Ordering::Relaxed);
        outputs
    });
    for (code, stdout, stderr) in outputs {
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
        let (mut counted, mut billed) = (Vec::new(), Vec::new());
        for line in stdout.lines() {
            if let Some(rest) = line.split(" output tokens in ").nth(1) {
                counted.push(rest.split(' ').next().unwrap().parse::<u64>().unwrap());
            } else if line.starts_with("all ") || line.starts_with("total ") {
                let exchanges = line.split_whitespace().nth(1).unwrap().replace(['\u{202f}', ','], "");
                billed.push(exchanges.parse::<u64>().unwrap());
            }
        }
        assert!(!counted.is_empty() && counted == billed, "{stdout}");
        assert!(!stdout.contains("lacks"), "{stdout}");
    }
}

#[test]
fn interrupt_ends_the_demo_with_0() {
    let mut command = tokenmeter(&["demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut shown = String::new();
    while !shown.contains("TTFT p50") {
        assert!(stdout.read_line(&mut shown).unwrap() > 0, "it ended by itself: {shown}");
    }
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    stdout.read_to_string(&mut shown).unwrap();
    let (code, _, stderr) = finished(child.wait_with_output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{shown}");
    assert!(shown.ends_with("tokenmeter run --upstream http://HOST:PORT\n"), "{shown}");
}

#[test]
fn only_default_ports_in_use_are_replaced() {
    // The default ports are in use, by this test or another process.
    let _usual = (TcpListener::bind("127.0.0.1:9800"), TcpListener::bind("127.0.0.1:9464"));
    let (code, stdout, stderr) = output(&["demo", "--seconds", "1"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.starts_with("http://127.0.0.1:"), "the address is before the notes: {stdout}");
    for usual in ["127.0.0.1:9800", "127.0.0.1:9464"] {
        assert!(stdout.contains(&format!("{usual} is in use, so a free port is used instead.")), "{stdout}");
        assert!(!stdout.contains(&format!("http://{usual}/")), "{stdout}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, stderr) =
        output(&["demo", "--seconds", "1", "--listen", &address, "--admin", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!("--listen: cannot listen on {address}")), "{stderr}");
}

#[test]
fn demo_address_must_be_loopback() {
    let (code, _, stderr) = output(&["demo", "--seconds", "1", "--listen", "192.0.2.1:9800"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--listen: the demo's clients use loopback addresses only"), "{stderr}");
}
