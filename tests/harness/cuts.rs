//! Ways to pass a body to the scanner. For any cut and any line ends, the scanner must report the same.

use scan::{Dialect, Framing, Scanner};

use crate::Seen;
use crate::seen::Again;

/// Steps in which every body is read; the last is the whole body.
pub const STEPS: [usize; 5] = [1, 7, 64, 1000, usize::MAX];

/// Scans `body` in slices of `step` bytes.
pub fn in_steps(dialect: Dialect, framing: Framing, body: &[u8], step: usize) -> Seen {
    scan_slices(dialect, framing, body.chunks(step))
}

/// Scans `body` in two slices.
pub fn cut_at(dialect: Dialect, framing: Framing, body: &[u8], at: usize) -> Seen {
    let (head, tail) = body.split_at(at);
    scan_slices(dialect, framing, [head, tail].into_iter())
}

/// Scans the slices, and checks that each byte is read once.
pub fn scan_slices<'a>(dialect: Dialect, framing: Framing, slices: impl Iterator<Item = &'a [u8]>) -> Seen {
    let (mut seen, mut fed, mut count) = (Seen::default(), 0, 0);
    let mut scanner = Scanner::new(dialect, framing);
    for slice in slices {
        fed += slice.len() as u64;
        count += 1;
        scanner.feed(slice, &mut seen);
    }
    seen.tail = Some(scanner.end(&mut seen));
    seen.model = scanner.names().model().to_owned();
    seen.id = scanner.names().id().to_owned();
    seen.tier = scanner.names().tier().to_owned();
    let work = scanner.work();
    assert_eq!(work.fed, fed);
    // One byte more: the end of a data line is read as a line end and walked as white space.
    assert!(work.walked + work.matched <= fed + 1, "read twice: {work:?} in {count} slices");
    seen
}

/// Returns true if `body` in two slices gives `seen`; allocates nothing.
fn says_again(dialect: Dialect, framing: Framing, body: &[u8], at: usize, seen: &Seen) -> bool {
    let mut again = Again::expect(seen);
    let mut scanner = Scanner::new(dialect, framing);
    scanner.feed(&body[..at], &mut again);
    scanner.feed(&body[at..], &mut again);
    let tail = scanner.end(&mut again);
    let same = again.is_same() && Some(tail) == seen.tail;
    same && scanner.names().model() == seen.model
        && scanner.names().id() == seen.id
        && scanner.names().tier() == seen.tier
}

/// Returns the first difference between scanning `body` whole and in any other way: in steps, at the given cuts, and
/// for frames in lines with other line ends.
pub fn difference(
    dialect: Dialect,
    framing: Framing,
    body: &[u8],
    cuts: impl Iterator<Item = usize>,
) -> Result<Seen, String> {
    let whole = in_steps(dialect, framing, body, usize::MAX);
    let check = |seen: Seen, how: String| match seen == whole {
        true => Ok(()),
        false => Err(format!("{how}:\n{}", first_difference(&whole, &seen))),
    };
    for step in STEPS {
        check(in_steps(dialect, framing, body, step), format!("in steps of {step}"))?;
    }
    for at in cuts {
        if says_again(dialect, framing, body, at, &whole) {
            continue;
        }
        check(cut_at(dialect, framing, body, at), format!("cut at {at}"))?;
    }
    for (name, other) in line_ends(framing, body) {
        for step in STEPS {
            check(in_steps(dialect, framing, &other, step), format!("{name} in steps of {step}"))?;
        }
    }
    Ok(whole)
}

/// The body with other line ends, if its framing has lines and it has only LF.
pub fn line_ends(framing: Framing, body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    if framing != Framing::Sse || body.contains(&b'\r') {
        return Vec::new();
    }
    let with = |end: &[u8]| body.split(|&b| b == b'\n').collect::<Vec<_>>().join(end);
    vec![("CRLF", with(b"\r\n")), ("CR", with(b"\r"))]
}

/// Describes the first difference of two results.
pub fn first_difference(left: &Seen, right: &Seen) -> String {
    let at = left.calls.iter().zip(&right.calls).take_while(|(a, b)| a == b).count();
    format!(
        "at {at}: {:?} and {:?}; model {:?} and {:?}; id {:?} and {:?}; tier {:?} and {:?}; tail {:?} and {:?}",
        left.calls.get(at),
        right.calls.get(at),
        left.model,
        right.model,
        left.id,
        right.id,
        left.tier,
        right.tier,
        left.tail,
        right.tail
    )
}
