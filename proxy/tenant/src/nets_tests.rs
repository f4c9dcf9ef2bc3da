//! Valid networks, and the addresses in them.

use super::Nets;

#[test]
fn mapped_addresses_count_as_ipv4() {
    let nets = Nets::read(["10.0.0.0/8", " 192.0.2.7 ", "2001:db8::/32", "::1", "172.16.5.5/12"]).unwrap();
    for (address, inside) in [
        ("10.255.255.255", true),
        ("11.0.0.0", false),
        ("192.0.2.7", true),
        ("192.0.2.8", false),
        ("::ffff:10.0.0.1", true),
        ("::ffff:11.0.0.1", false),
        ("2001:db8:1::", true),
        ("2001:db9::", false),
        ("::1", true),
        ("::2", false),
        ("172.31.0.1", true),
        ("0.0.0.0", false),
    ] {
        assert_eq!(nets.contains(address.parse().unwrap()), inside, "{address}");
    }
    assert!(!Nets::default().contains("127.0.0.1".parse().unwrap()));
}

#[test]
fn mapped_networks_count_as_ipv4() {
    for (text, read) in [
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:192.0.2.7/128", "192.0.2.7/32"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("::/0", "::/0"),
    ] {
        let nets = Nets::read([text]).unwrap();
        assert_eq!(nets.texts().collect::<Vec<_>>(), [read], "{text}");
    }
    let nets = Nets::read(["::ffff:10.0.0.0/104"]).unwrap();
    for (address, inside) in [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("11.0.0.1", false)] {
        assert_eq!(nets.contains(address.parse().unwrap()), inside, "{address}");
    }
}

#[test]
fn an_invalid_network_is_returned() {
    for wrong in [
        "::ffff:10.0.0.0/95",
        "",
        "10.0.0.0/33",
        "10.0.0",
        "localhost",
        "10.0.0.0/8,",
        "::/129",
        "10.0.0.1:80",
    ] {
        assert_eq!(Nets::read(["10.0.0.0/8", wrong]), Err(wrong));
    }
}
