//! Networks that peers are in.

use std::net::IpAddr;

use ipnet::IpNet;

/// Some networks. An IPv4 address that came as an IPv6 one is the IPv4 address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nets(Box<[IpNet]>);

impl Nets {
    /// Reads networks as `10.0.0.0/8`, or single addresses; the error is the text that is neither.
    pub fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        texts.into_iter().map(|text| net(text.trim()).ok_or(text)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the address is in one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|net| net.contains(&address))
    }

    /// The networks as text.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(IpNet::to_string)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn net(text: &str) -> Option<IpNet> {
    match text.contains('/') {
        true => text.parse::<IpNet>().ok().map(|net| net.trunc()),
        false => text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())),
    }
}

#[cfg(test)]
#[path = "nets_tests.rs"]
mod tests;
