//! The client's side of `register` and `pull`: what a flow over the link may send.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::{ControlError, Refusal, Reloaded, Request, begin, is_nothing_yet, udp};
use crate::status::FlowOffer;

/// A flow that a node tells what it may send, for as long as this is kept.
#[derive(Debug)]
pub struct Registration {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    line: Vec<u8>,
}

/// Asks the node to tell what a UDP flow from a port of this machine may send.
///
/// # Errors
/// If no node answers there, or the flow does not go over its link.
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

/// The address that datagrams to `to` leave from.
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
    /// Waits for nothing from now on: see [`ask`](Self::ask) and [`answer`](Self::answer).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_nonblocking(&self) -> Result<(), ControlError> {
        let set = self.stream.get_ref().set_nonblocking(true);
        set.map_err(|source| self.talk(source))
    }

    /// What the flow may send. Waits for the answer.
    ///
    /// # Errors
    /// If the node is gone, or the flow does not go over its link any more.
    pub fn pull(&mut self) -> Result<FlowOffer, ControlError> {
        self.ask()?;
        match self.answer()? {
            Some(offer) => Ok(offer),
            None => Err(self.talk(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Asks what the flow may send.
    ///
    /// # Errors
    /// If the node is gone.
    pub fn ask(&self) -> Result<(), ControlError> {
        let line = Request::Pull {}.to_line();
        let asked = self.stream.get_ref().write_all(line.as_bytes());
        asked.map_err(|source| self.talk(source))
    }

    /// The answer, if there is one by now.
    ///
    /// # Errors
    /// If the node is gone, or the flow does not go over its link any more.
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
