//! What client and server say to each other: one line of JSON there, one back, twice.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Plan;
use super::voice::Arrivals;

/// From the client: what to do and when.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) plan: Plan,
    /// Congestion control of the server's TCP connections.
    pub(super) congestion_control: String,
    pub(super) voice: bool,
}

/// From the server, at once.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Accepted {
    /// What the server's sockets really use.
    pub(super) congestion_control: Result<String, String>,
}

/// From the server, after the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerResult {
    /// Voice packets sent to the client in the measuring period.
    pub(super) voice_sent: u64,
    /// Voice packets of the client that arrived.
    pub(super) voice_arrivals: Arrivals,
}

/// A control connection with lines of JSON.
pub(super) struct Control {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Control {
    /// Takes over a connection whose timeouts are set.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            reader: BufReader::new(stream.try_clone()?),
            writer: stream,
        })
    }

    pub(super) fn say(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        self.writer.write_all(line.as_bytes())
    }

    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}
