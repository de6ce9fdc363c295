//! Resolves host names in separate threads, because the system's resolver may block for long.
//!
//! Invariant: the loop never waits; it sends a request, is woken by the descriptor, and takes the answer.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use crate::config::HostPort;
use crate::device::DeviceError;
use crate::privileges;

/// A resolver of host names.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, the best first.
    ///
    /// # Errors
    /// If there is no such host, or no server answers.
    fn resolve(&self, host: &HostPort) -> io::Result<Vec<SocketAddr>>;
}

/// The system's resolver: `/etc/hosts`, DNS and the other sources in `nsswitch.conf`, sorted by RFC 6724.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &HostPort) -> io::Result<Vec<SocketAddr>> {
        Ok((host.host.as_str(), host.port).to_socket_addrs()?.collect())
    }
}

/// The addresses of a host, or the error.
pub(crate) type Resolved = (HostPort, io::Result<Vec<SocketAddr>>);

/// Resolves names until it is dropped, each in its own thread, so that a slow one delays no other. Each name
/// has at most one lookup in progress, so there are no more threads than names.
pub(crate) struct Resolver {
    by: Arc<dyn Resolve>,
    /// Lookups in progress.
    asked: Vec<HostPort>,
    answer: Sender<Resolved>,
    answers: Receiver<Resolved>,
    wake: Arc<UnixStream>,
    woken: UnixStream,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("asked", &self.asked)
            .finish()
    }
}

impl Resolver {
    /// Starts the resolver.
    ///
    /// # Errors
    /// If the sockets cannot be created.
    pub(crate) fn start(by: Arc<dyn Resolve>) -> Result<Self, DeviceError> {
        let failed = |call| move |source| DeviceError::new("resolver", call, source);
        let (woken, wake) = UnixStream::pair().map_err(failed("make a pair of sockets"))?;
        for end in [&woken, &wake] {
            end.set_nonblocking(true)
                .map_err(failed("set nonblocking"))?;
        }
        let (answer, answers) = mpsc::channel();
        Ok(Self {
            by,
            asked: Vec::new(),
            answer,
            answers,
            wake: Arc::new(wake),
            woken,
        })
    }

    /// Starts a lookup, unless one for this host is in progress.
    pub(crate) fn ask(&mut self, host: HostPort) {
        if self.asked.contains(&host) {
            return;
        }
        self.asked.push(host.clone());
        let (by, answer, wake) = (
            Arc::clone(&self.by),
            self.answer.clone(),
            Arc::clone(&self.wake),
        );
        let question = host.clone();
        let thread = std::thread::Builder::new().name("resolver".to_owned());
        // The thread is detached.
        let begun = thread.spawn(move || {
            privileges::give_up_all();
            let found = by.resolve(&question);
            let _nobody_asks_any_more = answer.send((question, found));
            // If the socket's buffer is full, the loop is woken anyway.
            let _woken_anyway = (&*wake).write(&[0]);
        });
        if let Err(error) = begun {
            let _it_is_here = self.answer.send((host, Err(error)));
            let _woken_anyway = (&*self.wake).write(&[0]);
        }
    }

    /// The next answer, if there is one. After `None`, the next answer makes the descriptor readable.
    pub(crate) fn poll(&mut self) -> Option<Resolved> {
        let answer = self.answers.try_recv().or_else(|_| {
            let _woken_for_all = self.woken.read(&mut [0; 4096]);
            // An answer may have arrived in between.
            self.answers.try_recv()
        });
        let answer = answer.ok()?;
        self.asked.retain(|host| *host != answer.0);
        Some(answer)
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags};

    fn wait_for(resolver: &mut Resolver) -> Resolved {
        loop {
            // An answer that is there already may not make the descriptor readable.
            if let Some(answer) = resolver.poll() {
                return answer;
            }
            let mut fds = [PollFd::new(&*resolver, PollFlags::IN)];
            rustix::event::poll(&mut fds, None).unwrap();
        }
    }

    #[test]
    fn localhost_resolves_and_invalid_names_do_not() {
        let mut resolver = Resolver::start(Arc::new(SystemResolver)).unwrap();
        resolver.ask("localhost:7007".parse().unwrap());
        let (host, found) = wait_for(&mut resolver);
        assert_eq!(host.to_string(), "localhost:7007");
        let found = found.unwrap();
        assert!(!found.is_empty());
        for address in found {
            assert!(
                address.ip().is_loopback() && address.port() == 7007,
                "{address}"
            );
        }
        // RFC 6761, section 6.4.
        resolver.ask("gate.invalid:7007".parse().unwrap());
        assert!(wait_for(&mut resolver).1.is_err());
    }

    /// Answers at once, except for one name, which blocks until released.
    struct Slow(std::sync::Mutex<Receiver<()>>);

    impl Resolve for Slow {
        fn resolve(&self, host: &HostPort) -> io::Result<Vec<SocketAddr>> {
            if host.host == "slow" {
                let _told = self.0.lock().unwrap().recv();
            }
            Ok(vec![SocketAddr::from(([192, 0, 2, 1], host.port))])
        }
    }

    #[test]
    fn a_slow_name_delays_no_other_and_is_looked_up_once() {
        let (go_on, waits) = mpsc::channel();
        let by = Arc::new(Slow(std::sync::Mutex::new(waits)));
        let mut resolver = Resolver::start(by).unwrap();
        assert!(resolver.poll().is_none());
        for _ in 0..3 {
            resolver.ask("slow:1".parse().unwrap());
        }
        for port in 2..=50 {
            resolver.ask(format!("gate:{port}").parse().unwrap());
        }
        let mut ports: Vec<_> = (2..=50)
            .map(|_| {
                let (host, found) = wait_for(&mut resolver);
                assert_eq!(found.unwrap()[0].port(), host.port);
                host.port
            })
            .collect();
        ports.sort_unstable();
        assert!(ports.into_iter().eq(2..=50), "each once");
        go_on.send(()).unwrap();
        assert_eq!(wait_for(&mut resolver).0.port, 1);
        assert!(resolver.poll().is_none(), "nobody asked twice");
        assert!(resolver.asked.is_empty());
    }
}
