//! The ports of a server.

use serde::{Deserialize, Serialize};

/// The port of the control connection, and of the search for a server.
pub const CONTROL_PORT: u16 = 4999;
/// The port of the file and of echoes.
pub const FILE_PORT: u16 = 5001;
/// The pages' port.
pub const PAGES_PORT: u16 = 80;
/// The voice stream's port.
pub const VOICE_PORT: u16 = 4000;

/// The server's ports; zero means any free port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPorts {
    /// Control, TCP; search for a server, UDP.
    pub control: u16,
    /// The file, TCP; echoes, UDP.
    pub file: u16,
    /// Pages.
    pub pages: u16,
    /// Voice.
    pub voice: u16,
}

impl Default for ServerPorts {
    fn default() -> Self {
        Self {
            control: CONTROL_PORT,
            file: FILE_PORT,
            pages: PAGES_PORT,
            voice: VOICE_PORT,
        }
    }
}
