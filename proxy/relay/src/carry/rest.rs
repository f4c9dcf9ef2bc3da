//! The rest of an unstreamed answer whose client left: it is read for its counts, and discarded. The server has
//! generated it already, and a client that takes the content and not the end is still charged.

use std::future::poll_fn;
#[cfg(feature = "spike-engine")]
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::time::timeout;
use usage::Cuts;

#[cfg(feature = "spike-engine")]
use crate::connections::Connections;
use crate::metering::metered::Metered;
#[cfg(feature = "spike-engine")]
use crate::wire::{Part, Received, Take, Wire as _, upstream::Upstream};
use crate::{clock, limits};

/// Reads the rest of a response from its connection, in a task of its own.
#[cfg(feature = "spike-engine")]
pub(crate) fn read_upstream(connections: &Connections, metered: Metered, mut up: Upstream) {
    let buffers = Rc::clone(&connections.buffers);
    connections.read_on(read(metered, move |cx, show| {
        let mut buffer = buffers.read.borrow_mut();
        let read = ready!(up.poll_read(cx, &mut buffer));
        let mut is_open = true;
        let parts = up.parts(Received::of(read, &buffer), &buffers, |part| {
            match part {
                Part::Data { data, .. } => show(data),
                Part::End { .. } | Part::Cut(_) => is_open = false,
                Part::Interim(_) | Part::Head(_) => {}
            }
            Ok(Take::Taken)
        });
        Poll::Ready(parts.is_ok() && is_open)
    }));
}

/// Reads the rest for at most [`limits::REST_TIME`]; ends when no byte arrives for [`limits::REST_IDLE`]. `poll_slice`
/// reads once, passes the data to its argument, and is ready with false at the end. The exchange ends with this.
pub(crate) async fn read(
    mut metered: Metered,
    mut poll_slice: impl FnMut(&mut Context<'_>, &mut dyn FnMut(&[u8])) -> Poll<bool>,
) {
    let mut slice = poll_fn(|cx| {
        let mut show = |bytes: &[u8]| {
            metered.with(|metering| metering.response_body(bytes, clock::now(), &mut Cuts::default()));
        };
        let is_open = ready!(poll_slice(cx, &mut show));
        let is_needed = metered.with(|metering| metering.exchange.is_counted_at_its_end());
        Poll::Ready(is_open && is_needed == Some(true))
    });
    // An answer that takes longer keeps the counts so far.
    let _ = timeout(limits::REST_TIME, async {
        while let Ok(true) = timeout(limits::REST_IDLE, &mut slice).await {}
    })
    .await;
}
