//! Client side of `register` and `pull`: what a flow over the link may send.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::{ControlError, Refusal, Reloaded, Request, begin, is_nothing_yet, udp};
use crate::status::FlowOffer;

/// A registered flow. Dropping it ends the registration.
#[derive(Debug)]
pub struct Registration {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    line: Vec<u8>,
}

/// Registers a UDP flow from a port of this machine, to ask what it may send.
///
/// # Errors
/// If no node answers there, or the flow is not routed over its link.
pub fn register(path: &Path, port: u16, to: SocketAddr) -> Result<Registration, ControlError> {
    let to = SocketAddr::new(to.ip().to_canonical(), to.port());
    let from = source_toward(to).map_err(|source| ControlError::Refused {
        path: path.to_owned(),
        error: format!("{} cannot be reached from here: {source}", to.ip()),
    })?;
    let from = SocketAddr::new(from, port);
    let protocol = udp();
    let request = Request::Register { from, to, protocol };
    let (Reloaded { .. }, stream) = begin(path, &request)?;
    Ok(Registration {
        stream,
        path: path.to_owned(),
        line: Vec::new(),
    })
}

/// The source address of datagrams to `to`.
fn source_toward(to: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = match to.is_ipv4() {
        true => (Ipv4Addr::UNSPECIFIED, 0).into(),
        false => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

impl Registration {
    /// Makes calls return at once from now on: see [`ask`](Self::ask) and [`answer`](Self::answer).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_nonblocking(&self) -> Result<(), ControlError> {
        let set = self.stream.get_ref().set_nonblocking(true);
        set.map_err(|source| self.talk(source))
    }

    /// Asks what the flow may send, and waits for the answer.
    ///
    /// # Errors
    /// If the connection to the node is lost, or the flow is no longer routed over its link.
    pub fn pull(&mut self) -> Result<FlowOffer, ControlError> {
        self.ask()?;
        match self.answer()? {
            Some(offer) => Ok(offer),
            None => Err(self.talk(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Sends the question what the flow may send.
    ///
    /// # Errors
    /// If the connection to the node is lost.
    pub fn ask(&self) -> Result<(), ControlError> {
        let line = Request::Pull {}.to_line();
        let asked = self.stream.get_ref().write_all(line.as_bytes());
        asked.map_err(|source| self.talk(source))
    }

    /// The answer, if it has arrived.
    ///
    /// # Errors
    /// If the connection to the node is lost, or the flow is no longer routed over its link.
    pub fn answer(&mut self) -> Result<Option<FlowOffer>, ControlError> {
        match self.stream.read_until(b'\n', &mut self.line) {
            Ok(0) => return Err(self.talk(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) if self.line.ends_with(b"\n") => {}
            Ok(_) => return Ok(None),
            Err(error) if is_nothing_yet(&error) => return Ok(None),
            Err(error) => return Err(self.talk(error)),
        }
        let line = std::mem::take(&mut self.line);
        let path = || self.path.clone();
        if let Ok(Refusal { error }) = serde_json::from_slice(&line) {
            return Err(ControlError::Refused {
                path: path(),
                error,
            });
        }
        let offer = serde_json::from_slice(&line);
        offer.map(Some).map_err(|source| ControlError::Answer {
            path: path(),
            source,
        })
    }

    fn talk(&self, source: io::Error) -> ControlError {
        ControlError::Talk {
            path: self.path.clone(),
            source,
        }
    }
}
