//! Test traffic: packets of which only the length matters, and flows between two hosts.

use std::net::Ipv4Addr;

use crate::flow::FlowKey;

/// A flow from one host to another.
pub(crate) fn flow(protocol: u8, src_port: u16, dst_port: u16) -> FlowKey {
    FlowKey {
        dscp: 0,
        protocol,
        src: Ipv4Addr::new(10, 0, 0, 1).into(),
        dst: Ipv4Addr::new(10, 0, 0, 2).into(),
        src_port,
        dst_port,
    }
}

/// Implements `Payload` for a type with the given length, without coding.
macro_rules! payload {
    ($packet:ty, $this:ident => $len:expr) => {
        impl airlane_base::Payload for $packet {
            fn len(&self) -> usize {
                let $this = self;
                $len
            }
            fn image(&self) -> impl AsRef<[u8]> {
                []
            }
            fn coded(&self, _: &[u8], _: usize) -> Self {
                self.clone()
            }
            fn recovered(&self, _: &[u8], _: usize) -> Option<Self> {
                None
            }
        }
    };
}
pub(crate) use payload;
