//! Panics of the counting thread say where, and not what: a slice out of bounds quotes the string it is
//! of, and that would be somebody's text on stderr.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// From now on a panic on this thread is reported by its place only. Other threads keep the hook that
/// the process had when the first thread asked for this.
pub(crate) fn this_thread() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return before(info);
            }
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
            tracing::error!(%place, "counting tokens panicked; the answer has no local count");
        }));
    });
    QUIET.set(true);
}
