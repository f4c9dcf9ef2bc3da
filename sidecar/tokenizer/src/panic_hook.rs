//! Redacted panic messages on the counting thread: the location and not the message. A slice out of bounds quotes
//! its string, which would put a client's text on stderr.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static REDACTED: Cell<bool> = const { Cell::new(false) };
}

/// Redacts panics of this thread from now on. Other threads keep the panic hook that
/// the process had at the first call.
pub(crate) fn redact_this_thread() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !REDACTED.get() {
                return before(info);
            }
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
            tracing::error!(%place, "panic while counting tokens; the response has no local count");
        }));
    });
    REDACTED.set(true);
}
