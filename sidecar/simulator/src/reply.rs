//! One answer, played in time: the script, the batch and the faults brought together.
//!
//! A streamed answer is a body that drives its own player. There is no task and no queue beside
//! it: when hyper drops the body because the client went away, player and generation go with it,
//! in the same turn.
//!
//! The law: chunks leave one by one. Each is flushed before the next is offered, as a server does
//! whose generator yields between events; without that, a fast answer would be one write.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{error, fmt};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::ask::Ask;
use crate::batch::{Generation, Outcome};
use crate::faults::{Break, Faults};
use crate::script::Script;
use crate::shape::{Told, Voice};
use crate::socket::Reset;
use crate::speed::Model;

/// All that an answer is played from.
pub(crate) struct Reply {
    pub(crate) ask: Ask,
    pub(crate) faults: Faults,
    pub(crate) voice: Box<dyn Voice>,
    pub(crate) model: Model,
    pub(crate) generation: Generation,
    pub(crate) reset: Reset,
}

/// The connection has to be dropped as it is.
#[derive(Debug)]
pub(crate) struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated loss of the connection")
    }
}

impl error::Error for Dropped {}

/// How an answer that is not streamed comes out.
#[derive(Debug)]
pub(crate) enum Whole {
    Body(String),
    /// Status 500.
    Error,
    /// The first half of a body, then the loss of the connection.
    Cut(String),
}

impl Reply {
    /// The answer as events.
    pub(crate) fn stream(self) -> Stream {
        Stream::new(|chunks| Player::play(self, chunks))
    }

    /// The answer as one body, once it is complete.
    pub(crate) async fn whole(mut self) -> Whole {
        let mut script = Script::new(&self.ask, &self.model);
        let mut told: Vec<Told> = (0..self.ask.choices()).map(|_| Told::new(&self.ask)).collect();
        let mut pieces = 0;
        if self.generation.admit().await.is_err() {
            return Whole::Error;
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
                        return Whole::Error;
                    }
                    Break::Hang => std::future::pending().await,
                    Break::Reset => self.reset.set(),
                    Break::Cut | Break::End => {}
                }
                self.generation.end(Outcome::Faulted);
                return Whole::Cut(self.voice.whole(&self.ask, &told));
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
                told[piece.choice as usize].push(piece);
            }
        }
        self.generation.end(Outcome::Completed);
        Whole::Body(self.voice.whole(&self.ask, &told))
    }
}

/// The body of a streamed answer.
pub(crate) struct Stream {
    player: Option<Play>,
    chunks: mpsc::Receiver<Bytes>,
    dropped: bool,
    /// The last chunk may still be in hyper's buffer.
    flush: bool,
}

type Play = Pin<Box<dyn Future<Output = Result<(), Dropped>> + Send>>;

impl Stream {
    /// `part` of a body, and then the loss of the connection.
    pub(crate) fn cut(part: Bytes) -> Self {
        Self::new(|chunks| async move {
            // The receiver is the body that polls this: it cannot be gone.
            let _ = chunks.send(part).await;
            Err(Dropped)
        })
    }

    fn new<F>(play: impl FnOnce(mpsc::Sender<Bytes>) -> F) -> Self
    where
        F: Future<Output = Result<(), Dropped>> + Send + 'static,
    {
        // One chunk: the player waits until hyper has taken the last one.
        let (sender, chunks) = mpsc::channel(1);
        Self {
            player: Some(Box::pin(play(sender))),
            chunks,
            dropped: false,
            // The head goes out before anything is generated.
            flush: true,
        }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Dropped;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Dropped>>> {
        if self.flush {
            // Hyper flushes when its body has nothing to offer.
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
            Poll::Ready(None) if self.dropped => Poll::Ready(Some(Err(Dropped))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// What plays a streamed answer.
struct Player {
    ask: Ask,
    faults: Faults,
    voice: Box<dyn Voice>,
    chunks: mpsc::Sender<Bytes>,
    /// When the last chunk was sent.
    spoke: Instant,
    /// Token frames sent.
    frames: u64,
}

impl Player {
    async fn play(reply: Reply, chunks: mpsc::Sender<Bytes>) -> Result<(), Dropped> {
        let Reply { ask, faults, voice, model, mut generation, reset } = reply;
        let mut script = Script::new(&ask, &model);
        let mut player = Self { ask, faults, voice, chunks, spoke: Instant::now(), frames: 0 };

        player.admit(&mut generation).await?;
        let mut out = Vec::new();
        let mut opened = false;
        loop {
            let step = script.step(&model);
            if !step.is_empty() {
                player.silence(generation.due()).await?;
                generation.stepped(step.iter().map(|piece| piece.tokens.len() as u64).sum());
            }
            // One turn more than there are pieces: a break may come before what ends the stream.
            for piece in step.iter().map(Some).chain(step.is_empty().then_some(None)) {
                if let Some((_, pause)) = player.stall() {
                    player.silence(Instant::now() + pause).await?;
                    generation.stalled(pause);
                }
                if let Some(how) = player.breaks() {
                    return player.break_off(how, generation, &reset).await;
                }
                if !opened {
                    opened = true;
                    player.voice.opening(&player.ask, &mut out);
                    player.send(&mut out).await?;
                }
                let Some(piece) = piece else {
                    player.voice.end(&player.ask, script.total(&player.ask), &mut out);
                    // The engine is done before the client has heard of it.
                    generation.end(Outcome::Completed);
                    return player.send(&mut out).await;
                };
                player.voice.piece(&player.ask, piece, &mut out);
                player.frames += u64::from(!out.is_empty());
                player.send(&mut out).await?;
            }
        }
    }

    async fn admit(&mut self, generation: &mut Generation) -> Result<(), Dropped> {
        let admission = generation.admit();
        let mut admission = std::pin::pin!(admission);
        loop {
            let wait = self.faults.ping_every.unwrap_or(LONG);
            tokio::select! {
                admitted = &mut admission => return admitted.map_err(|_| Dropped),
                () = sleep(wait) => self.ping().await?,
            }
        }
    }

    /// Says nothing until `due`, but for pings.
    async fn silence(&mut self, due: Instant) -> Result<(), Dropped> {
        while let Some(every) = self.faults.ping_every {
            let ping = self.spoke + every;
            if ping >= due {
                break;
            }
            sleep_until(ping).await;
            self.ping().await?;
        }
        sleep_until(due).await;
        Ok(())
    }

    async fn break_off(mut self, how: Break, generation: Generation, reset: &Reset) -> Result<(), Dropped> {
        match how {
            Break::Hang => loop {
                // The generation stays in the batch: only the client's leaving ends it.
                self.silence(Instant::now() + LONG).await?;
            },
            Break::ErrorInBand => {
                generation.end(Outcome::Faulted);
                let mut out = Vec::new();
                self.voice.error("Simulated engine failure.", &mut out);
                self.send(&mut out).await
            }
            Break::End => {
                generation.end(Outcome::Faulted);
                Ok(())
            }
            Break::Cut => {
                generation.end(Outcome::Faulted);
                Err(Dropped)
            }
            Break::Reset => {
                generation.end(Outcome::Faulted);
                reset.set();
                Err(Dropped)
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

    async fn ping(&mut self) -> Result<(), Dropped> {
        let mut out = vec![self.voice.ping().to_owned()];
        self.send(&mut out).await
    }

    async fn send(&mut self, out: &mut Vec<String>) -> Result<(), Dropped> {
        for chunk in out.drain(..) {
            let mut chunk = Bytes::from(chunk);
            let most = self.faults.tear.unwrap_or(chunk.len());
            while !chunk.is_empty() {
                let part = chunk.split_to(most.min(chunk.len()));
                self.chunks.send(part).await.map_err(|_| Dropped)?;
            }
        }
        self.spoke = Instant::now();
        Ok(())
    }
}

/// An hour: for ever, as far as a test is concerned, and no overflow when added to an instant.
const LONG: Duration = Duration::from_secs(3_600);
