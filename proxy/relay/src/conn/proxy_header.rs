//! The header of the PROXY protocol, versions 1 and 2, by which a load balancer names the client of a connection
//! (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>). It is read in steps that never go beyond its end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The result of reading the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// At least this many more bytes belong to the header.
    More(usize),
    /// The header is complete.
    Done(Source),
    /// The bytes are not a header.
    Invalid,
}

/// The party that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The client with this address.
    Client(IpAddr),
    /// A client whose address the load balancer does not state.
    Unknown,
    /// The load balancer itself, as in a health check.
    Balancer,
}

/// Reads a header of which these are the first bytes.
pub(crate) fn read(bytes: &[u8]) -> Step {
    if bytes.len() < START_BYTES {
        let is_start = V1.starts_with(bytes) || V2.starts_with(bytes) || bytes.starts_with(V1);
        return if is_start { Step::More(START_BYTES - bytes.len()) } else { Step::Invalid };
    }
    if bytes.starts_with(V1) { read_v1(bytes) } else { read_v2(bytes) }
}

fn read_v1(bytes: &[u8]) -> Step {
    let Some(line) = bytes.strip_suffix(b"\r\n") else {
        let least = match bytes {
            [.., b'\r'] => 1,
            // At least the rest of the shortest line with addresses is missing.
            [b'P', b'R', b'O', b'X', b'Y', b' ', b'T', ..] if bytes.len() < V1_LEAST_BYTES => {
                V1_LEAST_BYTES - bytes.len()
            }
            _ => 2,
        };
        let is_open = bytes.len() + least <= V1_MAX_BYTES && !bytes.contains(&b'\n');
        return if is_open { Step::More(least) } else { Step::Invalid };
    };
    let Ok(line) = std::str::from_utf8(line) else { return Step::Invalid };
    let mut words = line.split(' ').skip(1);
    let family = words.next();
    if family == Some("UNKNOWN") {
        return Step::Done(Source::Unknown);
    }
    let (Some(source), Some(destination)) = (words.next(), words.next()) else { return Step::Invalid };
    let mut port = || words.next().is_some_and(|port| port.parse::<u16>().is_ok());
    if !port() || !port() || words.next().is_some() {
        return Step::Invalid;
    }
    match (family, source.parse(), destination.parse()) {
        (Some("TCP4"), Ok(source @ IpAddr::V4(_)), Ok(IpAddr::V4(_)))
        | (Some("TCP6"), Ok(source @ IpAddr::V6(_)), Ok(IpAddr::V6(_))) => Step::Done(Source::Client(source)),
        _ => Step::Invalid,
    }
}

fn read_v2(bytes: &[u8]) -> Step {
    if !bytes.starts_with(&V2[..V2.len().min(bytes.len())]) {
        return Step::Invalid;
    }
    let Some((head, rest)) = bytes.split_first_chunk::<V2_HEAD_BYTES>() else {
        return Step::More(V2_HEAD_BYTES - bytes.len());
    };
    let [.., version_command, family, high, low] = *head;
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len > V2_REST_MAX_BYTES || !matches!(version_command, 0x20 | 0x21) {
        return Step::Invalid;
    }
    if rest.len() < len {
        return Step::More(len - rest.len());
    }
    // Addresses and ports of source and destination, then extensions, which are skipped.
    match (version_command, family) {
        (0x20, _) => Step::Done(Source::Balancer),
        // Families whose addresses need not be read: none, UDP, and Unix sockets. By the specification, a receiver
        // treats all of them as the first one.
        (_, 0x00 | 0x12 | 0x22 | 0x31 | 0x32) => Step::Done(Source::Unknown),
        (_, 0x11) if len >= 12 => client(rest.first_chunk::<4>().map(|ip| Ipv4Addr::from(*ip))),
        (_, 0x21) if len >= 36 => client(rest.first_chunk::<16>().map(|ip| Ipv6Addr::from(*ip))),
        _ => Step::Invalid,
    }
}

fn client(address: Option<impl Into<IpAddr>>) -> Step {
    address.map_or(Step::Invalid, |address| Step::Done(Source::Client(address.into())))
}

/// The bytes that distinguish the versions. Every header is longer.
const START_BYTES: usize = 8;

const V1: &[u8] = b"PROXY ";

/// Bytes of the longest line of version 1.
const V1_MAX_BYTES: usize = 107;

/// Bytes of the shortest line of version 1 with addresses.
const V1_LEAST_BYTES: usize = "PROXY TCP6 :: :: 1 1\r\n".len();

const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of version 2 before the addresses.
const V2_HEAD_BYTES: usize = 16;

/// Maximum bytes after them: an address takes 36, and extensions a few hundred, a TLS certificate's names included.
const V2_REST_MAX_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2, &[command, family], &len, rest].concat()
    }

    fn headers() -> Vec<(Vec<u8>, Source)> {
        let client = |address: &str| Source::Client(address.parse().unwrap());
        let (v4, v6) = (client("192.0.2.7"), client("2001:db8::7"));
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 80];
        let mut six = [0; 36];
        six[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        let extended = [&four[..], &[4, 0, 3, 1, 2, 3]].concat();
        vec![
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\n".to_vec(), v4),
            (b"PROXY TCP6 2001:db8::7 ::1 65535 0\r\n".to_vec(), v6),
            (b"PROXY TCP6 :: :: 1 1\r\n".to_vec(), client("::")),
            (b"PROXY UNKNOWN\r\n".to_vec(), Source::Unknown),
            (b"PROXY UNKNOWN what ever it is\r\n".to_vec(), Source::Unknown),
            (v2(0x21, 0x11, &four), v4),
            (v2(0x21, 0x11, &extended), v4),
            (v2(0x21, 0x21, &six), v6),
            (v2(0x20, 0x00, &[]), Source::Balancer),
            (v2(0x20, 0x11, &four), Source::Balancer),
            (v2(0x21, 0x00, &[1, 2, 3]), Source::Unknown),
            (v2(0x21, 0x12, &four), Source::Unknown),
            (v2(0x21, 0x22, &six), Source::Unknown),
            (v2(0x21, 0x31, &[b'/'; 216]), Source::Unknown),
            (v2(0x21, 0x32, &[0; 216]), Source::Unknown),
        ]
    }

    /// As a connection reads it: the bytes that a step asks for, cut anywhere.
    #[test]
    fn header_is_read_to_its_end_and_not_beyond() {
        for (header, expected) in headers() {
            for cut in 0..header.len() {
                let Step::More(more) = read(&header[..cut]) else { panic!("{header:?} at {cut}") };
                assert!(more > 0 && cut + more <= header.len(), "{header:?} at {cut}: {more}");
            }
            assert_eq!(read(&header), Step::Done(expected), "{header:?}");
        }
    }

    #[test]
    fn other_bytes_are_no_header() {
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 0x1f, 0x90, 0, 80];
        for bytes in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"G".to_vec(),
            vec![22, 3, 1, 2, 0],
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80 1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 65536\r\n".to_vec(),
            b"PROXY TCP4 2001:db8::7 ::1 8080 80\r\n".to_vec(),
            b"PROXY TCP6 192.0.2.7 10.0.0.1 8080 80\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\nGET /".to_vec(),
            [b"PROXY UNKNOWN ", &[b'x'; 100][..]].concat(),
            v2(0x11, 0x11, &four),
            v2(0x22, 0x11, &four),
            v2(0x21, 0x11, &four[..11]),
            v2(0x21, 0x13, &four),
            v2(0x21, 0x41, &[0; 216]),
            v2(0x21, 0x11, &[0; 4097]),
            [&V2[..11], b"x"].concat(),
        ] {
            assert_eq!(read(&bytes), Step::Invalid, "{}", bytes.escape_ascii());
        }
    }

    proptest::proptest! {
        #![proptest_config(chance::cases(512))]
        #[test]
        fn every_header_ends(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            for start in [V1, V2, &[]] {
                let mut header = [start, &bytes].concat();
                while let Step::More(more) = read(&header) {
                    proptest::prop_assert!(0 < more && more <= V2_REST_MAX_BYTES);
                    header.extend(std::iter::repeat_n(b'1', more));
                }
            }
        }
    }
}
