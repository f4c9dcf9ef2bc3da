//! Buffers a request body on which a decision depends, before anything is sent.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use exchange::is_sealed;

use super::slices::Slices;
use super::upload::Upload;
use crate::capacity::Permit;
use crate::conn::pace::Verdict;
use crate::request::gathered::Gathered;
use crate::request::in_flight::InFlight;
use crate::wire::failure::BodyError;
use crate::wire::{Buffers, Down};

/// Buffers the whole body, if it has at most `most` bytes and there is memory for them. Either way, the bytes that were read
/// are the first that `upload` sends. Slices are joined as they arrive: many small ones would use more memory than their
/// bytes.
pub(super) async fn gather(
    upload: &mut Upload,
    (down, in_flight): (&mut impl Down, &Rc<InFlight>),
    buffers: &Buffers,
    most: usize,
) -> Result<Gathered, BodyError> {
    let mut share = in_flight.worker.capacities.gathered_bytes.permit(in_flight.holder.clone());
    let mut slices = Slices::new(most);
    let mut rest = Bytes::new();
    // The reason why the body is not buffered, if it is not.
    let mut unbuffered = None;
    while upload.is_open() && unbuffered.is_none() {
        in_flight.gather(share.amount());
        let mut read = Vec::new();
        let last = poll_fn(|cx| {
            let keep = |data: &[u8]| read.extend_from_slice(data);
            match upload.poll_ahead(cx, (&mut *down, in_flight), buffers, keep) {
                Poll::Pending if in_flight.uploading.verdict() == Some(Verdict::Ungathered) => {
                    Poll::Ready(None)
                }
                polled => polled.map(Some),
            }
        });
        let Some(last) = last.await else {
            unbuffered = Some(Gathered::NoMemory);
            break;
        };
        let (bytes, trailers) = (Bytes::from(read), last?);
        if slices.len() + bytes.len() > most {
            (unbuffered, rest) = (Some(Gathered::TooLarge), bytes);
        } else if share.grow_in_turn(bytes.len())
            // Boxed: most bodies find memory.
            || Box::pin(grow(&mut share, bytes.len(), (&mut *down, in_flight), buffers)).await?
        {
            slices.push(bytes);
        } else {
            (unbuffered, rest) = (Some(Gathered::NoMemory), bytes);
        }
        if let Some(trailers) = trailers {
            upload.ahead().trailers = trailers;
        }
    }
    in_flight.gather(0);
    let whole = slices.join();
    let ahead = upload.ahead();
    if !whole.is_empty() {
        ahead.share = Some(Rc::new(share));
    }
    let gathered = match unbuffered {
        Some(gathered) => gathered,
        None if is_sealed(&ahead.trailers) => Gathered::Sealed,
        None => Gathered::Whole(whole.clone()),
    };
    ahead.slices.extend([whole, rest].into_iter().filter(|slice| !slice.is_empty()));
    Ok(gathered)
}

/// Waits for memory. Returns false if there is too little for too long; an error means that the client left.
async fn grow(
    share: &mut Permit,
    bytes: usize,
    (down, in_flight): (&mut impl Down, &InFlight),
    buffers: &Buffers,
) -> Result<bool, BodyError> {
    let mut growing = pin!(share.grow_soon(bytes, in_flight.retry_pause()));
    poll_fn(|cx| match growing.as_mut().poll(cx) {
        Poll::Ready(has_grown) => Poll::Ready(Ok(has_grown)),
        Poll::Pending => down.poll_gone(cx, buffers).map(|()| {
            in_flight.fail_upload();
            Err(BodyError::ClientGone)
        }),
    })
    .await
}
