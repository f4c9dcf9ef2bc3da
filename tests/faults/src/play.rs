//! Plays a response with its faults.

use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use simulator::batch::Outcome;
use simulator::reply::{ConnectionLost, Reply};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::faults::{Break, Faults};
use crate::shape::Shape;
use crate::socket::Reset;

/// Plays a streamed response.
pub(crate) async fn stream(
    mut reply: Reply,
    mut faults: Faults,
    shape: Shape,
    reset: Reset,
    chunks: mpsc::Sender<Bytes>,
) -> Result<(), ConnectionLost> {
    let mut sender = Sender {
        chunks,
        ping: shape.ping(),
        ping_every: faults.ping_every,
        tear: faults.tear,
        last_sent: Instant::now(),
    };
    sender.until(reply.admit()).await??;
    let mut out = Vec::new();
    let mut is_opened = false;
    // Token frames sent.
    let mut frames = 0;
    loop {
        let step = sender.until(reply.step()).await?;
        // One iteration more than there are pieces: a break may precede the end of the stream.
        for piece in step.iter().map(Some).chain(step.is_empty().then_some(None)) {
            if let Some((_, pause)) = faults.stall.take_if(|stall| stall.0 == frames) {
                sender.until(sleep(pause)).await?;
                reply.generation.stalled(pause);
            }
            if let Some((after, how)) = faults.breaks
                && after == frames
            {
                return break_off(reply, how, shape, &reset, sender).await;
            }
            if !is_opened {
                is_opened = true;
                reply.writer.opening(&reply.params, &mut out);
                sender.send(&mut out).await?;
            }
            let Some(piece) = piece else {
                reply.end(&mut out);
                return sender.send(&mut out).await;
            };
            reply.writer.piece(&reply.params, piece, &mut out);
            frames += u64::from(!out.is_empty());
            sender.send(&mut out).await?;
        }
    }
}

async fn break_off(
    reply: Reply,
    how: Break,
    shape: Shape,
    reset: &Reset,
    mut sender: Sender,
) -> Result<(), ConnectionLost> {
    if how == Break::Hang {
        // The generation stays in the batch until the client leaves.
        return sender.until(pending()).await?;
    }
    reply.generation.end(Outcome::Faulted);
    match how {
        Break::ErrorInBand => {
            let mut out = Vec::new();
            shape.error_events("Simulated engine failure.", &mut out);
            sender.send(&mut out).await
        }
        Break::End | Break::Hang => Ok(()),
        Break::Cut => Err(ConnectionLost),
        Break::Reset => {
            reset.set();
            Err(ConnectionLost)
        }
    }
}

/// An unstreamed response.
#[derive(Debug)]
pub(crate) enum Whole {
    Body(String),
    /// Status 500.
    Error,
    /// The first half of a body, then the loss of the connection.
    Cut(String),
}

/// Waits until an unstreamed response is complete, or breaks off.
pub(crate) async fn whole(
    mut reply: Reply,
    mut faults: Faults,
    reset: &Reset,
) -> Result<Whole, ConnectionLost> {
    let mut choices = reply.choices();
    let mut pieces = 0;
    reply.admit().await?;
    loop {
        let step = reply.step().await;
        if let Some((after, how)) = faults.breaks
            && after <= pieces
        {
            match how {
                Break::Hang => pending().await,
                Break::Reset => reset.set(),
                Break::ErrorInBand | Break::Cut | Break::End => {}
            }
            reply.generation.end(Outcome::Faulted);
            return Ok(match how {
                Break::ErrorInBand => Whole::Error,
                _ => Whole::Cut(reply.writer.whole(&reply.params, &choices)),
            });
        }
        if let Some((_, pause)) = faults.stall.take_if(|stall| stall.0 <= pieces) {
            sleep(pause).await;
            reply.generation.stalled(pause);
        }
        if step.is_empty() {
            reply.generation.end(Outcome::Completed);
            return Ok(Whole::Body(reply.writer.whole(&reply.params, &choices)));
        }
        pieces += step.len() as u64;
        for piece in &step {
            choices[piece.choice as usize].push(piece);
        }
    }
}

/// The sender of a stream's chunks.
struct Sender {
    chunks: mpsc::Sender<Bytes>,
    /// A comment event.
    ping: &'static str,
    ping_every: Option<Duration>,
    /// Maximum bytes per chunk.
    tear: Option<usize>,
    /// The time of the last chunk.
    last_sent: Instant,
}

impl Sender {
    /// Waits for `wait`, sending pings only.
    async fn until<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, ConnectionLost> {
        let Some(every) = self.ping_every else { return Ok(wait.await) };
        let mut wait = pin!(wait);
        loop {
            tokio::select! {
                biased;
                over = &mut wait => return Ok(over),
                () = sleep_until(self.last_sent + every) => self.send(&mut vec![self.ping.to_owned()]).await?,
            }
        }
    }

    async fn send(&mut self, out: &mut Vec<String>) -> Result<(), ConnectionLost> {
        for chunk in out.drain(..) {
            let mut chunk = Bytes::from(chunk);
            let most = self.tear.unwrap_or(chunk.len());
            while !chunk.is_empty() {
                let part = chunk.split_to(most.min(chunk.len()));
                self.chunks.send(part).await.map_err(|_| ConnectionLost)?;
            }
        }
        self.last_sent = Instant::now();
        Ok(())
    }
}
