//! The rest of an unstreamed answer after its client left: it is read for its counts, and discarded. The server has
//! generated all of it, and a client that leaves after the content and before the counts is still charged.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

use tokio::time::timeout;
use usage::Cuts;

use crate::connections::Connections;
use crate::metering::metered::Metered;
use crate::wire::upstream::Upstream;
use crate::wire::{Buffers, Part, Received, Take, Wire};
use crate::{clock, limits};

/// Reads the rest of a response from its connection, in a task of its own, until its end, for at most [`limits::REST_TIME`]
/// and until no byte arrives for [`limits::REST_IDLE`]. Then the exchange ends.
pub(crate) fn read_upstream(connections: &Connections, mut metered: Metered, mut up: Upstream) {
    let buffers = Rc::clone(&connections.buffers);
    connections.read_on(async move {
        let show = |data: &[u8]| {
            let is_needed = metered.with(|metering| {
                metering.response_body(data, clock::now(), &mut Cuts::default());
                metering.exchange.is_counted_at_its_end()
            });
            is_needed == Some(true)
        };
        // An answer that takes longer keeps the counts so far.
        let _ = timeout(limits::REST_TIME, read(&mut up, &buffers, show)).await;
    });
}

/// Reads a response to its end. `show` is given each slice of its body, and returns true if more is needed.
async fn read(up: &mut impl Wire, buffers: &Buffers, mut show: impl FnMut(&[u8]) -> bool) {
    let mut slice = poll_fn(|cx| {
        let mut buffer = buffers.read.borrow_mut();
        let read = ready!(up.poll_read(cx, &mut buffer));
        let received = Received::of(read, &buffer);
        // A connection that has ended stays readable, and gives no more parts.
        let mut is_open = matches!(received, Received::Slice(_));
        let parts = up.parts(received, buffers, |part| {
            match part {
                Part::Data { data, .. } => is_open &= show(data),
                Part::End { .. } | Part::Cut(_) => is_open = false,
                Part::Interim(_) | Part::Head(_) => {}
            }
            Ok(Take::Taken)
        });
        Poll::Ready(parts.is_ok() && is_open)
    });
    while let Ok(true) = timeout(limits::REST_IDLE, &mut slice).await {}
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::task::Context;

    use super::*;
    use crate::request::reject::Stop;
    use crate::wire::writer::Writer;

    /// A connection that has ended; the number of its reads.
    #[derive(Default)]
    struct Over(usize);

    impl Wire for Over {
        fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
            self.0 += 1;
            assert!(self.0 < 100, "it is read without an end");
            Poll::Ready(Ok(0))
        }

        fn parts(
            &mut self,
            _: Received<'_>,
            _: &Buffers,
            _: impl FnMut(Part<'_>) -> Result<Take, Stop>,
        ) -> Result<(), Stop> {
            Ok(())
        }

        fn writer(&mut self) -> &mut Writer {
            unreachable!("nothing is written to it")
        }

        fn write(&mut self, _: &mut Context<'_>, _: &[u8], _: &Buffers) -> io::Result<()> {
            Ok(())
        }

        fn poll_flush(&mut self, _: &mut Context<'_>, _: &Buffers) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_has_ended_has_no_rest() {
        let mut over = Over::default();
        read(&mut over, &Buffers::new(), |_| true).await;
        assert_eq!(over.0, 1);
    }
}
