//! Asking for usage in a request's name: the body is gathered, the question merged into it, the
//! head made to fit, and the original kept until the server has taken it. A server that answers 400
//! or 422 gets the original once more, and only that answer reaches the client.

use std::rc::Rc;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue};
use http::request;
use http::{HeaderMap, Request, StatusCode};
use scan::Dialect;
use usage::{Added, Ask, Asking, Why};

use super::upload::{Gathered, Upload, UploadError};
use super::visit::Visit;
use crate::capacity::Permit;
use crate::upstream_profile::Asker;
use crate::{UsageStep, clock, limits};

/// A request as it was before it was edited.
pub(super) struct Original {
    parts: request::Parts,
    body: Bytes,
    /// What stands behind it.
    trailers: Option<HeaderMap>,
    added: Added,
    asker: Asker,
    /// What it was refused for may be its question.
    plain: bool,
    /// Its bytes' part of the room for all of them.
    _share: Option<Rc<Permit>>,
}

/// Gathers a body that alone says what is spoken. What there is to ask for in it, as `wants` has it of its
/// dialect, or why nothing is; `None` if it is nothing that could be asked.
pub(super) async fn settle(
    visit: &Visit,
    is_askable: impl FnOnce(Dialect) -> bool,
    wants: impl FnOnce(Dialect) -> Result<Ask, UsageStep>,
    upload: &mut Upload,
    gathered: Option<Gathered>,
) -> Result<(Gathered, Option<Result<Ask, UsageStep>>), UploadError> {
    let gathered = match gathered {
        Some(gathered) => gathered,
        None => upload.gather(limits::GATHERED_BYTES).await?,
    };
    if let Gathered::Not | Gathered::Crowded = gathered {
        return Ok((gathered, Some(Err(UsageStep::TooLarge))));
    }
    let said = visit.metered.borrow_mut().with(|exchange| (exchange.dialect(), exchange.asks_for_frames()));
    let want = match said {
        Some((dialect, _)) if is_askable(dialect) => Some(wants(dialect)),
        Some((Dialect::Unknown, true)) => Some(Err(UsageStep::Unreadable)),
        _ => None,
    };
    Ok((gathered, want))
}

/// Edits the request if `want` can be asked for in it; the original is given back then. `gathered` is
/// its body, if that was gathered before.
pub(super) async fn ask(
    visit: &Visit,
    (want, asker): (Ask, Asker),
    parts: &mut request::Parts,
    upload: &mut Upload,
    gathered: Option<Gathered>,
) -> Result<Option<Original>, UploadError> {
    let gathered = match gathered {
        Some(gathered) => gathered,
        None => upload.gather(limits::GATHERED_BYTES).await?,
    };
    let body = match gathered {
        Gathered::Whole(body) => body,
        Gathered::Sealed => {
            visit.usage(UsageStep::Unreadable);
            return Ok(None);
        }
        Gathered::Not | Gathered::Crowded => {
            visit.usage(UsageStep::TooLarge);
            return Ok(None);
        }
    };
    // Under the meter's guard: should it fail, the request goes as it came, and nobody looks.
    let edited = visit.metered.borrow_mut().with(|exchange| {
        if !exchange.asks_for_frames() {
            return Err(UsageStep::NotStreamed);
        }
        match usage::ask(&body, want) {
            Asking::Edit { edit, added, plain } => {
                exchange.asked_more(Some(added));
                let slices: Vec<Bytes> = edit.apply(&body).collect();
                Ok((slices, edit.new_len(body.len()), added, plain))
            }
            Asking::Nothing(Why::NotStreamed) => Err(UsageStep::NotStreamed),
            Asking::Nothing(Why::AskedAlready) => Err(UsageStep::ClientAsked),
            Asking::Nothing(Why::NotJson | Why::Odd) => Err(UsageStep::Unreadable),
        }
    });
    let (slices, length, added, plain) = match edited {
        Some(Ok(edited)) => edited,
        Some(Err(step)) => {
            visit.usage(step);
            return Ok(None);
        }
        None => return Ok(None),
    };
    let (head, trailers) = (parts.clone(), upload.trailers().cloned());
    let original = Original { parts: head, body, trailers, added, asker, plain, _share: upload.share() };
    upload.replace(slices.into_iter());
    if parts.headers.contains_key(CONTENT_LENGTH) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    // What is to be taken out of the answer must be readable in it.
    parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    visit.usage(if added.is_running() { UsageStep::Continuous } else { UsageStep::Injected });
    Ok(Some(original))
}

/// Whether an answer may be due to what was added.
pub(super) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

impl Original {
    /// The request, to be sent once more.
    pub(super) fn request(&self, visit: &Rc<Visit>) -> Request<Upload> {
        visit.metered.borrow_mut().with(|exchange| exchange.asked_more(None));
        let body = Upload::again(self.body.clone(), self.trailers.clone(), visit);
        Request::from_parts(self.parts.clone(), body)
    }

    /// It was answered with `status`: if that is a success, the question was what was refused. Unless a
    /// flag was written in a way that this server may have read otherwise: a client could make us ask
    /// nobody any more.
    pub(super) fn answered(&self, visit: &Visit, index: usize, status: StatusCode) {
        if self.plain && status.is_success() {
            visit.engine.worker().learned[index].refuses(self.added, self.asker, clock::now());
        }
    }
}
