//! Pointers, lengths and sizes that a caller may get wrong.

use std::mem::size_of;
use std::ptr;

use super::{Bytes, Slice, Text, Versioned, array, sized, write, write_bytes, write_text};
use crate::status::{Fault, Status};

fn status<R>(result: Result<R, Fault>) -> Status {
    result.map_or_else(|fault| fault.status, |_| Status::Ok)
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Options {
    size: usize,
    first: u64,
    second: u64,
}

// SAFETY: `repr(C)`, the size first, integers only.
unsafe impl Versioned for Options {}

#[test]
fn older_structure_gets_defaults() {
    let whole = Options { size: size_of::<usize>() + 8, first: 7, second: 9 };
    // SAFETY: it points to a structure.
    let read = unsafe { sized(&whole) }.unwrap();
    assert_eq!((read.first, read.second), (7, 0));
}

#[test]
fn newer_structure_is_read_unless_it_uses_the_new_field() {
    let mut newer = [size_of::<Options>() as u64 + 8, 7, 9, 0];
    // SAFETY: it points to a structure of its size.
    assert_eq!(unsafe { sized::<Options>(newer.as_ptr().cast()) }.unwrap().second, 9);
    newer[3] = 1;
    // SAFETY: as above.
    assert_eq!(status(unsafe { sized::<Options>(newer.as_ptr().cast()) }), Status::Size);
    newer[0] = 0;
    // SAFETY: as above.
    assert_eq!(status(unsafe { sized::<Options>(newer.as_ptr().cast()) }), Status::Size);
}

#[test]
fn size_of_no_header_is_refused() {
    for size in
        [1, 7, size_of::<Options>() - 4, size_of::<Options>() + 1, 1 << 40, usize::MAX, usize::MAX - 7]
    {
        let options = Options { size, first: 7, second: 9 };
        // SAFETY: refused before anything beyond the structure is read.
        assert_eq!(status(unsafe { sized::<Options>(&options) }), Status::Size, "{size}");
    }
}

#[test]
fn null_is_a_status() {
    let null = Slice { data: ptr::null(), length: 3 };
    // SAFETY: NULL is allowed.
    unsafe {
        assert_eq!(status(null.bytes()), Status::Null);
        assert_eq!(Slice::default().bytes().unwrap(), b"");
        assert_eq!(status(sized::<Options>(ptr::null())), Status::Null);
        assert_eq!(status(write(ptr::null_mut(), 1)), Status::Null);
        assert_eq!(status(write_text(ptr::null_mut(), "")), Status::Null);
        assert_eq!(status(array::<u64>(ptr::null(), 2)), Status::Null);
        assert!(array::<u64>(ptr::null(), 0).unwrap().is_empty());
    }
}

#[test]
fn impossible_lengths_and_alignments_are_refused() {
    let numbers = [1u64, 2];
    let odd = numbers.as_ptr().cast::<u8>().wrapping_add(1);
    // SAFETY: refused before it is read.
    unsafe {
        assert_eq!(status(array::<u64>(odd.cast(), 1)), Status::Alignment);
        assert_eq!(status(array(numbers.as_ptr(), usize::MAX / 2)), Status::Value);
        assert_eq!(status(Slice { data: odd, length: usize::MAX }.bytes()), Status::Value);
        assert_eq!(status(Slice { data: [0xFF].as_ptr(), length: 1 }.text()), Status::Text);
    }
}

#[test]
fn text_that_does_not_fit_has_its_length() {
    let mut buffer = [1; 6];
    let mut text = |capacity| Text { buffer: buffer.as_mut_ptr(), capacity, length: 99 };
    let mut small = text(5);
    // SAFETY: the buffer has six bytes.
    assert_eq!(status(unsafe { write_text(&raw mut small, "hello") }), Status::Buffer);
    assert_eq!((small.length, buffer), (5, [1; 6]), "nothing was written");
    let mut whole = Text { buffer: buffer.as_mut_ptr(), capacity: 6, length: 99 };
    // SAFETY: as above.
    assert_eq!(status(unsafe { write_text(&raw mut whole, "hello") }), Status::Ok);
    assert_eq!((whole.length, buffer[5]), (5, 0));
    let mut none = Text { buffer: ptr::null_mut(), capacity: 0, length: 0 };
    // SAFETY: a buffer of no bytes.
    assert_eq!(status(unsafe { write_text(&raw mut none, "") }), Status::Buffer, "the NUL has no place");
}

#[test]
fn parts_are_written_one_after_the_other() {
    let mut buffer = [0; 5];
    let mut bytes = Bytes { buffer: buffer.as_mut_ptr(), capacity: 5, length: 0 };
    let parts = [&b"ab"[..], b"", b"cde"];
    // SAFETY: the buffer has five bytes.
    assert_eq!(status(unsafe { write_bytes(&raw mut bytes, parts.into_iter()) }), Status::Ok);
    assert_eq!((&buffer, bytes.length), (b"abcde", 5));
    bytes.capacity = 4;
    // SAFETY: as above.
    assert_eq!(status(unsafe { write_bytes(&raw mut bytes, parts.into_iter()) }), Status::Buffer);
    assert_eq!(bytes.length, 5);
}
