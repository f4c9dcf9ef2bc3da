//! Status codes, and the message of the last failure.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::CStr;

use crate::entry::entry;
use crate::slice::{self, Text};

/// The result of a call. 0 is success. 1 to 99 are success without a result. 100 to 199 are mistakes of the caller. 200
/// to 299 are invalid input. 300 and above are failures of the library. A later version may return a number that this
/// header lacks: its range tells its meaning.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// The value is not known. No value was written.
    Absent = 1,
    /// The request or the response runs no model. There is no exchange, or no record.
    NotMetered = 2,
    /// The bytes stay as they are. Nothing was written.
    Unchanged = 3,
    /// A required pointer is NULL, or a handle is 0.
    Null = 100,
    /// The handle has no object: it was freed, its exchange is over, or it is of another type.
    Handle = 101,
    /// The call does not fit the state of the exchange: a response body before its head, a second head.
    Order = 102,
    /// A number or a name is none of the defined ones, or a length is out of its bounds.
    Value = 103,
    /// A text is not UTF-8, or does not have the form that its field requires.
    Text = 104,
    /// The buffer is too small. `tm_text` and `tm_bytes` say what was written.
    Buffer = 105,
    /// The field `size` of a structure is not its `sizeof`, or the structure sets a field that this library lacks.
    Size = 106,
    /// A pointer is not aligned for its type.
    Alignment = 107,
    /// The price book is invalid, or its currency is not that of the meter.
    Prices = 200,
    /// The tenant rules or their keys are invalid, or keys are missing.
    Tenants = 201,
    /// The response body cannot be decompressed. The rest of it is not counted. The exchange goes on.
    Decoding = 202,
    /// The library holds 1,048,576 objects of this type, its maximum.
    Limit = 300,
    /// The call met a defect of the library. Its object, if it has one, can only be freed. Please report the defect.
    Panic = 301,
    /// The library has another ABI than the header with which the program was compiled.
    Abi = 302,
    /// A listener, a ledger or an export cannot start. `tm_error_message` says which and why.
    Start = 303,
    /// The library was built without this function.
    Unsupported = 304,
}

impl Status {
    /// Every status.
    pub(crate) const ALL: [Self; 20] = [
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
        Self::Start,
        Self::Unsupported,
    ];

    /// Returns its meaning in a few words.
    pub fn text(self) -> &'static CStr {
        match self {
            Self::Ok => c"success",
            Self::Absent => c"the value is not known",
            Self::NotMetered => c"not an exchange of inference",
            Self::Unchanged => c"unchanged",
            Self::Null => c"a pointer is NULL, or a handle is 0",
            Self::Handle => {
                c"the handle has no object: it was freed, its exchange is over, or it is of another type"
            }
            Self::Order => c"the call does not fit the state of the exchange",
            Self::Value => c"a number or a name is not a defined one, or a length is out of its bounds",
            Self::Text => c"a text is not UTF-8, or contains a character that it may not",
            Self::Buffer => c"the buffer is too small",
            Self::Size => {
                c"the size of a structure is not its sizeof, or it has a field that this library lacks"
            }
            Self::Alignment => c"a pointer is not aligned",
            Self::Prices => c"the price book has errors",
            Self::Tenants => c"the tenant rules have errors",
            Self::Decoding => c"the response body cannot be decoded",
            Self::Limit => c"too many objects",
            Self::Panic => c"the library failed on this object",
            Self::Abi => c"the library has another ABI than the header",
            Self::Start => c"an exporter cannot start",
            Self::Unsupported => c"the library was built without this function",
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

/// Keeps the fault as this thread's last one. A thread that ends has no messages any more: destructors of its other
/// variables, and the functions of `atexit`, may still call the library.
pub(crate) fn keep(fault: Fault) {
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(fault));
}

/// Returns the meaning of a status in a few words, or "unknown status". The text is static: it is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn tm_status_text(status: i32) -> *const std::ffi::c_char {
    let known = Status::ALL.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"unknown status", Status::text).as_ptr()
}

/// Writes the message of the last failed call of this thread, one with a status of 100 or above. It lists the errors of
/// a price book or of tenant rules; of other failures it says at least what the status means. A call that succeeds does
/// not change it. `TM_STATUS_ABSENT` if no call of this thread failed.
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_error_message(text: *mut Text) -> Status {
    entry(|| {
        let message = LAST.try_with(|last| {
            last.borrow().as_ref().map(|fault| match &*fault.message {
                "" => fault.status.text().to_string_lossy().into_owned(),
                message => message.to_owned(),
            })
        });
        match message.ok().flatten() {
            // SAFETY: the caller's contract.
            Some(message) => match unsafe { slice::write_text(text, &message) } {
                // It must not replace the message that the caller is about to ask for again.
                Err(fault) if fault.status == Status::Buffer => Ok(Status::Buffer),
                written => written,
            },
            None => Ok(Status::Absent),
        }
    })
}
