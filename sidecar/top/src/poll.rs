//! The thread that asks the admin listener, so that a slow answer delays no key.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use live::curve::Curves;
use live::{History, Now};

use crate::admin::{Admin, AdminError};
use crate::scope::ScopeName;

/// An answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The state now.
    Now(Box<Now>),
    /// The past of a scope.
    History(ScopeName, History),
    /// The degradation curves.
    Curves(Curves),
    /// There is none.
    Failed(AdminError),
}

/// The other end of the thread, which ends with it.
#[derive(Debug)]
pub(crate) struct Poll {
    /// The answers, in order.
    pub(crate) answers: Receiver<Answer>,
    /// The scope whose history is asked for next.
    pub(crate) scope: Sender<ScopeName>,
}

impl Poll {
    /// Starts the thread.
    pub(crate) fn start(admin: Admin) -> io::Result<Self> {
        let (sender, answers) = channel();
        let (scope, scopes) = channel();
        thread::Builder::new().name("poll".into()).spawn(move || poll(&admin, &scopes, &sender))?;
        Ok(Self { answers, scope })
    }
}

fn poll(admin: &Admin, scopes: &Receiver<ScopeName>, answers: &Sender<Answer>) {
    let mut scope = ScopeName::All;
    // The start of the process whose history was read.
    let mut known = None;
    let mut curves_due = Instant::now();
    loop {
        let began = Instant::now();
        let now = match admin.now() {
            Ok(now) => {
                let started = now.started_unix_ms;
                let sent = answers.send(Answer::Now(Box::new(now)));
                sent.map(|()| Some(started))
            }
            Err(error) => answers.send(Answer::Failed(error)).map(|()| None),
        };
        let Ok(started) = now else { return };
        // A process that answers again has more seconds than were read, and a new one has others.
        if started.is_none() {
            known = None;
        } else if known != started {
            if let Ok(history) = admin.history(&scope) {
                let _ = answers.send(Answer::History(scope.clone(), history));
            }
            known = started;
        }
        if started.is_some() && began >= curves_due {
            // Without curves the other numbers are shown.
            if let Ok(curves) = admin.curves() {
                let _ = answers.send(Answer::Curves(curves));
            }
            curves_due = began + CURVE_INTERVAL;
        }
        match scopes.recv_timeout(INTERVAL.saturating_sub(began.elapsed())) {
            Ok(next) => {
                scope = next;
                known = None;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The time between two readings, each of which is of one second.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time between two readings of the curves, which the server keeps for as long.
const CURVE_INTERVAL: Duration = Duration::from_secs(5);
