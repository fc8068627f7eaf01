//! Which addresses may be connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses strangers may make this service connect to.
///
/// By default none that leads back to this machine, into a private network, or nowhere: it would let a URL in an
/// event reach what only stands behind a firewall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    allow_private: bool,
}

/// Networks that are not the public internet: first address, bits.
///
/// The IANA registries of special-purpose addresses, without those that are globally reachable.
const V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),       // this network; 0.0.0.0 reaches this machine
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // shared behind carrier NAT
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, cloud metadata
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 88, 99, 0], 24),  // relays of 6to4, out of use
    ([192, 168, 0, 0], 16),  // private
    ([198, 18, 0, 0], 15),   // benchmarks
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// The same for IPv6. Those that hold an IPv4 address are refused whole: what comes out at
/// the other end is not ours to know.
const V6: &[([u16; 8], u32)] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0], 96), // unspecified, loopback, v4-compatible
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), // v4-mapped
    ([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), // v4-translated
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), // NAT64
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), // NAT64, local
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64), // discard
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), // Teredo
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), // 6to4
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), // unique local
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), // link-local
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), // site-local, out of use
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), // multicast
];

impl AddressPolicy {
    /// Only addresses of the public internet.
    pub const fn public_only() -> Self {
        Self { allow_private: false }
    }

    /// Every address. For tests, and for services whose git servers are in their own network.
    pub const fn any() -> Self {
        Self { allow_private: true }
    }

    /// Whether this address may be connected to.
    pub fn allows(self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !V4.iter().any(|(first, bits)| {
            let first = Ipv4Addr::from(*first).to_bits();
            (address.to_bits() ^ first) >> (32 - bits) == 0
        }),
        IpAddr::V6(address) => !V6.iter().any(|(first, bits)| {
            let first = Ipv6Addr::from(*first).to_bits();
            (address.to_bits() ^ first) >> (128 - bits) == 0
        }),
    }
}
