//! One response over time: the pieces of a script, in the batch's time and in the format of a server.
//!
//! A streamed response is a body that polls its own player. There is no task and no queue beside
//! it: when hyper drops the body because the client left, player and generation are dropped
//! in the same turn.
//!
//! The law: each chunk is flushed before the next is offered, like in a server
//! whose generator yields between events; without this, a fast response would be one write.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::batch::{Generation, Outcome};
use crate::params::GenerationParams;
use crate::script::{Piece, Script};
use crate::shape::{CompleteChoice, ResponseWriter};
use crate::speed::Model;

/// A response of which nothing is sent yet.
pub struct Reply {
    /// The request's parameters.
    pub params: GenerationParams,
    /// Its place in the batch.
    pub generation: Generation,
    /// Writes the server's format.
    pub writer: Box<dyn ResponseWriter>,
    script: Script,
    model: Model,
}

/// The connection has to be dropped without a further byte.
#[derive(Debug, thiserror::Error)]
#[error("simulated loss of the connection")]
pub struct ConnectionLost;

impl Reply {
    pub(crate) fn new(
        params: GenerationParams,
        generation: Generation,
        writer: Box<dyn ResponseWriter>,
        model: Model,
    ) -> Self {
        Self { script: Script::new(&params, &model), params, generation, writer, model }
    }

    /// Waits for a place in the batch.
    pub async fn admit(&mut self) -> Result<(), ConnectionLost> {
        self.generation.admit().await.map_err(|_| ConnectionLost)
    }

    /// Waits until the next decode step is due, and returns its pieces; empty after the last one.
    pub async fn step(&mut self) -> Vec<Piece> {
        let step = self.script.step(&self.model);
        if !step.is_empty() {
            sleep_until(self.generation.due()).await;
            self.generation.stepped(step.iter().map(|piece| piece.tokens.len() as u64).sum());
        }
        step
    }

    /// Writes the end of a stream, and ends the generation before the client can see it.
    pub fn end(self, out: &mut Vec<String>) {
        self.writer.end(&self.params, self.script.total(&self.params), out);
        self.generation.end(Outcome::Completed);
    }

    /// Returns the choices of an unstreamed response, before its first step.
    pub fn choices(&self) -> Vec<CompleteChoice> {
        (0..self.params.choices()).map(|_| CompleteChoice::new(&self.params)).collect()
    }

    /// Returns the response as a stream of events.
    pub(crate) fn stream(self) -> Stream {
        Stream::new(|chunks| self.play(chunks))
    }

    async fn play(mut self, chunks: mpsc::Sender<Bytes>) -> Result<(), ConnectionLost> {
        self.admit().await?;
        let mut out = Vec::new();
        self.writer.opening(&self.params, &mut out);
        loop {
            let step = self.step().await;
            if step.is_empty() {
                self.end(&mut out);
                return send(&chunks, &mut out).await;
            }
            for piece in &step {
                self.writer.piece(&self.params, piece, &mut out);
                send(&chunks, &mut out).await?;
            }
        }
    }

    /// Waits until the response is complete, and returns it as one body.
    pub(crate) async fn whole(mut self) -> Result<String, ConnectionLost> {
        let mut choices = self.choices();
        self.admit().await?;
        loop {
            let step = self.step().await;
            if step.is_empty() {
                self.generation.end(Outcome::Completed);
                return Ok(self.writer.whole(&self.params, &choices));
            }
            for piece in &step {
                choices[piece.choice as usize].push(piece);
            }
        }
    }
}

async fn send(chunks: &mpsc::Sender<Bytes>, out: &mut Vec<String>) -> Result<(), ConnectionLost> {
    for chunk in out.drain(..) {
        chunks.send(chunk.into()).await.map_err(|_| ConnectionLost)?;
    }
    Ok(())
}

/// The body of a streamed response.
pub struct Stream {
    player: Option<Play>,
    chunks: mpsc::Receiver<Bytes>,
    dropped: bool,
    /// The last chunk may still be in hyper's buffer.
    flush: bool,
}

type Play = Pin<Box<dyn Future<Output = Result<(), ConnectionLost>> + Send>>;

impl Stream {
    /// Returns the body whose chunks `play` sends while the body is polled.
    pub fn new<F>(play: impl FnOnce(mpsc::Sender<Bytes>) -> F) -> Self
    where
        F: Future<Output = Result<(), ConnectionLost>> + Send + 'static,
    {
        // Capacity 1: the player waits until hyper has taken the previous chunk.
        let (sender, chunks) = mpsc::channel(1);
        Self {
            player: Some(Box::pin(play(sender))),
            chunks,
            dropped: false,
            // Sends the head before the first token.
            flush: true,
        }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = ConnectionLost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionLost>>> {
        if self.flush {
            // Hyper flushes when its body is pending.
            self.flush = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(player) = &mut self.player
            && let Poll::Ready(end) = player.as_mut().poll(cx)
        {
            self.player = None;
            self.dropped = end.is_err();
        }
        match self.chunks.poll_recv(cx) {
            Poll::Ready(Some(chunk)) => {
                self.flush = true;
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            Poll::Ready(None) if self.dropped => Poll::Ready(Some(Err(ConnectionLost))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}
