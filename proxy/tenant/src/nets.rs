//! Networks of peers.

use std::net::IpAddr;

use ipnet::IpNet;

/// A list of networks. An IPv4-mapped IPv6 address counts as the IPv4 address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nets(Box<[IpNet]>);

impl Nets {
    /// Reads networks such as `10.0.0.0/8`, or single addresses. The error is the invalid text.
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        texts.into_iter().map(|text| net(text.trim()).ok_or(text)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if the address is in one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|net| net.contains(&address))
    }

    /// The networks as text.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(IpNet::to_string)
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn net(text: &str) -> Option<IpNet> {
    match text.contains('/') {
        true => text.parse::<IpNet>().ok().and_then(canonical).map(|net| net.trunc()),
        false => text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())),
    }
}

/// Converts a network of IPv4-mapped addresses to the IPv4 network, since peers are compared as such. `None`
/// if it includes other addresses.
fn canonical(net: IpNet) -> Option<IpNet> {
    let IpAddr::V4(address) = net.addr().to_canonical() else { return Some(net) };
    let bits = match net {
        IpNet::V4(net) => net.prefix_len(),
        IpNet::V6(net) => net.prefix_len().checked_sub(MAPPED_BITS)?,
    };
    IpNet::new(address.into(), bits).ok()
}

/// Bits before the IPv4 address in an IPv6 one (`::ffff:0:0/96`, RFC 4291 §2.5.5.2).
const MAPPED_BITS: u8 = 96;

#[cfg(test)]
#[path = "nets_tests.rs"]
mod tests;
