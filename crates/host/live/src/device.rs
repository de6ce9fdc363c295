//! Errors of network devices, with the operation that failed.

use std::io;

/// The operation that opens the TUN device.
pub(crate) const TUN_DEVICE: &str = "open /dev/net/tun";

/// The operation that gives a socket its address and port.
pub(crate) const BIND: &str = "bind";
/// The operation that accepts connections at an address and port.
pub(crate) const LISTEN: &str = "listen";

/// A failed operation on a network device.
#[derive(Debug, thiserror::Error)]
#[error("{device}: {call}: {source}{hint}", hint = hint(.call, .source))]
#[non_exhaustive]
pub struct DeviceError {
    /// Name of the device.
    pub device: String,
    /// The operation.
    pub call: &'static str,
    /// The system's error.
    pub source: io::Error,
}

impl DeviceError {
    /// Creates an error of `call` on `device`.
    pub fn new(device: &str, call: &'static str, source: impl Into<io::Error>) -> Self {
        Self {
            device: device.to_owned(),
            call,
            source: source.into(),
        }
    }
}

/// Whether the error means that the interface is down or gone.
pub(crate) fn says_interface_is_away(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV)
    )
}

fn hint(call: &str, source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) if call == TUN_DEVICE => {
            " (`modprobe tun` makes it where the kernel has it as a module; a container needs \
             `--device /dev/net/tun --cap-add NET_ADMIN`)"
        }
        Some(libc::EEXIST) => " (it is there already: `ip address` and `ip route` show who has it)",
        Some(libc::EADDRINUSE) if matches!(call, BIND | LISTEN) => {
            " (another program has this port: `ss -lptun` shows which; end that, or name another port)"
        }
        Some(libc::EADDRNOTAVAIL) if matches!(call, BIND | LISTEN) => {
            " (no interface has this address: `ip address` lists those that exist)"
        }
        Some(libc::EBUSY) => {
            " (the name is taken: `ip link` shows by what; stop that, or write another tun.name)"
        }
        Some(libc::EACCES) if matches!(call, BIND | LISTEN) => {
            " (ports below 1024 need root or CAP_NET_BIND_SERVICE)"
        }
        Some(libc::EACCES) => {
            " (the user that the program runs as may not open it: give it to that user with `chown`, or run as root \
             without --user)"
        }
        Some(libc::EPERM) => " (run it as root, or grant CAP_NET_ADMIN and CAP_NET_RAW)",
        Some(libc::ENODEV | libc::ENXIO) => " (`ip link` lists the interfaces that exist here)",
        // A TUN device returns this when its interface has been deleted.
        Some(libc::EBADFD) => " (the interface was taken away)",
        _ => "",
    }
}
