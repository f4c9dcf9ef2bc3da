//! Memory of the caller: the only file that reads and writes through its pointers.

use std::mem::{align_of, size_of};
use std::ptr;

use crate::status::{Fault, Status};

/// Bytes of the caller, read during the call only. A text is UTF-8 without a final NUL: `tm_text_of` makes a slice of a
/// C string. `data` may be NULL if `length` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The first byte.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

impl Default for Slice {
    fn default() -> Self {
        Self { data: ptr::null(), length: 0 }
    }
}

impl Slice {
    /// Returns the bytes.
    ///
    /// # Safety
    /// `data` points to `length` bytes that nothing writes to during `'a`.
    #[inline]
    pub(crate) unsafe fn bytes<'a>(self) -> Result<&'a [u8], Fault> {
        if self.length == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() {
            return Err(Status::Null.into());
        }
        if isize::try_from(self.length).is_err() {
            return Err(Fault::new(Status::Value, "a length is larger than any object in memory"));
        }
        // SAFETY: not null, not too long, and the caller's contract.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.length) })
    }

    /// Returns the bytes as text.
    ///
    /// # Safety
    /// As for [`Self::bytes`].
    pub(crate) unsafe fn text<'a>(self) -> Result<&'a str, Fault> {
        // SAFETY: the caller's contract.
        let bytes = unsafe { self.bytes() }?;
        std::str::from_utf8(bytes).map_err(|_| Status::Text.into())
    }
}

/// Returns a slice of a C string without its final NUL, and an empty slice for NULL. The slice is valid as long as the
/// string.
///
/// # Safety
/// `text` is NULL or points to a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_text_of(text: *const std::ffi::c_char) -> Slice {
    if text.is_null() {
        return Slice::default();
    }
    // SAFETY: not null, and the caller's contract.
    let bytes = unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes();
    Slice { data: bytes.as_ptr(), length: bytes.len() }
}

/// A buffer of the caller for a text in UTF-8. The call writes the text, a final NUL, and the `length` without the NUL.
/// If the capacity is less than `length + 1`, the call writes the `length` only and returns `TM_STATUS_BUFFER`: call
/// again with a capacity of `length + 1` or more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The buffer. May be NULL if `capacity` is 0.
    pub buffer: *mut std::ffi::c_char,
    /// The size of the buffer in bytes.
    pub capacity: usize,
    /// The length of the text in bytes. Written by the call.
    pub length: usize,
}

/// Writes a text and its length.
///
/// # Safety
/// `text` is NULL or points to a [`Text`] whose buffer has its capacity and is not accessed by others.
pub(crate) unsafe fn write_text(text: *mut Text, content: &str) -> Result<Status, Fault> {
    check(text)?;
    // SAFETY: checked, and the caller's contract.
    let text = unsafe { &mut *text };
    text.length = content.len();
    if content.len() >= text.capacity {
        return Err(Status::Buffer.into());
    }
    if text.buffer.is_null() {
        return Err(Status::Null.into());
    }
    // SAFETY: the buffer has room for the content and a NUL, by the check above and the caller's contract.
    unsafe {
        ptr::copy_nonoverlapping(content.as_ptr(), text.buffer.cast(), content.len());
        text.buffer.add(content.len()).write(0);
    }
    Ok(Status::Ok)
}

/// A buffer of the caller for bytes. The call writes the bytes and their number. If the capacity is less than their
/// number, the call writes nothing but `length` and returns `TM_STATUS_BUFFER`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The buffer. May be NULL if `capacity` is 0.
    pub buffer: *mut u8,
    /// The size of the buffer in bytes.
    pub capacity: usize,
    /// The number of the bytes. Written by the call.
    pub length: usize,
}

/// Writes bytes, in parts that follow each other, and their number.
///
/// # Safety
/// `bytes` is NULL or points to a [`Bytes`] whose buffer has its capacity and is not accessed by others.
pub(crate) unsafe fn write_bytes<'a>(
    bytes: *mut Bytes,
    parts: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<Status, Fault> {
    check(bytes)?;
    // SAFETY: checked, and the caller's contract.
    let bytes = unsafe { &mut *bytes };
    bytes.length = parts.clone().map(<[u8]>::len).sum();
    if bytes.length > bytes.capacity {
        return Err(Status::Buffer.into());
    }
    if bytes.buffer.is_null() && bytes.length > 0 {
        return Err(Status::Null.into());
    }
    let mut at = 0;
    for part in parts {
        // SAFETY: the parts fit into the buffer, by the check above and the caller's contract.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), bytes.buffer.add(at), part.len()) };
        at += part.len();
    }
    Ok(Status::Ok)
}

/// Checks that a buffer has `needed` bytes; writes that length if it has not.
///
/// # Safety
/// `bytes` is NULL or points to a [`Bytes`].
pub(crate) unsafe fn require_capacity(bytes: *mut Bytes, needed: usize) -> Result<(), Fault> {
    check(bytes)?;
    // SAFETY: checked, and the caller's contract.
    let bytes = unsafe { &mut *bytes };
    if bytes.capacity >= needed {
        return Ok(());
    }
    bytes.length = needed;
    Err(Fault::new(Status::Buffer, "the buffer needs the length of the part and TM_HOLD_MAX"))
}

/// Writes a value to the place that the caller gave.
///
/// # Safety
/// `out` is NULL or points to memory for a `T`.
#[inline]
pub(crate) unsafe fn write<T>(out: *mut T, value: T) -> Result<(), Fault> {
    check(out)?;
    // SAFETY: checked, and the caller's contract.
    unsafe { out.write(value) };
    Ok(())
}

/// Checks that a pointer may be used for a `T`.
#[inline]
pub(crate) fn check<T>(pointer: *const T) -> Result<(), Fault> {
    if pointer.is_null() {
        return Err(Status::Null.into());
    }
    if !pointer.is_aligned() {
        return Err(Status::Alignment.into());
    }
    Ok(())
}

/// Returns the elements of an array.
///
/// # Safety
/// `first` is NULL or points to `count` elements that nothing writes to during `'a`.
#[inline]
pub(crate) unsafe fn array<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    check(first)?;
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if !fits {
        return Err(Fault::new(Status::Value, "a count is larger than any array in memory"));
    }
    // SAFETY: not null, aligned, not too long, and the caller's contract.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// Returns the elements of an array that the call may change.
///
/// # Safety
/// `first` is NULL or points to `count` elements that nothing else accesses during `'a`.
#[inline]
pub(crate) unsafe fn array_mut<'a, T>(first: *mut T, count: usize) -> Result<&'a mut [T], Fault> {
    // SAFETY: the caller's contract. This checks the pointer and the length.
    unsafe { array(first.cast_const(), count) }?;
    // SAFETY: checked, and the caller's contract. No elements need no pointer.
    Ok(if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(first, count) } })
}

/// A structure whose first field is its size in bytes, so that later versions can have more fields.
///
/// # Safety
/// `repr(C)`, the first field is a `usize`, and every pattern of bits is a value of each field.
pub(crate) unsafe trait Versioned: Copy + Default {}

/// The largest structure of any later header. A size beyond it was never set, and is not read up to.
const STRUCTURE_MAX_BYTES: usize = 4096;

/// Reads a structure of an older, the same, or a newer header. Fields that the caller's header lacks have their
/// default.
///
/// # Safety
/// `from` is NULL or points to a structure of the size in its first field.
pub(crate) unsafe fn sized<T: Versioned>(from: *const T) -> Result<T, Fault> {
    check(from)?;
    // SAFETY: checked, and the trait says that the first field is a `usize`.
    let size = unsafe { from.cast::<usize>().read() };
    if size < size_of::<usize>() || size > STRUCTURE_MAX_BYTES || size % align_of::<T>() != 0 {
        return Err(Fault::new(Status::Size, "the field `size` of a structure is not its `sizeof`"));
    }
    let known = size.min(size_of::<T>());
    if size > known {
        let newer = size - known;
        // SAFETY: the caller's contract: the structure has `size` bytes.
        let rest = unsafe { array(from.cast::<u8>().add(known), newer) }?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Fault::new(Status::Size, "the structure uses a field that this library lacks"));
        }
    }
    let mut value = T::default();
    // SAFETY: `known` bytes are in both, and the trait says that any bits are a value.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), ptr::from_mut(&mut value).cast::<u8>(), known) };
    Ok(value)
}

#[cfg(test)]
#[path = "slice_tests.rs"]
mod tests;
