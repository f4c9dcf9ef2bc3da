//! The timer of held bytes: it wakes the task that owns a response when they are due.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use meter::Tick;
use tokio::time::Sleep;

use crate::clock;

/// The timer of the bytes that one response holds. Boxed: few responses hold some when nothing can be read.
#[derive(Default)]
pub(super) struct HeldTimer(Option<(Tick, Pin<Box<Sleep>>)>);

impl HeldTimer {
    /// Called when nothing can be read for now: ready once the held bytes are due, if there are some.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, due: Option<Tick>) -> Poll<()> {
        let Some(due) = due else {
            self.0 = None;
            return Poll::Pending;
        };
        let Self(timer) = self;
        if timer.as_ref().is_none_or(|(known, _)| *known != due) {
            let left = Duration::from_nanos(due.since(clock::now()));
            *timer = Some((due, Box::pin(tokio::time::sleep(left))));
        }
        match timer {
            Some((_, sleep)) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}
