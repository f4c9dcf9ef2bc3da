//! One response over time: script, batch and faults together.
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
use std::time::Duration;
use std::{error, fmt};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::batch::{Generation, Outcome};
use crate::faults::{Break, Faults};
use crate::params::GenerationParams;
use crate::script::Script;
use crate::shape::{CompleteChoice, ResponseWriter};
use crate::socket::Reset;
use crate::speed::Model;

/// The inputs of a response.
pub(crate) struct Reply {
    pub(crate) params: GenerationParams,
    pub(crate) faults: Faults,
    pub(crate) writer: Box<dyn ResponseWriter>,
    pub(crate) model: Model,
    pub(crate) generation: Generation,
    pub(crate) reset: Reset,
}

/// The connection has to be dropped without a further byte.
#[derive(Debug)]
pub(crate) struct ConnectionLost;

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated loss of the connection")
    }
}

impl error::Error for ConnectionLost {}

/// An unstreamed response.
#[derive(Debug)]
pub(crate) enum UnstreamedResponse {
    Body(String),
    /// Status 500.
    Error,
    /// The first half of a body, then the loss of the connection.
    Cut(String),
}

impl Reply {
    /// Returns the response as a stream of events.
    pub(crate) fn stream(self) -> Stream {
        Stream::new(|chunks| Player::play(self, chunks))
    }

    /// Waits until the response is complete, and returns it as one body.
    pub(crate) async fn whole(mut self) -> UnstreamedResponse {
        let mut script = Script::new(&self.params, &self.model);
        let mut complete_choices: Vec<CompleteChoice> =
            (0..self.params.choices()).map(|_| CompleteChoice::new(&self.params)).collect();
        let mut pieces = 0;
        if self.generation.admit().await.is_err() {
            return UnstreamedResponse::Error;
        }
        loop {
            let step = script.step(&self.model);
            sleep_until(self.generation.due()).await;
            if let Some((after, how)) = self.faults.breaks
                && after <= pieces
            {
                match how {
                    Break::ErrorInBand => {
                        self.generation.end(Outcome::Faulted);
                        return UnstreamedResponse::Error;
                    }
                    Break::Hang => std::future::pending().await,
                    Break::Reset => self.reset.set(),
                    Break::Cut | Break::End => {}
                }
                self.generation.end(Outcome::Faulted);
                return UnstreamedResponse::Cut(self.writer.whole(&self.params, &complete_choices));
            }
            if let Some((_, pause)) = self.faults.stall.take_if(|stall| stall.0 <= pieces) {
                sleep(pause).await;
                self.generation.stalled(pause);
            }
            if step.is_empty() {
                break;
            }
            self.generation.stepped(step.iter().map(|piece| piece.tokens.len() as u64).sum());
            pieces += step.len() as u64;
            for piece in &step {
                complete_choices[piece.choice as usize].push(piece);
            }
        }
        self.generation.end(Outcome::Completed);
        UnstreamedResponse::Body(self.writer.whole(&self.params, &complete_choices))
    }
}

/// The body of a streamed response.
pub(crate) struct Stream {
    player: Option<Play>,
    chunks: mpsc::Receiver<Bytes>,
    dropped: bool,
    /// The last chunk may still be in hyper's buffer.
    flush: bool,
}

type Play = Pin<Box<dyn Future<Output = Result<(), ConnectionLost>> + Send>>;

impl Stream {
    /// Returns `part` of a body, followed by the loss of the connection.
    pub(crate) fn cut(part: Bytes) -> Self {
        Self::new(|chunks| async move {
            // The receiver is the body that polls this, so it still exists.
            let _ = chunks.send(part).await;
            Err(ConnectionLost)
        })
    }

    fn new<F>(play: impl FnOnce(mpsc::Sender<Bytes>) -> F) -> Self
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

/// The producer of a streamed response.
struct Player {
    params: GenerationParams,
    faults: Faults,
    writer: Box<dyn ResponseWriter>,
    chunks: mpsc::Sender<Bytes>,
    /// The time of the last chunk.
    last_sent: Instant,
    /// Token frames sent.
    frames: u64,
}

impl Player {
    async fn play(reply: Reply, chunks: mpsc::Sender<Bytes>) -> Result<(), ConnectionLost> {
        let Reply { params, faults, writer, model, mut generation, reset } = reply;
        let mut script = Script::new(&params, &model);
        let mut player = Self { params, faults, writer, chunks, last_sent: Instant::now(), frames: 0 };

        player.admit(&mut generation).await?;
        let mut out = Vec::new();
        let mut opened = false;
        loop {
            let step = script.step(&model);
            if !step.is_empty() {
                player.wait_until(generation.due()).await?;
                generation.stepped(step.iter().map(|piece| piece.tokens.len() as u64).sum());
            }
            // One iteration more than there are pieces: a break may precede the end of the stream.
            for piece in step.iter().map(Some).chain(step.is_empty().then_some(None)) {
                if let Some((_, pause)) = player.stall() {
                    player.wait_until(Instant::now() + pause).await?;
                    generation.stalled(pause);
                }
                if let Some(how) = player.breaks() {
                    return player.break_off(how, generation, &reset).await;
                }
                if !opened {
                    opened = true;
                    player.writer.opening(&player.params, &mut out);
                    player.send(&mut out).await?;
                }
                let Some(piece) = piece else {
                    player.writer.end(&player.params, script.total(&player.params), &mut out);
                    // Ends the generation before the client can see the end.
                    generation.end(Outcome::Completed);
                    return player.send(&mut out).await;
                };
                player.writer.piece(&player.params, piece, &mut out);
                player.frames += u64::from(!out.is_empty());
                player.send(&mut out).await?;
            }
        }
    }

    async fn admit(&mut self, generation: &mut Generation) -> Result<(), ConnectionLost> {
        let admission = generation.admit();
        let mut admission = std::pin::pin!(admission);
        loop {
            let wait = self.faults.ping_every.unwrap_or(UNBOUNDED_WAIT);
            tokio::select! {
                admitted = &mut admission => return admitted.map_err(|_| ConnectionLost),
                () = sleep(wait) => self.ping().await?,
            }
        }
    }

    /// Waits until `due`, sending pings only.
    async fn wait_until(&mut self, due: Instant) -> Result<(), ConnectionLost> {
        while let Some(every) = self.faults.ping_every {
            let ping = self.last_sent + every;
            if ping >= due {
                break;
            }
            sleep_until(ping).await;
            self.ping().await?;
        }
        sleep_until(due).await;
        Ok(())
    }

    async fn break_off(
        mut self,
        how: Break,
        generation: Generation,
        reset: &Reset,
    ) -> Result<(), ConnectionLost> {
        match how {
            Break::Hang => loop {
                // The generation stays in the batch until the client leaves.
                self.wait_until(Instant::now() + UNBOUNDED_WAIT).await?;
            },
            Break::ErrorInBand => {
                generation.end(Outcome::Faulted);
                let mut out = Vec::new();
                self.writer.error("Simulated engine failure.", &mut out);
                self.send(&mut out).await
            }
            Break::End => {
                generation.end(Outcome::Faulted);
                Ok(())
            }
            Break::Cut => {
                generation.end(Outcome::Faulted);
                Err(ConnectionLost)
            }
            Break::Reset => {
                generation.end(Outcome::Faulted);
                reset.set();
                Err(ConnectionLost)
            }
        }
    }

    fn stall(&mut self) -> Option<(u64, Duration)> {
        let frames = self.frames;
        self.faults.stall.take_if(|stall| stall.0 == frames)
    }

    fn breaks(&self) -> Option<Break> {
        let (after, how) = self.faults.breaks?;
        (after == self.frames).then_some(how)
    }

    async fn ping(&mut self) -> Result<(), ConnectionLost> {
        let mut out = vec![self.writer.ping().to_owned()];
        self.send(&mut out).await
    }

    async fn send(&mut self, out: &mut Vec<String>) -> Result<(), ConnectionLost> {
        for chunk in out.drain(..) {
            let mut chunk = Bytes::from(chunk);
            let most = self.faults.tear.unwrap_or(chunk.len());
            while !chunk.is_empty() {
                let part = chunk.split_to(most.min(chunk.len()));
                self.chunks.send(part).await.map_err(|_| ConnectionLost)?;
            }
        }
        self.last_sent = Instant::now();
        Ok(())
    }
}

/// A wait without limit for a test, which cannot overflow when added to an instant.
const UNBOUNDED_WAIT: Duration = Duration::from_secs(3_600);
