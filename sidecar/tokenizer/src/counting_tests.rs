//! The bounds of the queue, its end, and panics, with counting functions of the tests.

use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::limits::TEXT_MAX_BYTES;

fn text(text: &str) -> Text {
    Text::new(text.to_owned()).expect("short")
}

/// A counting thread that signals the start of each job, and continues on a signal.
struct Gated {
    counting: Counting<usize>,
    begun: Receiver<()>,
    go: Sender<()>,
    done: Receiver<(usize, Option<u64>)>,
}

fn gated() -> Gated {
    let ((begin, begun), (go, gate), (tell, done)) = (channel(), channel(), channel());
    let counting = Counting::start_with(
        |model| model == "known",
        move |_, text| {
            begin.send(()).expect("the test listens");
            gate.recv().ok();
            Some(text.len() as u64)
        },
        move |job, tokens| tell.send((job, tokens)).expect("the test listens"),
    );
    Gated { counting: counting.expect("a thread"), begun, go, done }
}

#[test]
fn full_queue_returns_the_job_at_once() {
    let Gated { counting, begun, go, done } = gated();
    counting.submit(0, "known".into(), text("a")).expect("room");
    begun.recv().expect("it begins");
    for job in 1..=QUEUE_MAX_JOBS {
        counting.submit(job, "known".into(), text("a")).expect("room");
    }
    assert_eq!(counting.submit(1000, "known".into(), text("a")), Err(1000));
    go.send(()).expect("it waits");
    begun.recv().expect("the next begins");
    counting.submit(1001, "known".into(), text("a")).expect("room again");
    drop(go);
    drop(counting);
    let jobs: Vec<usize> = done.iter().map(|(job, _)| job).collect();
    assert_eq!(
        jobs,
        (0..=QUEUE_MAX_JOBS).chain([1001]).collect::<Vec<_>>(),
        "in order, and all before the end"
    );
}

#[test]
fn total_text_is_bounded() {
    let Gated { counting, begun, go, done } = gated();
    let long = "x".repeat(TEXT_MAX_BYTES);
    let fit = QUEUE_MAX_BYTES / TEXT_MAX_BYTES;
    assert!(fit < QUEUE_MAX_JOBS, "else the jobs are the bound");
    for job in 0..fit {
        counting.submit(job, "known".into(), text(&long)).expect("room");
    }
    begun.recv().expect("it begins");
    assert_eq!(
        counting.submit(1000, "known".into(), text("a")),
        Err(1000),
        "a text that is being counted is included"
    );
    go.send(()).expect("it waits");
    begun.recv().expect("the next begins");
    counting.submit(1001, "known".into(), text(&long)).expect("the first text is gone");
    assert_eq!(counting.submit(1002, "known".into(), text("a")), Err(1002));
    drop(go);
    drop(counting);
    assert_eq!(done.iter().count(), fit + 1);
}

#[test]
fn model_without_tokenizer_returns_the_job() {
    let Gated { counting, .. } = gated();
    assert_eq!(counting.submit(7, "unknown".into(), text("a")), Err(7));
}

/// Returns the text that must not appear in any output. Concatenated, so that this file's messages lack it.
fn canary() -> String {
    ["can", "ary", "-text"].concat()
}

#[test]
fn panic_costs_only_its_own_job() {
    let (tell, done) = channel();
    let counting = Counting::start_with(
        |_| true,
        |_, text| {
            // Like a slice out of bounds in the library.
            assert!(text != canary(), "{text}");
            Some(1)
        },
        move |job, tokens| {
            tell.send((job, tokens)).expect("the test listens");
            assert_ne!(job, 3, "{}", canary());
        },
    )
    .expect("a thread");
    for (job, text) in ["fine", &canary(), "fine", "fine", "fine"].into_iter().enumerate() {
        counting.submit(job, "m".into(), Text::new(text.to_owned()).expect("short")).expect("room");
    }
    let counts: Vec<_> = done.iter().take(5).collect();
    assert_eq!(counts, [(0, Some(1)), (1, None), (2, Some(1)), (3, Some(1)), (4, Some(1))]);
    // When the last job was done, both panics were counted.
    assert_eq!(counting.panics(), 2);
    assert_eq!(counting.state.bytes.load(Relaxed), 0, "no text is held");
}

#[test]
fn panic_message_does_not_show_the_text() {
    // Runs the test above in a process of its own and reads its output.
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "counting::tests::panic_costs_only_its_own_job", "--nocapture"])
        .output()
        .expect("it runs again");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(!said.contains(&canary()), "{said}");
}

#[test]
fn other_threads_keep_their_panic_message() {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "counting::tests::panic_of_another_thread", "--nocapture"])
        .output()
        .expect("it runs again");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("message of another thread"), "{said}");
}

#[test]
fn panic_of_another_thread() {
    let gated = gated();
    gated.counting.submit(0, "known".into(), text("a")).expect("room");
    gated.begun.recv().expect("the hook is set by now");
    assert!(thread::spawn(|| panic!("message of another thread")).join().is_err());
    drop(gated.go);
}
