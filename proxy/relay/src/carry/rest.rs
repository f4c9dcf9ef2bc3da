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
use crate::wire::{Part, Received, Take, Wire as _};
use crate::{clock, limits};

/// Reads the rest of a response from its connection, in a task of its own, until its end, for at most [`limits::REST_TIME`]
/// and until no byte arrives for [`limits::REST_IDLE`]. Then the exchange ends.
pub(crate) fn read_upstream(connections: &Connections, mut metered: Metered, mut up: Upstream) {
    let buffers = Rc::clone(&connections.buffers);
    connections.read_on(async move {
        let mut slice = poll_fn(|cx| {
            let mut buffer = buffers.read.borrow_mut();
            let read = ready!(up.poll_read(cx, &mut buffer));
            let mut is_open = true;
            let parts = up.parts(Received::of(read, &buffer), &buffers, |part| {
                match part {
                    Part::Data { data, .. } => {
                        metered.with(|metering| {
                            metering.response_body(data, clock::now(), &mut Cuts::default());
                        });
                    }
                    Part::End { .. } | Part::Cut(_) => is_open = false,
                    Part::Interim(_) | Part::Head(_) => {}
                }
                Ok(Take::Taken)
            });
            let is_needed = metered.with(|metering| metering.exchange.is_counted_at_its_end());
            Poll::Ready(parts.is_ok() && is_open && is_needed == Some(true))
        });
        // An answer that takes longer keeps the counts so far.
        let _ = timeout(limits::REST_TIME, async {
            while let Ok(true) = timeout(limits::REST_IDLE, &mut slice).await {}
        })
        .await;
    });
}
