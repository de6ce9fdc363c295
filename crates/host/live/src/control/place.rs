//! Checks the path of a control socket: it is free, or belongs to a node that runs, is shutting down, or was killed.
//!
//! A node that is shutting down keeps its socket until the kernel has released its interface and its port,
//! which takes a moment. It answers no requests meanwhile, so a new node of the same name waits for it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::{Request, call, is_nothing_yet};

/// Time after which the log says that the start waits: a running node normally answers sooner.
const ANSWERS: Duration = Duration::from_millis(300);
/// Time to wait after that.
const ENDS: Duration = Duration::from_millis(2_700);
/// Limit and interval of further checks after the node has closed the connection.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);

/// Removes the socket of a killed node, and waits for a node that is shutting down. Anything else at `path`
/// is left there and is an error.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    let taken = |what| Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    for _ in 0..LOOKS {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
            Ok(metadata) if !metadata.file_type().is_socket() => {
                return taken("a file of this name exists and is not a socket");
            }
            Ok(_) => {}
        }
        match call(path) {
            Ok(node) => match answers(&node, path)? {
                Answer::Here => return taken("another node of this name is running"),
                Answer::Silent => {
                    return taken("another node of this name neither answers nor ends");
                }
                Answer::HungUp => std::thread::sleep(LOOK),
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return taken("a process holds the socket but does not accept");
            }
            Err(_) => return fs::remove_file(path),
        }
    }
    taken("another node of this name does not answer")
}

/// A node's reaction to a status request.
enum Answer {
    Here,
    HungUp,
    Silent,
}

fn answers(mut node: &UnixStream, path: &Path) -> io::Result<Answer> {
    let request = Request::Status {}.to_line();
    if node.write_all(request.as_bytes()).is_err() {
        return Ok(Answer::HungUp);
    }
    for patience in [ANSWERS, ENDS] {
        node.set_read_timeout(Some(patience))?;
        match node.read(&mut [0]) {
            Ok(1..) => return Ok(Answer::Here),
            Err(error) if is_nothing_yet(&error) => {}
            Ok(0) | Err(_) => return Ok(Answer::HungUp),
        }
        if patience == ANSWERS {
            tracing::info!(socket = %path.display(), "waiting for the node of this name to end");
        }
    }
    Ok(Answer::Silent)
}
