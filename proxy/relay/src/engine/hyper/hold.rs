//! The editing of one response body: the editor, what it is told to cut, and the clock that limits
//! how long bytes may wait for the rest of their event (law 2).

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use bytes::Bytes;
use tokio::time::Sleep;
use usage::{Editor, Marks};

use super::visit::Visit;
use crate::Dropped;

/// Edits one response body.
#[derive(Default)]
pub(super) struct Edit {
    pub(super) editor: Editor,
    pub(super) marks: Marks,
    /// Runs while bytes wait.
    overdue: Option<Pin<Box<Sleep>>>,
    /// What could not be cut and was told.
    told: u64,
}

impl Edit {
    /// Nothing more can be read for now: gives back what has waited long enough, and sees to it that
    /// the task is woken when what waits has.
    pub(super) fn poll_overdue(&mut self, visit: &Visit, cx: &mut Context<'_>) -> Option<Bytes> {
        self.tell(visit);
        if !self.editor.is_holding() {
            self.overdue = None;
            return None;
        }
        let overdue = self.overdue.get_or_insert_with(|| Box::pin(tokio::time::sleep(usage::HOLD_TIME)));
        if overdue.as_mut().poll(cx).is_pending() {
            return None;
        }
        self.overdue = None;
        let bytes = self.editor.release();
        self.tell(visit);
        Some(bytes)
    }

    fn tell(&mut self, visit: &Visit) {
        while self.told < self.editor.missed() {
            self.told += 1;
            visit.engine.worker().lose(Dropped::UsageEdit);
        }
    }
}
