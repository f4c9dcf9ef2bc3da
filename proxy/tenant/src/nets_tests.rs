//! Which texts are networks, and which addresses are in them.

use super::Nets;

#[test]
fn addresses_are_in_networks_whichever_way_they_came() {
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
fn what_is_no_network_is_told() {
    for wrong in ["", "10.0.0.0/33", "10.0.0", "localhost", "10.0.0.0/8,", "::/129", "10.0.0.1:80"] {
        assert_eq!(Nets::read(["10.0.0.0/8", wrong]), Err(wrong));
    }
}
