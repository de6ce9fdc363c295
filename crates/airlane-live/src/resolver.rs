//! Addresses of hosts by their names, asked for in a thread of its own: the system's resolver may take its
//! time, and the loop has none.
//!
//! Invariant: the loop never waits; it asks, is woken by its descriptor, and takes the answer.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};

use crate::config::HostPort;
use crate::device::DeviceError;
use crate::privileges;

/// Whoever knows the addresses of hosts.
pub trait Resolve: Send + 'static {
    /// The addresses of a host, the best first.
    ///
    /// # Errors
    /// If there is no such host, or nobody could be asked.
    fn resolve(&mut self, host: &HostPort) -> io::Result<Vec<SocketAddr>>;
}

/// The system's own resolver: `/etc/hosts`, DNS and what else `nsswitch.conf` names, in the order of RFC 6724.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&mut self, host: &HostPort) -> io::Result<Vec<SocketAddr>> {
        Ok((host.host.as_str(), host.port).to_socket_addrs()?.collect())
    }
}

/// What was found for a host, or why nothing was.
pub(crate) type Resolved = (HostPort, io::Result<Vec<SocketAddr>>);

/// A thread that looks names up, one after the other, until this is dropped.
#[derive(Debug)]
pub(crate) struct Resolver {
    questions: Sender<HostPort>,
    answers: Receiver<Resolved>,
    woken: UnixStream,
}

impl Resolver {
    /// # Errors
    /// If the operating system gives no thread.
    pub(crate) fn start(mut by: Box<dyn Resolve>) -> Result<Self, DeviceError> {
        let failed = |call| move |source| DeviceError::new("resolver", call, source);
        let (woken, mut wake) = UnixStream::pair().map_err(failed("make a pair of sockets"))?;
        for end in [&woken, &wake] {
            end.set_nonblocking(true)
                .map_err(failed("set nonblocking"))?;
        }
        let (questions, asked) = mpsc::channel::<HostPort>();
        let (answer, answers) = mpsc::channel();
        // Nobody waits for its end: it may be in the middle of a question that takes half a minute.
        std::thread::Builder::new()
            .name("resolver".to_owned())
            .spawn(move || {
                privileges::give_up_all();
                for host in asked {
                    let found = by.resolve(&host);
                    if answer.send((host, found)).is_err() {
                        return;
                    }
                    // A full buffer wakes as well.
                    let _woken_anyway = wake.write(&[0]);
                }
            })
            .map_err(failed("start a thread"))?;
        Ok(Self {
            questions,
            answers,
            woken,
        })
    }

    /// Has a host looked up. The answer comes in its own time.
    pub(crate) fn ask(&self, host: HostPort) {
        // The thread ends after this does.
        let _answered = self.questions.send(host);
    }

    /// The next answer that is there. Once there is none, the next wakes again.
    pub(crate) fn poll(&mut self) -> Option<Resolved> {
        if let Ok(answer) = self.answers.try_recv() {
            return Some(answer);
        }
        let _woken_for_all = self.woken.read(&mut [0; 4096]);
        // One may have come in between.
        self.answers.try_recv().ok()
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
            // What is there already may have no wake of its own.
            if let Some(answer) = resolver.poll() {
                return answer;
            }
            let mut fds = [PollFd::new(&*resolver, PollFlags::IN)];
            rustix::event::poll(&mut fds, None).unwrap();
        }
    }

    #[test]
    fn this_machine_has_a_name_and_nobody_has_an_invalid_one() {
        let mut resolver = Resolver::start(Box::new(SystemResolver)).unwrap();
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

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        struct Counting(u16);
        impl Resolve for Counting {
            fn resolve(&mut self, _: &HostPort) -> io::Result<Vec<SocketAddr>> {
                self.0 += 1;
                Ok(vec![SocketAddr::from(([192, 0, 2, 1], self.0))])
            }
        }
        let mut resolver = Resolver::start(Box::new(Counting(0))).unwrap();
        assert!(resolver.poll().is_none());
        for port in 1..=200 {
            resolver.ask(format!("gate:{port}").parse().unwrap());
        }
        for port in 1..=200 {
            let (host, found) = wait_for(&mut resolver);
            assert_eq!((host.port, found.unwrap()[0].port()), (port, port));
        }
    }
}
