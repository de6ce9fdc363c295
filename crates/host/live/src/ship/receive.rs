//! `airlane recv`.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::thread::JoinHandle;

use airlane_base::{Duration, Instant};
use airlane_secure::SecurePeer;
use airlane_ship::{
    LONGEST_DATAGRAM, Manifest, Ranges, ShipReceiver, ShipReceiverPhase, printable,
};

use super::digest::Digester;
use super::line::{Line, Refusal};
use super::store::Store;
use super::{ShipError, ShipEvent, ShipProgress, Shipment, ShippedFile, Ticket, Watch};
use crate::clock;

/// Interval of progress events.
const TELL: Duration = Duration::from_millis(100);
/// Interval at which the list of missing ranges is saved.
const SAVE: Duration = Duration::from_secs(1);
/// Interval of notes about refused callers, and of forgetting the last call.
const AGAIN: Duration = Duration::from_secs(60);
/// Silence after which the last sender has probably nothing more to say.
const QUIET: Duration = Duration::from_secs(3);
/// Pieces to hash before other work gets its turn.
const DIGEST_IN_A_ROW: usize = 4;
/// Interval at which a thread at work is asked whether it has finished.
const ASK: Duration = Duration::from_millis(5);

/// Settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Address where it listens.
    pub listen: SocketAddr,
    /// Directory for the files.
    pub folder: PathBuf,
    /// The shared ticket.
    pub ticket: Ticket,
    /// Whether existing files are replaced.
    pub overwrite: bool,
    /// Whether to wait for another job after one.
    pub stay: bool,
    /// Silence after which the transfer fails; `None` to wait without limit.
    pub timeout: Option<Duration>,
}

/// Receives files until they are complete, or, with `stay`, until `stop` is readable.
///
/// # Errors
/// Why the transfer failed.
pub fn receive(
    options: &ReceiveOptions,
    stop: BorrowedFd<'_>,
    watch: Watch<'_>,
) -> Result<(), ShipError> {
    let peer = SecurePeer {
        key: options.ticket.sender().public(),
        address: None,
        preshared: Some(options.ticket.preshared().clone()),
    };
    let mut line = Line::open(options.listen, options.ticket.receiver(), peer)?;
    watch(ShipEvent::Listening(line.local()?));
    let mut instance = clock::since_1970() as u16;
    let mut receiver = ShipReceiver::new(clock::now(), instance);
    let mut job: Option<Job> = None;
    // The thread of a job that another has replaced: two must not work in one folder.
    let mut replaced = None;
    let mut failed = None;
    let mut told = clock::now();
    let (mut heard, mut strangers, mut forgot) = (told, [None; 2], None);
    loop {
        let now = clock::now();
        let taken = line.receive(now, |contents| {
            heard = now;
            receiver.handle(now, contents, &mut |at, bytes: &[u8]| match job
                .as_mut()
                .and_then(Job::store)
            {
                Some(store) => store.keep(at, bytes),
                None => Ok(()),
            })
        });
        if let Some((stranger, why)) = line.take_stranger() {
            let is_due = |last: Option<Instant>| last.is_none_or(|then| now >= then + AGAIN);
            // The remembered timestamp protects a running job, and there is none.
            let is_free = now >= line.heard() + QUIET && is_free(now, &receiver, job.as_ref());
            let is_heard = why == Refusal::Clock && is_free && is_due(forgot);
            let what = match (why, is_heard) {
                (Refusal::Ticket, _) => "is refused",
                (Refusal::Clock, false) => "is refused while another sender is served",
                (Refusal::Clock, true) => "is heard, as no other sender is served",
            };
            let said = &mut strangers[why as usize];
            if is_heard || is_due(*said) {
                *said = Some(now);
                let how = why.how();
                watch(ShipEvent::Note(format!(
                    "a host at {stranger} calls {how}, and {what}"
                )));
            }
            if is_heard {
                forgot = Some(now);
                line.forget_calls(now)?;
                instance = instance.wrapping_add(1);
                (receiver, job) = (ShipReceiver::new(now, instance), None);
            }
        }
        if let Some(timeout) = options.timeout.filter(|timeout| now >= heard + *timeout) {
            return match job {
                // The sender has not confirmed the end, but the files are complete.
                Some(job) if job.done => Ok(()),
                Some(_) => Err(ShipError::Silent {
                    timeout,
                    unsent: line.unsent(),
                }),
                None => Err(ShipError::Unheard),
            };
        }
        if job.as_ref().is_some_and(|job| job.number != receiver.job()) {
            // The sender was restarted, or replaced by another; what it has sent is on the disk.
            replaced = job.take().and_then(|job| job.work.thread()).or(replaced);
        }
        replaced = replaced.filter(|thread| !thread.is_finished());
        receiver.handle_timeout(now);
        let went = taken.and_then(|()| match job {
            None if replaced.is_some() => Ok(false),
            _ => go_on(now, options, &mut receiver, &mut job, watch),
        });
        let ended = went.unwrap_or_else(|error| {
            // Only the job fails. Its sender is told why, and its partial files are kept.
            watch(ShipEvent::Note(format!("refused: {error}")));
            receiver.refuse(&error.to_string());
            job = None;
            failed = Some(error);
            false
        });
        transmit(now, &mut receiver, &mut line);
        if ended {
            match failed.take() {
                _ if options.stay => {}
                Some(error) => return Err(error),
                None => return Ok(()),
            }
        }
        let more = job.as_ref().is_some_and(|job| job.more);
        if now.saturating_since(told) >= TELL {
            told = now;
            if let Some(progress) = job.as_ref().and_then(|job| job.progress(&receiver)) {
                watch(ShipEvent::Progress(progress));
            }
        }
        let is_at_work = replaced.is_some() || job.as_ref().is_some_and(Job::is_at_work);
        let due = receiver
            .poll_timeout()
            .unwrap_or(Instant::FAR_FUTURE)
            .min(if is_at_work { now + ASK } else { told + TELL });
        if line.wait(now, if more { now } else { due }, stop)? {
            if let Some(store) = job.as_mut().and_then(Job::store)
                && receiver.phase() == ShipReceiverPhase::Receiving
            {
                store.save(&receiver.missing())?;
            }
            return match job {
                Some(_) => Err(ShipError::Stopped),
                None if options.stay => Ok(()),
                None => Err(ShipError::Unused),
            };
        }
    }
}

/// Whether no job is in progress, and the last sender has received the result.
fn is_free(now: Instant, receiver: &ShipReceiver, job: Option<&Job>) -> bool {
    let is_over = match receiver.phase() {
        ShipReceiverPhase::Waiting => receiver.job() == 0,
        ShipReceiverPhase::Done | ShipReceiverPhase::Failed => receiver.is_heard(),
        ShipReceiverPhase::Offered
        | ShipReceiverPhase::Receiving
        | ShipReceiverPhase::Comparing => false,
    };
    (job.is_none() && is_over) || (receiver.is_alone(now) && !job.is_some_and(Job::is_at_work))
}

/// Does the work that is due after each input. Returns whether a job has ended.
fn go_on(
    now: Instant,
    options: &ReceiveOptions,
    receiver: &mut ShipReceiver,
    job: &mut Option<Job>,
    watch: Watch<'_>,
) -> Result<bool, ShipError> {
    match receiver.phase() {
        ShipReceiverPhase::Waiting => Ok(false),
        ShipReceiverPhase::Offered => {
            match job {
                None => *job = Job::new(now, options, receiver),
                Some(job) => job.open(receiver, watch)?,
            }
            Ok(false)
        }
        ShipReceiverPhase::Receiving | ShipReceiverPhase::Comparing => match job {
            Some(job) => job.go_on(now, receiver, watch).map(|()| false),
            None => Ok(false),
        },
        ShipReceiverPhase::Done => {
            // A sender that has missed the result asks for it during this time.
            let is_done = job.as_ref().is_some_and(|job| job.done);
            let ends = is_done && (receiver.is_heard() || receiver.is_alone(now));
            if ends {
                *job = None;
            }
            Ok(ends)
        }
        ShipReceiverPhase::Failed => {
            let heard = receiver.is_heard() || receiver.is_alone(now);
            match receiver.failure().filter(|_| heard && !options.stay) {
                Some(failure) => Err(ShipError::Job(failure.clone())),
                None => Ok(heard),
            }
        }
    }
}

fn transmit(now: Instant, receiver: &mut ShipReceiver, line: &mut Line) {
    let mut out = [0; LONGEST_DATAGRAM];
    while let Some(len) = receiver.poll_transmit(now, &mut out) {
        line.send(now, &out[..len]);
    }
    line.flush();
}

/// The files, and what is missing of them.
type Prepared = Result<(Box<Store>, Ranges), ShipError>;
type Thread = JoinHandle<Prepared>;

/// Where a job's files are. With thousands of them, making or placing them may take longer than a sender's timeout,
/// so threads do this.
enum Work {
    Opening(Thread),
    Open(Box<Store>),
    Placing(Thread, Vec<ShippedFile>),
    Placed,
}

impl Work {
    fn thread(self) -> Option<Thread> {
        match self {
            Self::Opening(thread) | Self::Placing(thread, _) => Some(thread),
            Self::Open(_) | Self::Placed => None,
        }
    }

    /// What the thread made, if this has one that has finished.
    fn take_finished(&mut self) -> Option<(Prepared, Vec<ShippedFile>)> {
        let (Self::Opening(thread) | Self::Placing(thread, _)) = self else {
            return None;
        };
        if !thread.is_finished() {
            return None;
        }
        let (thread, files) = match std::mem::replace(self, Self::Placed) {
            Self::Placing(thread, files) => (thread, files),
            other => (other.thread()?, Vec::new()),
        };
        let made = thread.join();
        Some((
            made.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            files,
        ))
    }
}

/// The present job.
struct Job {
    number: u64,
    began: Instant,
    /// Bytes present before the job.
    had: u64,
    work: Work,
    digester: Digester,
    /// Whether the digester has more to do at once.
    more: bool,
    saved: Instant,
    done: bool,
}

impl Job {
    /// Of the list that the receiver has.
    fn new(now: Instant, options: &ReceiveOptions, receiver: &ShipReceiver) -> Option<Self> {
        let manifest = receiver.manifest()?;
        let digester = Digester::new(manifest);
        let (folder, manifest) = (options.folder.clone(), manifest.clone());
        let overwrite = options.overwrite;
        Some(Self {
            number: receiver.job(),
            began: now,
            had: 0,
            work: Work::Opening(std::thread::spawn(move || {
                let (store, missing) = Store::open(&folder, &manifest, overwrite)?;
                Ok((Box::new(store), missing))
            })),
            digester,
            more: false,
            saved: now,
            done: false,
        })
    }

    const fn is_at_work(&self) -> bool {
        matches!(self.work, Work::Opening(_) | Work::Placing(..))
    }

    fn store(&mut self) -> Option<&mut Store> {
        match &mut self.work {
            Work::Open(store) => Some(store),
            _ => None,
        }
    }

    /// Requests what is missing, once the folder is prepared.
    fn open(&mut self, receiver: &mut ShipReceiver, watch: Watch<'_>) -> Result<(), ShipError> {
        if let Some((opened, _)) = self.work.take_finished() {
            let (mut store, missing) = opened?;
            for note in store.notes() {
                watch(ShipEvent::Note(note));
            }
            let total = receiver.manifest().map_or(0, Manifest::total);
            self.had = total - missing.bytes();
            self.work = Work::Open(store);
            receiver.ask_for(missing);
        }
        Ok(())
    }

    fn progress(&self, receiver: &ShipReceiver) -> Option<ShipProgress> {
        let total = receiver.manifest()?.total();
        Some(ShipProgress {
            done: total - receiver.missing_bytes(),
            total,
            doing: if receiver.phase() == ShipReceiverPhase::Receiving {
                "receiving"
            } else {
                "comparing"
            },
        })
    }

    fn go_on(
        &mut self,
        now: Instant,
        receiver: &mut ShipReceiver,
        watch: Watch<'_>,
    ) -> Result<(), ShipError> {
        if let Some((placed, files)) = self.work.take_finished() {
            placed?;
            receiver.accept();
            self.done = true;
            let took = now.saturating_since(self.began);
            let shipment = Shipment::new(files, self.had, took, receiver.packets());
            watch(ShipEvent::Done(shipment));
            return Ok(());
        }
        let Work::Open(store) = &mut self.work else {
            return Ok(());
        };
        if now.saturating_since(self.saved) >= SAVE
            && receiver.phase() == ShipReceiverPhase::Receiving
        {
            self.saved = now;
            store.save(&receiver.missing())?;
        }
        self.more = false;
        for _ in 0..DIGEST_IN_A_ROW {
            let end = receiver.whole_from(self.digester.at());
            // Hash whole pieces only, so that few partial writes are flushed.
            if end < self.digester.at() + super::digest::STRETCH as u64
                && receiver.missing_bytes() > 0
            {
                break;
            }
            store.flush()?;
            self.more = self.digester.step(end, |at, bytes| store.read(at, bytes))?;
            if !self.more {
                break;
            }
        }
        let (ShipReceiverPhase::Comparing, Some(mine)) = (receiver.phase(), self.digester.all())
        else {
            return Ok(());
        };
        let Some(manifest) = receiver.manifest().cloned() else {
            return Ok(());
        };
        let starts = manifest.starts();
        let mut damaged = Ranges::none();
        for (((place, entry), mine), theirs) in manifest.files().zip(mine).zip(receiver.digests()) {
            if mine != theirs {
                watch(ShipEvent::Note(format!(
                    "{} arrived damaged: again",
                    printable(&entry.path)
                )));
                damaged.push(starts[place], entry.bytes);
            }
        }
        if !damaged.is_empty() {
            self.digester.restart();
            store.make_anew(&damaged)?;
            receiver.ask_for(damaged);
            return Ok(());
        }
        let shipped = manifest
            .files()
            .zip(mine)
            .map(|((_, entry), digest)| ShippedFile {
                path: entry.path.clone(),
                bytes: entry.bytes,
                blake3: digest.0.clone(),
            });
        let files = shipped.collect();
        self.work = match std::mem::replace(&mut self.work, Work::Placed) {
            Work::Open(mut store) => Work::Placing(
                std::thread::spawn(move || store.finish().map(|()| (store, Ranges::none()))),
                files,
            ),
            other => other,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

    use airlane_base::Rate;
    use airlane_secure::{AcceptedDatagram, Limits, OVERHEAD, PeerAddress, Secure, Wall};
    use airlane_ship::{Digest, Entry, Kind, Manifest, Shipper, ShipperPhase};

    use super::super::{SendOptions, Source, send};
    use super::*;

    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

    /// A receiver with `stay`, in a thread.
    struct Staying {
        folder: tempfile::TempDir,
        ticket: Ticket,
        at: SocketAddr,
        said: mpsc::Receiver<ShipEvent>,
        stop: UnixStream,
        thread: JoinHandle<Result<(), ShipError>>,
    }

    impl Staying {
        fn new() -> Self {
            Self::waiting(None)
        }

        /// With a timeout it does not stay.
        fn waiting(timeout: Option<Duration>) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let ticket = Ticket::new().unwrap();
            let options = ReceiveOptions {
                listen: "127.0.0.1:0".parse().unwrap(),
                folder: folder.path().to_owned(),
                ticket: ticket.clone(),
                overwrite: false,
                stay: timeout.is_none(),
                timeout,
            };
            let (stop, stopped) = UnixStream::pair().unwrap();
            let (tell, said) = mpsc::channel();
            let thread = std::thread::spawn(move || {
                receive(&options, stopped.as_fd(), &mut |event| {
                    tell.send(event).unwrap();
                })
            });
            let Ok(ShipEvent::Listening(at)) = said.recv_timeout(PATIENCE) else {
                panic!("it does not listen");
            };
            Self {
                folder,
                ticket,
                at,
                said,
                stop,
                thread,
            }
        }

        /// Waits for an event that `look` accepts.
        fn until<T>(&self, look: impl Fn(ShipEvent) -> Option<T>) -> T {
            loop {
                if let Some(found) = look(self.said.recv_timeout(PATIENCE).unwrap()) {
                    return found;
                }
            }
        }

        fn send(&self, name: &str, bytes: &[u8]) -> Result<Shipment, ShipError> {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            let options = SendOptions {
                to: vec![self.at],
                ticket: self.ticket.clone(),
                most: Rate::from_bps(1_000_000_000).unwrap(),
                timeout: Duration::from_secs(30),
                link: None,
            };
            let (_stop, stopped) = UnixStream::pair().unwrap();
            let source = Source::new(&[file]).unwrap();
            send(source, &options, stopped.as_fd(), &mut |_| ())
        }

        fn end(self) {
            use std::io::Write as _;
            (&self.stop).write_all(b"x").unwrap();
            self.thread.join().unwrap().unwrap();
        }
    }

    /// A sender whose wall clock is an hour fast sends an empty file.
    fn ship_from_the_future(to: &Staying) {
        const AHEAD: Duration = Duration::from_secs(3_600);
        let peer = SecurePeer {
            key: to.ticket.receiver().public(),
            address: Some(PeerAddress::Udp(to.at)),
            preshared: Some(to.ticket.preshared().clone()),
        };
        let key = peer.key;
        let private = to.ticket.sender();
        let mut secure =
            Secure::new(clock::now(), private, &[peer], Limits::default(), [7; 32]).unwrap();
        let peer = secure.peer(&key).unwrap();
        let started = clock::since_1970() + AHEAD.as_nanos();
        let most = Rate::from_bps(1_000_000).unwrap();
        let list = Manifest::new(vec![Entry {
            path: "future".to_owned(),
            kind: Kind::File,
            bytes: 0,
            mode: 0o600,
            modified_ns: 0,
        }])
        .unwrap();
        let mut shipper = Shipper::new(clock::now(), list, &[1_200], started, most).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let (mut datagram, mut plain) = ([0; 2_000], [0; 2_000]);
        let mut fill = |_, _: &mut [u8]| Ok::<_, Infallible>(());
        let deadline = std::time::Instant::now() + PATIENCE;
        while shipper.phase() != ShipperPhase::Done {
            assert!(
                std::time::Instant::now() < deadline,
                "{:?}",
                shipper.phase()
            );
            let now = clock::now();
            while let Ok((len, from)) = socket.recv_from(&mut datagram) {
                let from = PeerAddress::Udp(from);
                let came = secure.handle_datagram(now, from, &datagram[..len], &mut plain);
                if let Ok(AcceptedDatagram::Data { len, .. }) = came {
                    shipper.handle(now, &plain[..len]);
                }
            }
            let wall = Wall::from_unix(Duration::from_nanos(clock::since_1970()) + AHEAD);
            secure.handle_timeout(now, wall);
            while let Some(message) = secure.poll_transmit() {
                socket.send_to(message.bytes(), to.at).unwrap();
            }
            shipper.handle_timeout(now);
            if shipper.phase() == ShipperPhase::Digests {
                let digest = blake3::hash(b"").to_hex().to_string();
                shipper.give_digests(vec![Digest(digest)]);
            }
            while secure.is_established(now, peer)
                && let Ok(Some(len)) = shipper.poll_transmit(now, &mut plain, &mut fill)
            {
                let room = &mut datagram[..len + OVERHEAD];
                if secure.seal(now, peer, &[&plain[..len]], room).is_ok() {
                    socket.send_to(room, to.at).unwrap();
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        // Send the confirmation of the result.
        let now = clock::now();
        while let Ok(Some(len)) = shipper.poll_transmit(now, &mut plain, &mut fill) {
            let room = &mut datagram[..len + OVERHEAD];
            secure.seal(now, peer, &[&plain[..len]], room).unwrap();
            socket.send_to(room, to.at).unwrap();
        }
    }

    #[test]
    fn a_silent_sender_is_waited_for_as_long_as_configured() {
        let receiver = Staying::waiting(Some(Duration::from_secs(2)));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("long");
        std::fs::write(&file, vec![7; 4_000_000]).unwrap();
        let options = SendOptions {
            to: vec![receiver.at],
            ticket: receiver.ticket.clone(),
            most: Rate::from_bps(1_000_000).unwrap(),
            timeout: Duration::from_secs(30),
            link: None,
        };
        let (stop, stopped) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            let source = Source::new(&[file]).unwrap();
            send(source, &options, stopped.as_fd(), &mut |_| ())
        });
        receiver.until(|event| matches!(event, ShipEvent::Progress(_)).then_some(()));
        drop(stop);
        assert!(matches!(sender.join().unwrap(), Err(ShipError::Stopped)));
        let error = receiver.thread.join().unwrap().unwrap_err().to_string();
        let says = "nothing was heard from the other end for 2 s; a later try";
        assert!(error.starts_with(says), "{error}");
    }

    /// A sender whose clock was set back looks like a replayed call. It is accepted once no other sender is
    /// served, and the receiver names the cause.
    #[test]
    fn a_sender_whose_clock_was_set_back_is_heard() {
        let receiver = Staying::new();
        ship_from_the_future(&receiver);
        receiver.until(|event| matches!(event, ShipEvent::Done(_)).then_some(()));
        let shipment = receiver.send("a", b"hello").unwrap();
        assert_eq!(shipment.bytes, 5);
        receiver.until(|event| match event {
            ShipEvent::Note(note) => note
                .contains("a clock behind that of the last call, and is heard")
                .then_some(()),
            _ => None,
        });
        assert_eq!(
            std::fs::read(receiver.folder.path().join("a")).unwrap(),
            b"hello"
        );
        receiver.end();
    }

    /// A job whose files cannot be stored fails for its sender, and the receiver goes on.
    #[test]
    fn a_failed_job_does_not_end_a_staying_receiver() {
        let receiver = Staying::new();
        std::fs::write(receiver.folder.path().join("a"), "mine").unwrap();
        let refused = receiver.send("a", b"hello").unwrap_err().to_string();
        assert!(refused.contains("a is already there"), "{refused}");
        receiver.send("b", b"hello").unwrap();
        assert_eq!(
            std::fs::read(receiver.folder.path().join("a")).unwrap(),
            b"mine"
        );
        assert_eq!(
            std::fs::read(receiver.folder.path().join("b")).unwrap(),
            b"hello"
        );
        receiver.end();
    }
}
