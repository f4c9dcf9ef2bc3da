//! The rest of an unstreamed answer whose client left: it is read for its counts, and discarded. The server has
//! generated it already, and a client that takes the content and not the end is still charged.

use std::pin::Pin;

use http_body::Body;
use usage::Cuts;

use crate::engine::hyper::UpstreamAnswer;
use crate::engine::net::pool::PooledConnection;
use crate::metering::metered::Metered;
use crate::{Metering, clock, limits};

/// The rest of an answer.
pub(super) struct Rest {
    pub(super) body: UpstreamAnswer,
    pub(super) connection: Box<PooledConnection>,
    /// Its exchange, which ends with it.
    pub(super) metered: Metered,
}

impl Rest {
    /// Reads the rest for at most [`limits::REST_TIME`]; ends when no byte arrives for [`limits::REST_IDLE`].
    pub(crate) async fn read(mut self) {
        // An answer that takes longer keeps the counts so far.
        let _ = tokio::time::timeout(limits::REST_TIME, async {
            while let Ok(true) = tokio::time::timeout(limits::REST_IDLE, self.slice()).await {}
        })
        .await;
    }

    /// Reads the next slice; false at the end, or if no more is needed.
    async fn slice(&mut self) -> bool {
        let frame = std::future::poll_fn(|cx| {
            let mut driven = self.connection.http.drive(cx);
            Pin::new(&mut self.body).poll_frame(&mut driven)
        });
        let Some(Ok(frame)) = frame.await else { return false };
        let Ok(bytes) = frame.into_data() else { return false };
        let is_open = self.metered.with(|metering: &mut Metering| {
            metering.response_body(&bytes, clock::now(), &mut Cuts::default());
            metering.exchange.is_counted_at_its_end()
        });
        is_open == Some(true)
    }
}
