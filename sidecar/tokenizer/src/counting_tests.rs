//! The queue's bounds, its end, and what a panic costs; counted by functions of the tests.

use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::limits::TEXT_BYTES;

fn text(text: &str) -> Text {
    Text::new(text.to_owned()).expect("short")
}

/// A counting thread that says when it begins a job, and goes on when it is let.
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
fn a_full_queue_gives_the_job_back_at_once() {
    let Gated { counting, begun, go, done } = gated();
    counting.submit(0, "known".into(), text("a")).expect("room");
    begun.recv().expect("it begins");
    for job in 1..=QUEUE_JOBS {
        counting.submit(job, "known".into(), text("a")).expect("room");
    }
    assert_eq!(counting.submit(1000, "known".into(), text("a")), Err(1000));
    go.send(()).expect("it waits");
    begun.recv().expect("the next begins");
    counting.submit(1001, "known".into(), text("a")).expect("room again");
    drop(go);
    drop(counting);
    let jobs: Vec<usize> = done.iter().map(|(job, _)| job).collect();
    assert_eq!(jobs, (0..=QUEUE_JOBS).chain([1001]).collect::<Vec<_>>(), "in order, and all before the end");
}

#[test]
fn the_texts_together_are_bounded() {
    let Gated { counting, begun, go, done } = gated();
    let long = "x".repeat(TEXT_BYTES);
    let fit = QUEUE_BYTES / TEXT_BYTES;
    assert!(fit < QUEUE_JOBS, "else the jobs are the bound");
    for job in 0..fit {
        counting.submit(job, "known".into(), text(&long)).expect("room");
    }
    begun.recv().expect("it begins");
    assert_eq!(counting.submit(1000, "known".into(), text("a")), Err(1000), "what is counted counts");
    go.send(()).expect("it waits");
    begun.recv().expect("the next begins");
    counting.submit(1001, "known".into(), text(&long)).expect("the first text is gone");
    assert_eq!(counting.submit(1002, "known".into(), text("a")), Err(1002));
    drop(go);
    drop(counting);
    assert_eq!(done.iter().count(), fit + 1);
}

#[test]
fn a_model_without_tokenizer_comes_back() {
    let Gated { counting, .. } = gated();
    assert_eq!(counting.submit(7, "unknown".into(), text("a")), Err(7));
}

/// The word that must not be seen. Put together, so that it is in no message of this file.
fn canary() -> String {
    ["can", "ary", "-text"].concat()
}

#[test]
fn a_panic_costs_its_job_only() {
    let (tell, done) = channel();
    let counting = Counting::start_with(
        |_| true,
        |_, text| {
            // As a slice out of bounds in the library would.
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
    // By the time the last was told, the one before it was over.
    assert_eq!(counting.panics(), 2);
    assert_eq!(counting.state.bytes.load(Relaxed), 0, "no text is held");
}

#[test]
fn a_panic_does_not_show_the_text() {
    // The test above, in a process of its own, whose stderr is read.
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "counting::tests::a_panic_costs_its_job_only", "--nocapture"])
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
        .args(["--exact", "counting::tests::a_thread_beside_panics", "--nocapture"])
        .output()
        .expect("it runs again");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("said beside"), "{said}");
}

#[test]
fn a_thread_beside_panics() {
    let gated = gated();
    gated.counting.submit(0, "known".into(), text("a")).expect("room");
    gated.begun.recv().expect("the hook is set by now");
    assert!(thread::spawn(|| panic!("said beside")).join().is_err());
    drop(gated.go);
}
