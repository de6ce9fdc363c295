//! Why a peer does not answer: it is down, one end has a wrong key, or something on the way drops datagrams.
//!
//! A node never answers a caller with a wrong key, but it makes calls of its own, and those show the cause.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use airlane_secure::PeerAddress;

use super::findings::NO_WAY_HELP;
use crate::netlink::way_out;
use crate::status::{CallFault, CallerReport};

/// Time for an ICMP port unreachable message.
const A_MOMENT: std::time::Duration = std::time::Duration::from_secs(1);

/// Examines this machine and the network: why a peer has never answered, and a remedy.
pub(super) type Look<'a> = &'a dyn Fn(&str, PeerAddress) -> Option<(String, String)>;

/// Whether there is a route to the peer, and whether its port is open.
pub(super) fn look(who: &str, address: PeerAddress) -> Option<(String, String)> {
    if let Some(Err(why)) = address.ip().map(|ip| way_out(ip, 0)) {
        return Some((
            format!("there is no way to {who}: {why}"),
            NO_WAY_HELP.to_owned(),
        ));
    }
    if is_kept_in(address) {
        return Some(kept_in(who));
    }
    nobody_listens(address).then(|| {
        let help = "start `airlane up` there, or correct the port here".to_owned();
        (format!("nobody listens where {who} should be"), help)
    })
}

/// Why a peer has never answered, as far as its own calls and a look show, and a remedy.
pub(super) fn cause(
    who: &str,
    address: Option<PeerAddress>,
    callers: &[CallerReport],
    ours: Option<&str>,
    look: Look<'_>,
) -> (String, String) {
    let seen = || address.and_then(|address| look(who, address));
    if let Some(known) = called(address, callers, ours).or_else(seen) {
        return known;
    }
    let first = ours.map_or("", |key| key.get(..8).unwrap_or(key));
    match (address, ours) {
        (None, _) => (
            format!("{who} has not called yet"),
            format!("is `airlane up` running there, with this end's address and its key ({first}...) as peer-key?"),
        ),
        (Some(_), None) => (
            format!("nothing was heard from {who}"),
            "is `airlane up` running there, with this end's address as its peer, and do firewalls let both \
             directions through?"
                .to_owned(),
        ),
        (Some(_), Some(_)) => (
            format!("no answer from {who}"),
            format!(
                "is `airlane up` running there, and do firewalls let both directions through? If its log says that \
                 {first}... calls, its peer-key is another; if it counts secure-mac, the key here is not its own; if \
                 secure-preshared, one end alone has a pre-shared key"
            ),
        ),
    }
}

/// Why a call from the peer's address was refused, and a remedy.
pub(super) fn called(
    address: Option<PeerAddress>,
    callers: &[CallerReport],
    ours: Option<&str>,
) -> Option<(String, String)> {
    // A NAT may have changed the port.
    let near = |caller: &&CallerReport| match (address.map(|a| a.ip()), caller.address.ip()) {
        (None, _) => true,
        (Some(expected), called) => expected == called,
    };
    let caller = callers.iter().find(near)?;
    let help = match caller.why {
            CallFault::UnknownKey => {
                "write the key here that `airlane keygen --public` prints there, unless another host is there"
                    .to_owned()
            }
            CallFault::OtherKey => format!(
                "its peer-key has to be {}, or the private key of this end is not the one that it knows",
                ours.unwrap_or("the public key of this end")
            ),
            CallFault::Ourselves => {
                "write the address of the other end here; where both are behind one translator, the one inside".to_owned()
            }
            CallFault::OtherPreshared => {
                "name the same preshared-key in both files, a copy of one file with the same text, or none in either"
                    .to_owned()
            }
            CallFault::WithoutKeys | CallFault::WithKeys => {
                "write keys in both files, as `airlane setup` does, or security = \"none\" in both".to_owned()
            }
            CallFault::OtherAddress => {
                "write that address here, or give both ends keys, by which they know each other".to_owned()
            }
        };
    Some((caller.says(address.is_some()), help))
}

/// The finding about a packet filter of this machine.
pub(super) fn kept_in(who: &str) -> (String, String) {
    (
        format!("a packet filter of this machine lets nothing out to {who}"),
        "`nft list ruleset` or `iptables -S OUTPUT` show the rules; let UDP out from this port and to its"
            .to_owned(),
    )
}

/// Whether a packet filter of this machine refuses datagrams from any port to the address: "Operation not permitted".
pub(super) fn is_kept_in(address: PeerAddress) -> bool {
    say_nothing(address).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether the peer's machine reports that the port is closed. The error arrives only on a connected socket.
pub(super) fn nobody_listens(address: PeerAddress) -> bool {
    let asked = say_nothing(address).and_then(|socket| socket.recv(&mut [0]));
    asked.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Sends an empty datagram to the address. No protocol has one, so a node there takes it for this look, and neither
/// for a fault nor for a caller.
fn say_nothing(address: PeerAddress) -> io::Result<UdpSocket> {
    let PeerAddress::Udp(address) = address else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(A_MOMENT))?;
    socket.send(&[])?;
    Ok(socket)
}

pub(super) fn who(name: &str, address: Option<PeerAddress>) -> String {
    match address {
        Some(address) => format!("{name} at {address}"),
        None => format!("{name} (wherever it is)"),
    }
}
