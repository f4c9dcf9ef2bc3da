//! One HTTP/2 stream as a task that can be ended alone, while the connection's other streams continue.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::pace::Pace;
use super::task::Task;

tokio::task_local! {
    static CURRENT: Rc<Stream>;
}

/// The handle of one stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The speed at which the client takes its response.
    pub(crate) taking: Pace,
    is_cut: Cell<bool>,
    task: Task,
}

impl Stream {
    /// The stream of the current task, if there is one.
    pub(crate) fn current() -> Option<Rc<Self>> {
        CURRENT.try_with(Rc::clone).ok()
    }

    /// Ends the stream: its future is dropped, which resets it.
    pub(crate) fn cut(&self) {
        self.is_cut.set(true);
        self.task.wake();
    }

    /// Runs the future of a stream until it ends or is cut.
    pub(crate) async fn run(future: impl Future) {
        let stream = Rc::new(Self::default());
        let of_it = Rc::clone(&stream);
        let mut future = pin!(CURRENT.scope(stream, future));
        std::future::poll_fn(|cx| {
            if of_it.is_cut.get() {
                return Poll::Ready(());
            }
            let polled = future.as_mut().poll(cx).map(drop);
            if polled.is_pending() {
                of_it.task.set(cx.waker());
            }
            polled
        })
        .await;
    }
}
