//! The emulated link between two interfaces of a namespace.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use airlane_live::air::{self, AirConfig, AirReport};

use super::{Namespace, cable};

/// An emulator in a thread, stopped when dropped.
pub struct Air {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<AirReport>>,
}

impl Air {
    /// Starts a link of 20 Mbit/s that loses a frame in twenty between two hosts, which have 192.0.2.1 and
    /// 192.0.2.2 at their interface `wire`.
    pub fn between_hosts(delay: &str) -> (Namespace, Namespace, Self) {
        let [left, middle, right] = ["left", "middle", "right"].map(Namespace::new);
        for (host, last, end) in [(&left, 1, "one"), (&right, 2, "two")] {
            cable(host, "wire", &middle, end);
            host.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
        }
        let lossy = format!(
            r#"
schema = 1
interfaces = ["one", "two"]
rate = "20 Mbit/s"
delay = "{delay}"
queue = "125 kB"
errors = {{ kind = "uniform", rate = 0.05 }}
"#
        );
        let air = Self::start(&middle, &lossy);
        (left, right, air)
    }

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

    /// Stops it and returns its report.
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
