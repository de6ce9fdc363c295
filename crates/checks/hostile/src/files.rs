//! The live files of the ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airlane_base::config::load;
use airlane_node::config::LiveConfig;

/// The services of a file, or none for the default ones. Explicit `sr-m2` services have the options of the default
/// ones: without keepalives and repeated requests, as in the published works, a lost tail recovers by one frame per
/// timeout, and the liveness law does not hold.
pub(crate) const SERVICES: [&str; 4] = [
    "",
    "",
    "services = [{ number = 1, name = \"files\", rate = 1, scheme = { kind = \"sr-m2\", keepalives = 8, repeat-naks = true } }]\nclasses = [{ match = { protocol = \"udp\" }, service = \"files\" }]\n",
    "services = [{ number = 1, name = \"calls\", rate = 1, scheme = { kind = \"rlp-oos\" } }, \
     { number = 2, name = \"fec\", rate = 1, scheme = { kind = \"rse\", block = 4, parity = 2 } }]\n\
     classes = [{ match = { protocol = \"udp\", dst-port = 443 }, service = \"fec\" }, { match = { protocol = \"udp\" }, service = \"calls\" }]\n",
];

pub(crate) fn public(end: usize) -> SocketAddr {
    let host = Ipv4Addr::new(192, 0, 2, end as u8 + 1);
    SocketAddr::new(IpAddr::V4(host), 7007)
}

/// The file of an end. Idle ends must probe each other within the time of the liveness law, and not every 20 s.
pub(crate) fn file(
    end: usize,
    rate: &str,
    services: &str,
    peers: &[(usize, String)],
) -> Result<LiveConfig, String> {
    let last = end + 1;
    let one = match peers {
        [(peer, key)] if end > 0 || peers.len() == 1 => Some((*peer, key)),
        _ => None,
    };
    let peer = one.map_or_else(String::new, |(peer, _)| {
        format!(", peer = \"{}\"", public(peer))
    });
    let key = one.map_or_else(String::new, |(_, key)| format!(", peer-key = \"{key}\""));
    let mut text = format!(
        "schema = 1\nname = \"end-{end}\"\n[tun]\naddresses = [\"10.7.0.{last}/24\"]\n[link]\nrate = \"{rate}\"\nkeepalive = \"4 s\"\n\
         underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7007\"{peer} }}\n\
         security = {{ private-key = \"/end.key\"{key} }}\n{services}"
    );
    if one.is_none() {
        for (peer, key) in peers {
            let last = peer + 1;
            text += &format!(
                "[[peers]]\nname = \"peer-{peer}\"\nkey = \"{key}\"\nprefixes = [\"10.7.0.{last}/32\"]\n"
            );
        }
    }
    load(&text, "end.toml").map_err(|error| format!("{error}\n{text}"))
}
