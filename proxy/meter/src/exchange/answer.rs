//! The response as far as its head and its bytes tell, without their meaning.

use crate::body::Body;

/// The head of the response, and how its body is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    /// The HTTP status; 0 without a response.
    pub(super) status: u16,
    body: BodyState,
}

/// The state of the response body.
#[derive(Clone, Copy, Debug, Default)]
enum BodyState {
    /// There is no response yet.
    #[default]
    Awaited,
    /// It is read in this way.
    Read(Body),
    /// The rest of it cannot be read: the counts so far are part of an unknown total. Before, it was read in
    /// this way, if there was a response.
    Broken(Option<Body>),
}

impl Answer {
    /// The response has `status`, and its body is read as `body`.
    pub(super) fn new(status: u16, body: Body) -> Self {
        Self { status, body: BodyState::Read(body) }
    }

    /// Marks the rest of the body as unreadable.
    pub(super) fn mark_unreadable(&mut self) {
        self.body = BodyState::Broken(self.body());
    }

    /// Returns true if the status is one of success.
    pub(super) fn is_success(self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns true if the status is one of an error.
    pub(super) fn is_error(self) -> bool {
        self.status >= 400
    }

    /// Returns true if there is no response.
    pub(super) fn is_awaited(self) -> bool {
        matches!(self.body, BodyState::Awaited)
    }

    /// Returns true if the body comes in frames.
    pub(super) fn is_streamed(self) -> bool {
        self.body() == Some(Body::Frames)
    }

    /// Returns true if the body, or the rest of it, cannot be read.
    pub(super) fn is_unreadable(self) -> bool {
        matches!(self.body, BodyState::Read(Body::Unknown) | BodyState::Broken(_))
    }

    /// Returns true if the body became unreadable.
    pub(super) fn is_broken(self) -> bool {
        matches!(self.body, BodyState::Broken(_))
    }

    fn body(self) -> Option<Body> {
        match self.body {
            BodyState::Awaited => None,
            BodyState::Read(body) => Some(body),
            BodyState::Broken(body) => body,
        }
    }
}
