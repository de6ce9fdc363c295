//! The addresses at which verbs listen.

use std::net::SocketAddr;

use airlane_base::config::ADDRESS_HELP;

/// An address with its port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|error| format!("{error}; {ADDRESS_HELP}"))
}
