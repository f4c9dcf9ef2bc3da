//! The rest of an unstreamed answer whose client left: read for its counts, and dropped. No generation goes on for it,
//! and a client that takes the content and not the end is charged all the same.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use hyper::body::{Body, Incoming};
use usage::Marks;

use super::connection::Connection;
use crate::metered::Metered;
use crate::{Exchange, clock, limits};

/// What is left of an answer.
pub(super) struct Rest {
    pub(super) body: Incoming,
    pub(super) connection: Box<Connection>,
    /// Its exchange, which ends with it.
    pub(super) metered: Metered,
}

impl Rest {
    /// Reads it, for no longer than [`limits::REST_TIME`].
    pub(super) async fn read(mut self) {
        let read = std::future::poll_fn(|cx| self.poll(cx));
        // An answer that takes longer has the counts that came.
        let _ = tokio::time::timeout(limits::REST_TIME, read).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.connection.drive(cx);
            // Only driving the connection makes the body ready, and we just did.
            let mut driven = Context::from_waker(Waker::noop());
            match Pin::new(&mut self.body).poll_frame(&mut driven) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(bytes) = frame.into_data() else { return Poll::Ready(()) };
                    let is_open = self.metered.with(|exchange: &mut Exchange| {
                        exchange.response_body(&bytes, clock::now(), &mut Marks::default());
                        exchange.is_counted_at_its_end()
                    });
                    if is_open != Some(true) {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
