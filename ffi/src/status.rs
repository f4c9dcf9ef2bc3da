//! Status codes, and the message of the last failure.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::CStr;

use crate::entry::entry;
use crate::slice::{self, Text};

/// The result of a call. 0 is success, 1 to 99 are results without an object or a change, 100 to 199 are mistakes of the
/// caller, 200 to 299 are invalid input, 300 and above are failures of the library. A number is never reused.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// The value is not known; nothing was written.
    Absent = 1,
    /// The request or the response is not one of inference; there is no object.
    NotMetered = 2,
    /// The bytes stay as they are; nothing was written.
    Unchanged = 3,
    /// A pointer is NULL, or a handle is 0.
    Null = 100,
    /// The handle means no object: it was freed, ended, forged, or made for another type.
    Handle = 101,
    /// The call does not fit the state of the object, as a response before its request.
    Order = 102,
    /// A number is not among the defined ones, or out of its bounds.
    Value = 103,
    /// A text is not UTF-8, or contains a character that it may not.
    Text = 104,
    /// The buffer is too small; the needed length was written.
    Buffer = 105,
    /// The size of a structure is 0, or the structure is of a newer header and uses a field that this library lacks.
    Size = 106,
    /// A pointer is not aligned for its type.
    Alignment = 107,
    /// The price book has errors; see `tm_error_message`.
    Prices = 200,
    /// The tenant rules have errors; see `tm_error_message`.
    Tenants = 201,
    /// The response body cannot be decoded; its further bytes are not counted.
    Decoding = 202,
    /// There are as many objects as the library can hold.
    Limit = 300,
    /// The library failed on this object, which can only be freed. Please report it.
    Panic = 301,
    /// The library has another ABI than the header the program was compiled with.
    Abi = 302,
}

impl Status {
    /// Every status.
    pub(crate) const ALL: [Self; 18] = [
        Self::Ok,
        Self::Absent,
        Self::NotMetered,
        Self::Unchanged,
        Self::Null,
        Self::Handle,
        Self::Order,
        Self::Value,
        Self::Text,
        Self::Buffer,
        Self::Size,
        Self::Alignment,
        Self::Prices,
        Self::Tenants,
        Self::Decoding,
        Self::Limit,
        Self::Panic,
        Self::Abi,
    ];

    /// Returns its meaning in a few words.
    pub fn text(self) -> &'static CStr {
        match self {
            Self::Ok => c"success",
            Self::Absent => c"the value is not known",
            Self::NotMetered => c"not an exchange of inference",
            Self::Unchanged => c"unchanged",
            Self::Null => c"a pointer is NULL, or a handle is 0",
            Self::Handle => c"the handle means no object: it was freed, ended, forged, or is of another type",
            Self::Order => c"the call does not fit the state of the object",
            Self::Value => c"a number is out of its bounds",
            Self::Text => c"a text is not UTF-8, or contains a character that it may not",
            Self::Buffer => c"the buffer is too small",
            Self::Size => c"the size of a structure is 0, or it has a field that this library lacks",
            Self::Alignment => c"a pointer is not aligned",
            Self::Prices => c"the price book has errors",
            Self::Tenants => c"the tenant rules have errors",
            Self::Decoding => c"the response body cannot be decoded",
            Self::Limit => c"too many objects",
            Self::Panic => c"the library failed on this object",
            Self::Abi => c"the library has another ABI than the header",
        }
    }
}

/// A status, and what it is about.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: Status,
    pub(crate) message: Cow<'static, str>,
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        Self { status, message: Cow::Borrowed("") }
    }
}

impl Fault {
    /// A fault with a message of its own.
    pub(crate) fn new(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into() }
    }
}

thread_local! {
    static LAST: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// Keeps the fault as this thread's last one.
pub(crate) fn keep(fault: Fault) {
    LAST.with(|last| *last.borrow_mut() = Some(fault));
}

/// Returns the meaning of a status, a text that is never freed; of a number that is no status: "unknown status".
///
/// Thread safety: any thread, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn tm_status_text(status: i32) -> *const std::ffi::c_char {
    let known = Status::ALL.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"unknown status", Status::text).as_ptr()
}

/// Writes the message of the last call of this thread that failed (a status of 100 and above): which argument or which
/// line is wrong, and what to do. `TM_STATUS_ABSENT` if none failed yet.
///
/// Thread safety: any thread, at any time; each thread has its own message.
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_error_message(text: *mut Text) -> Status {
    let message = LAST.with(|last| {
        last.borrow().as_ref().map(|fault| match &*fault.message {
            "" => fault.status.text().to_string_lossy().into_owned(),
            message => message.to_owned(),
        })
    });
    entry(|| match message {
        // SAFETY: the caller's contract.
        Some(message) => unsafe { slice::write_text(text, &message) },
        None => Ok(Status::Absent),
    })
}
