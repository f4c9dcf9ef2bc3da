//! Signals of the threads that exporters start. Signals belong to the host.

use std::mem::MaybeUninit;
use std::ptr;

/// Signals that the faulting instruction of a thread causes. A thread that blocks one ends the process by it.
const SYNCHRONOUS: [libc::c_int; 7] =
    [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGSYS, libc::SIGTRAP];

/// Calls `start`, whose threads block all other signals: they run no handler of the host, and a peer that closes its
/// connection does not end the process by SIGPIPE.
pub(super) fn blocked<R>(start: impl FnOnce() -> R) -> R {
    let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call initialises `blocked`, the last one `before`. All arguments are valid, so none of them fails.
    let before = unsafe {
        libc::sigfillset(blocked.as_mut_ptr());
        for signal in SYNCHRONOUS {
            libc::sigdelset(blocked.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), before.as_mut_ptr());
        Restore(before.assume_init())
    };
    let result = start();
    drop(before);
    result
}

/// The signals that a thread blocked before. They apply again after a panic, too.
struct Restore(libc::sigset_t);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}
