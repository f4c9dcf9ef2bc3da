//! A client connection through hyper's server: protocol detection, deadlines, detection of a client that left, the
//! release of hyper's buffers while it is idle, and the end after hyper has finished.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;

use super::Hyper;
use super::client_io::ClientIo;
use crate::Refusal;
use crate::engine::net::client::{Client, Stage};
use crate::engine::net::deadlines::{Deadlines, Due};
use crate::engine::net::source::Source;
use crate::engine::net::stream::Stream;
use crate::engine::{Cut, Served};
use crate::state::{WorkerState, contain};

/// A boxed forwarding future: a connection that waits for its next request uses no memory for it, and hyper returns the
/// socket only if it can move the service.
struct Forwarding<B>(Pin<Box<dyn Future<Output = Option<Response<B>>>>>);

impl<B> Future for Forwarding<B> {
    type Output = Result<Response<B>, ClientGone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx).map(|response| response.ok_or(ClientGone))
    }
}

pub(super) async fn serve<F, R, B>(engine: Rc<Hyper>, client: Rc<Client>, forward: F) -> Served
where
    F: Fn(Request<Incoming>) -> R + Unpin + 'static,
    R: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes, Error = Cut> + 'static,
{
    let mut deadlines = pin!(Deadlines::new(&engine.worker, &client));
    let is_http2 = {
        let mut protocol = pin!(open(&engine, &client));
        std::future::poll_fn(|cx| match protocol.as_mut().poll(cx) {
            Poll::Ready(known) => Poll::Ready(known),
            Poll::Pending => deadlines.as_mut().poll_waiting(cx).map(|_overdue| {
                client.count_overdue(&engine.worker);
                None
            }),
        })
        .await
    };
    match is_http2 {
        // Boxed: HTTP/2's state is large, and most connections do not have it.
        Some(true) => Box::pin(http2(&engine, &client, forward, deadlines)).await,
        Some(false) => return http1(&engine, &client, forward, deadlines).await,
        None => client.linger().await,
    }
    Served::Ended
}

/// Opens a client connection. Returns true if the client uses HTTP/2; `None` if it left, or if there is no
/// session.
async fn open(engine: &Hyper, client: &Client) -> Option<bool> {
    if !client.establish(&engine.worker).await {
        return None;
    }
    client.speaks_http2(&engine.read_buffer).await.ok().flatten()
}

async fn http1<F, R, B>(
    engine: &Rc<Hyper>,
    client: &Rc<Client>,
    forward: F,
    mut deadlines: Pin<&mut Deadlines>,
) -> Served
where
    F: Fn(Request<Incoming>) -> R + Unpin + 'static,
    R: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes, Error = Cut> + 'static,
{
    let half_close = engine.worker.plan.half_close;
    let mut gone = pin!(client.gone(half_close));
    let left = Source::new(client.waker.waker().clone());
    let mut io = ClientIo::new(client, engine);
    let mut service = service_fn(move |request| forwarding(&forward, request));
    loop {
        // Boxed, so that a connection that has released its buffers does not hold hyper's state.
        let mut connection = Box::new({
            let mut builder = engine.http1.clone();
            // Without half-closing, hyper reads at each poll under a response, to see the client leave. `Client::gone`
            // sees that, too, but not the end of a TLS session that was read with the request.
            builder.half_close(half_close || !client.is_tls());
            builder.serve_connection(io, service)
        });
        let mut is_releasing = false;
        let served = std::future::poll_fn(|cx| {
            client.waker.follow(cx);
            let cx = &mut Context::from_waker(client.waker.waker());
            loop {
                if let Poll::Ready(served) = connection.poll_without_shutdown(cx) {
                    return Poll::Ready(Some(served));
                }
                is_releasing = false;
                if client.stage().0 == Stage::Busy && left.poll(|cx| gone.as_mut().poll(cx)).is_ready() {
                    return Poll::Ready(None);
                }
                match deadlines.as_mut().poll_due(cx) {
                    Poll::Ready(Due::Release) => {
                        // hyper's part of an idle connection ends at once and sends nothing.
                        is_releasing = true;
                        Pin::new(&mut *connection).graceful_shutdown();
                    }
                    Poll::Ready(Due::Leave) => Pin::new(&mut *connection).graceful_shutdown(),
                    Poll::Ready(Due::Cut) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        match served {
            Some(Ok(())) => {
                let parts = {
                    // The end of this block frees the box.
                    let connection = connection;
                    connection.into_parts()
                };
                if client.has_switched() {
                    // hyper stops reading at the head of the request; what it has not received belongs to the tunnel.
                    client.return_first(parts.read_buf);
                    return Served::Switched(client.take_first(usize::MAX).unwrap_or_default());
                }
                if is_releasing && readable(client, parts.read_buf, deadlines.as_mut()).await {
                    (io, service) = (parts.io, parts.service);
                    continue;
                }
                client.linger().await;
            }
            Some(Err(error)) if error.is_parse() => {
                // hyper has answered it; it still has to be counted.
                engine.worker.refuse(Refusal::Framing);
                drop(connection);
                client.leave_unread();
                client.linger().await;
            }
            Some(Err(_)) | None => {}
        }
        return Served::Ended;
    }
}

/// Waits for the next bytes of an idle connection; `read` are those that hyper has read already. Returns false if the
/// connection must end.
async fn readable(client: &Client, read: Bytes, mut deadlines: Pin<&mut Deadlines>) -> bool {
    if !read.is_empty() {
        client.return_first(read);
        return true;
    }
    // Even an empty slice keeps hyper's buffer allocated.
    drop(read);
    std::future::poll_fn(|cx| {
        if client.poll_readable(cx).is_ready() {
            return Poll::Ready(true);
        }
        deadlines.as_mut().poll_due(cx).map(|_end| false)
    })
    .await
}

async fn http2<F, R, B>(
    engine: &Rc<Hyper>,
    client: &Rc<Client>,
    forward: F,
    mut deadlines: Pin<&mut Deadlines>,
) where
    F: Fn(Request<Incoming>) -> R + Unpin + 'static,
    R: Future<Output = Option<Response<B>>> + 'static,
    B: Body<Data = Bytes, Error = Cut> + 'static,
{
    let service = service_fn(move |request| forwarding(&forward, request));
    let mut connection = pin!(engine.http2.serve_connection(ClientIo::new(client, engine), service));
    std::future::poll_fn(|cx| {
        loop {
            // hyper has sent the client everything, whether it ended well or not.
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            match deadlines.as_mut().poll_due(cx) {
                Poll::Ready(Due::Leave) => connection.as_mut().graceful_shutdown(),
                // Only HTTP/1 releases buffers.
                Poll::Ready(Due::Cut | Due::Release) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

fn forwarding<F, R, B>(forward: &F, mut request: Request<Incoming>) -> Forwarding<B>
where
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Option<Response<B>>> + 'static,
{
    // A tunnel takes the socket itself.
    request.extensions_mut().remove::<OnUpgrade>();
    Forwarding(Box::pin(forward(request)))
}

/// Runs HTTP/2 streams as tasks of this thread. A panic ends the stream, not the connection.
#[derive(Clone)]
pub(super) struct StreamTasks(pub(super) Rc<WorkerState>);

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future + 'static,
{
    fn execute(&self, stream: F) {
        let stream = async move {
            Stream::run(stream).await;
        };
        tokio::task::spawn_local(contain(Rc::clone(&self.0), stream));
    }
}

/// The client left before its response: hyper closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client left before its response")]
struct ClientGone;
