//! Addresses that reach the process' own listeners.

use std::net::{IpAddr, SocketAddr};

use connect::Address;

use super::reaches;
use crate::plan::machine::Machine;

/// A machine whose own address is 10.0.0.7 and whose name server knows three names.
struct Lan;

impl Machine for Lan {
    fn cores(&self) -> usize {
        4
    }

    fn resolve(&self, host: &str) -> Vec<IpAddr> {
        match host {
            "localhost" => vec!["::1".parse().unwrap(), "127.0.0.1".parse().unwrap()],
            "myself" => vec!["10.0.0.7".parse().unwrap()],
            "gpu" => vec!["10.0.0.9".parse().unwrap()],
            _ => Vec::new(),
        }
    }

    fn owns(&self, address: IpAddr) -> bool {
        ["10.0.0.7", "127.0.0.1", "::1"].contains(&address.to_string().as_str())
    }

    fn host(&self) -> String {
        "node-1".to_owned()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn variables(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn own_listener_is_found_by_every_address() {
    for (host, port, own, found) in [
        ("127.0.0.1", 9800, "127.0.0.1:9800", true),
        ("localhost", 9800, "127.0.0.1:9800", true),
        ("localhost", 9800, "[::1]:9800", true),
        ("0.0.0.0", 9800, "127.0.0.1:9800", true),
        ("::", 9800, "127.0.0.1:9800", true),
        ("::ffff:127.0.0.1", 9800, "127.0.0.1:9800", true),
        ("127.0.0.1", 9800, "0.0.0.0:9800", true),
        ("::1", 9800, "0.0.0.0:9800", true),
        ("127.0.0.1", 9800, "[::]:9800", true),
        ("10.0.0.7", 9800, "0.0.0.0:9800", true),
        ("myself", 9800, "0.0.0.0:9800", true),
        ("myself", 9800, "10.0.0.7:9800", true),
        ("0.0.0.0", 9800, "0.0.0.0:9800", true),
        ("127.0.0.1", 8000, "127.0.0.1:9800", false),
        ("127.0.0.2", 9800, "127.0.0.1:9800", false),
        ("10.0.0.7", 9800, "127.0.0.1:9800", false),
        ("0.0.0.0", 9800, "10.0.0.7:9800", false),
        ("gpu", 9800, "0.0.0.0:9800", false),
        ("unknown", 9800, "0.0.0.0:9800", false),
        ("127.0.0.1", 0, "127.0.0.1:0", false),
    ] {
        let own: SocketAddr = own.parse().unwrap();
        let reached = reaches(&Lan, &Address::host(host, port), [own].iter());
        assert_eq!(reached, found.then_some(own), "{host}:{port} and {own}");
    }
}

#[test]
fn unix_socket_is_no_listener() {
    let own: SocketAddr = "127.0.0.1:9800".parse().unwrap();
    let socket = Address::Unix(std::path::Path::new("/run/vllm.sock").into());
    assert_eq!(reaches(&Lan, &socket, [own].iter()), None);
}

#[test]
fn reached_listener_is_returned() {
    let own: Vec<SocketAddr> = ["127.0.0.1:9800", "127.0.0.1:9464"].map(|own| own.parse().unwrap()).into();
    assert_eq!(reaches(&Lan, &Address::host("localhost", 9464), own.iter()), Some(own[1]));
}
