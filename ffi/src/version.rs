//! The version of the library, and of its ABI.

use std::ffi::{CStr, c_char};

use crate::status::Status;

/// The number of the ABI: it changes if a program must be compiled again. Later versions of the library add
/// functions, fields and numbers without changing it.
pub const TM_ABI: u32 = 0;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// Returns the version of the library, `MAJOR.MINOR.PATCH`, a text that is never freed.
///
/// Thread safety: any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Checks that the library fits the header the program was compiled with: call it once, with `TM_ABI`.
/// `TM_STATUS_ABI` if it does not.
///
/// Thread safety: any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_abi_check(abi: u32) -> Status {
    if abi == TM_ABI { Status::Ok } else { Status::Abi }
}
