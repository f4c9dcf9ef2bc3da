//! A client's HTTP/2 connection, by hyper's server: its streams are tasks. The sweep ends it, as it ends those of HTTP/1.1.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::stream::forward;
use crate::conn::client::Client;
use crate::conn::client_stream::ClientStream;
use crate::conn::stream::Stream;
use crate::connections::Connections;
use crate::contained::Contained;
use crate::limits;
use crate::state::WorkerState;

/// Serves a client's connection until it ends.
pub(crate) async fn serve(connections: &Rc<Connections>, client: &Rc<Client>, upstream: usize) {
    let worker = &connections.worker;
    let turn_bytes = Rc::<Cell<usize>>::default();
    let io = TokioIo::new(ClientStream::bounded(client, &turn_bytes));
    let service = service_fn(|request| {
        let by = (Rc::clone(client), upstream);
        // Boxed: the library moves it.
        Box::pin(forward(Rc::clone(connections), by, request))
    });
    let mut connection = pin!(builder(worker).serve_connection(io, service));
    let mut is_leaving = false;
    std::future::poll_fn(|cx| {
        turn_bytes.set(limits::TURN_READ_BYTES);
        loop {
            // The library has sent the client everything, whether it ended well or not.
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if is_leaving || client.poll_leaving(cx).is_pending() {
                return Poll::Pending;
            }
            is_leaving = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await;
}

/// The settings of a connection.
fn builder(worker: &Rc<WorkerState>) -> Builder<StreamTasks> {
    let mut builder = Builder::new(StreamTasks(Rc::clone(worker)));
    builder
        .auto_date_header(false)
        .max_concurrent_streams(worker.plan.shares.h2_streams)
        .max_header_list_size(limits::H2_HEADER_LIST_BYTES)
        .max_pending_accept_reset_streams(limits::H2_PENDING_RESETS)
        .max_local_error_reset_streams(limits::H2_LOCAL_RESETS)
        .initial_stream_window_size(limits::H2_STREAM_WINDOW)
        .initial_connection_window_size(limits::H2_CONNECTION_WINDOW)
        .max_send_buf_size(limits::BUFFER_BYTES);
    builder
}

/// Runs streams as tasks of this thread. A panic ends the stream, not the connection.
#[derive(Clone)]
struct StreamTasks(Rc<WorkerState>);

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future + 'static,
{
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(Contained::new(&self.0, Stream::run(stream)));
    }
}
