//! One client connection from its first byte to its last: which protocol it speaks, how long it
//! may take, when it is gone, and what is left to do when hyper is done with it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::service::service_fn;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep};

use super::client::{Client, ClientIo, Stage};
use super::forward::{Gone, forward};
use super::outgoing::Outgoing;
use super::visit::Visit;
use super::{Engine, tunnel};
use crate::exchange::metered::Metered;
use crate::{Dropped, Refusal, limits};

/// A forwarding future in its own allocation: a connection that waits for its next request keeps
/// no room for it, and hyper gives the socket back only if it can move the service.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Outgoing>, Gone>>>>;

pub(super) async fn serve(engine: Rc<Engine>, upstream: usize, client: Rc<Client>) {
    let mut watch = pin!(Watch::new(&engine, &client));
    let known = {
        let mut protocol = pin!(client.speaks_http2());
        std::future::poll_fn(|cx| match protocol.as_mut().poll(cx) {
            Poll::Ready(known) => Poll::Ready(known.ok().flatten()),
            Poll::Pending => watch.as_mut().poll_waiting(cx).map(|_overdue| None),
        })
        .await
    };
    match known {
        // In its own allocation: HTTP/2's state is large, and most connections do not have it.
        Some(true) => Box::pin(http2(&engine, &client, upstream, watch)).await,
        Some(false) => http1(&engine, &client, upstream, watch).await,
        None => {}
    }
    if client.has_timed_out() {
        engine.worker.lose(Dropped::SlowClient);
    }
}

async fn http1(engine: &Rc<Engine>, client: &Rc<Client>, upstream: usize, mut watch: Pin<&mut Watch>) {
    let service = service_fn({
        let (engine, client) = (Rc::clone(engine), Rc::clone(client));
        move |request: Request<_>| -> Answering {
            Box::pin(forward(Rc::clone(&engine), Rc::clone(&client), upstream, request))
        }
    });
    let mut connection = engine.http1.serve_connection(ClientIo::new(client, engine), service);
    let half_close = engine.worker.plan.half_close;
    let mut gone = pin!(client.gone(half_close));
    let served = std::future::poll_fn(|cx| {
        loop {
            if let Poll::Ready(served) = connection.poll_without_shutdown(cx) {
                return Poll::Ready(Some(served));
            }
            if client.stage().0 == Stage::Busy && gone.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            match watch.as_mut().poll_due(cx) {
                Poll::Ready(Due::Leave) => Pin::new(&mut connection).graceful_shutdown(),
                Poll::Ready(Due::Cut) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    match served {
        Some(Ok(())) => {
            let parts = connection.into_parts();
            if let Some(far) = client.switched() {
                drop(parts.io);
                // The request lasts as long as its tunnel.
                let visit = Visit::new(engine, client, Metered::not(&engine.worker), true, true);
                // A tunnel ends when either side breaks; there is nobody to tell.
                let _ = tunnel::run(client.stream(), parts.read_buf, far).await;
                drop(visit);
            } else {
                client.linger().await;
            }
        }
        Some(Err(error)) if error.is_parse() => {
            // hyper answered it; what is left to do is to count it.
            engine.worker.refuse(Refusal::Framing);
            drop(connection);
            client.leave_unread();
            client.linger().await;
        }
        Some(Err(_)) | None => {}
    }
}

async fn http2(engine: &Rc<Engine>, client: &Rc<Client>, upstream: usize, mut watch: Pin<&mut Watch>) {
    let service = service_fn({
        let (engine, client) = (Rc::clone(engine), Rc::clone(client));
        move |request: Request<_>| -> Answering {
            Box::pin(forward(Rc::clone(&engine), Rc::clone(&client), upstream, request))
        }
    });
    let mut connection = pin!(engine.http2.serve_connection(ClientIo::new(client, engine), service));
    std::future::poll_fn(|cx| {
        loop {
            // However it ended, it ended: hyper has told the client what there was to tell.
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            match watch.as_mut().poll_due(cx) {
                Poll::Ready(Due::Leave) => connection.as_mut().graceful_shutdown(),
                Poll::Ready(Due::Cut) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

/// What a connection is due for.
enum Due {
    /// To end after the request it is at.
    Leave,
    /// To end.
    Cut,
}

/// The deadlines of one connection, and the worker's word to leave. Told once each: first to
/// leave, then, if that did not end it, to be cut.
#[pin_project::pin_project]
struct Watch {
    engine: Rc<Engine>,
    client: Rc<Client>,
    #[pin]
    deadline: Sleep,
    /// The stage the deadline belongs to.
    turn: Option<u64>,
    #[pin]
    left: OwnedNotified,
    listening: bool,
    told: bool,
}

impl Watch {
    fn new(engine: &Rc<Engine>, client: &Rc<Client>) -> Self {
        Self {
            engine: Rc::clone(engine),
            client: Rc::clone(client),
            deadline: tokio::time::sleep(engine.worker.plan.head_timeout),
            turn: None,
            left: Arc::clone(&engine.left).notified_owned(),
            listening: false,
            told: false,
        }
    }

    /// Ready when a connection on which nothing was asked yet has to go.
    fn poll_waiting(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_due(cx).map(|_due| ())
    }

    fn poll_due(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Due> {
        let mut this = self.project();
        if !*this.listening {
            // Once is enough: it wakes this task, and the engine's flag says the rest.
            *this.listening = true;
            let _ = this.left.as_mut().poll(cx);
        }
        if this.engine.leaving.get() && !*this.told {
            *this.told = true;
            return Poll::Ready(Due::Leave);
        }
        let (stage, turn) = this.client.stage();
        let limit: Duration = match stage {
            Stage::Busy => return Poll::Pending,
            Stage::Idle => limits::CLIENT_IDLE,
            Stage::Fresh | Stage::Head => this.engine.worker.plan.head_timeout,
        };
        if *this.turn != Some(turn) {
            *this.turn = Some(turn);
            this.deadline.as_mut().reset(Instant::now() + limit);
        }
        if this.deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        *this.turn = None;
        // A head that does not come is cut; an idle connection is asked to leave first.
        if stage == Stage::Idle && !*this.told {
            *this.told = true;
            return Poll::Ready(Due::Leave);
        }
        Poll::Ready(Due::Cut)
    }
}
