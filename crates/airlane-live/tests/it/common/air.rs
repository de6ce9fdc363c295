//! The emulated link between two interfaces of a namespace.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use airlane_live::air::{self, AirConfig, AirReport};

use super::Namespace;

/// An emulator in a thread of its own, until it is dropped.
pub struct Air {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<AirReport>>,
}

impl Air {
    /// Starts it from the text of its file.
    pub fn start(namespace: &Namespace, text: &str) -> Self {
        let config: AirConfig = airlane_base::config::load(text, "air.toml").unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = namespace.thread(move || air::run(&config, stopped.as_fd()).unwrap());
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Stops it and gives what it delivered.
    pub fn stop(mut self) -> AirReport {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _report = thread.join();
        }
    }
}
