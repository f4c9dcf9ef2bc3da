//! Headers of the PROXY protocol: read in the steps for which the reader asks, any bytes give the same as by the oracle,
//! and no step goes beyond the header's end.

#![no_main]

#[path = "../../../proxy/relay/src/conn/proxy_header.rs"]
mod proxy_header;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use proxy_header::{Source, Step, read};

fuzz_target!(|data: &[u8]| {
    let header = found(data);
    assert_eq!(header, naive(data));
    let Some((len, _)) = header else { return };
    for cut in 0..len {
        match read(&data[..cut]) {
            Step::More(more) => assert!(more > 0 && cut + more <= len, "{more} bytes at {cut} of {len}"),
            other => panic!("{other:?} at {cut} of {len}"),
        }
    }
});

/// Returns the header's length and what it states, if the bytes begin with one.
fn found(data: &[u8]) -> Option<(usize, Source)> {
    let mut len = 0;
    loop {
        match read(&data[..len]) {
            Step::Done(source) => return Some((len, source)),
            Step::Invalid => return None,
            Step::More(more) => {
                assert!(more > 0, "the reader stands still at {len}");
                len += more;
            }
        }
        if len > data.len() {
            return None;
        }
    }
}

/// Reads the header at once.
fn naive(data: &[u8]) -> Option<(usize, Source)> {
    if data.starts_with(b"PROXY ") {
        // A line has at most 107 bytes.
        let end = data.windows(2).take(106).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&data[..end]).ok().filter(|line| !line.contains('\n'))?;
        let source = match line.split(' ').collect::<Vec<_>>()[..] {
            ["PROXY", "UNKNOWN", ..] => Source::Unknown,
            ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, from, to] => {
                let (source, destination): (IpAddr, IpAddr) =
                    (source.parse().ok()?, destination.parse().ok()?);
                from.parse::<u16>().and(to.parse::<u16>()).ok()?;
                if [source, destination].iter().any(|ip| ip.is_ipv4() != (family == "TCP4")) {
                    return None;
                }
                Source::Client(source)
            }
            _ => return None,
        };
        return Some((end + 2, source));
    }
    let [command, family, high, low, rest @ ..] = data.strip_prefix(b"\r\n\r\n\0\r\nQUIT\n")? else {
        return None;
    };
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    let addresses = rest.get(..len).filter(|_| len <= 4096)?;
    let source = match (command, family, len) {
        (0x20, ..) => Source::Balancer,
        (0x21, 0x00 | 0x12 | 0x22 | 0x31 | 0x32, _) => Source::Unknown,
        (0x21, 0x11, 12..) => Source::Client(Ipv4Addr::from(*addresses.first_chunk::<4>()?).into()),
        (0x21, 0x21, 36..) => Source::Client(Ipv6Addr::from(*addresses.first_chunk::<16>()?).into()),
        _ => return None,
    };
    Some((16 + len, source))
}
