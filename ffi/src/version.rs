//! The version of the library, and of its ABI.

use std::ffi::{CStr, c_char};

use crate::status::Status;

/// The number of the ABI. It changes when programs must be compiled again. It does not change when a version adds
/// functions, fields or numbers.
pub const TM_ABI: u32 = 0;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// Returns the version of the library, as `0.1.0`. The text is static: it is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Checks that the library fits the header with which the program was compiled. Call it before any other function, with
/// `TM_ABI`. `TM_STATUS_ABI` if the library does not fit.
#[unsafe(no_mangle)]
pub extern "C" fn tm_abi_check(abi: u32) -> Status {
    if abi == TM_ABI { Status::Ok } else { Status::Abi }
}
