//! `airlane recv`.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::thread::JoinHandle;

use airlane_base::{Duration, Instant};
use airlane_secure::SecurePeer;
use airlane_ship::{Failure, LONGEST_DATAGRAM, Ranges, Taker, TakerPhase, printable};

use super::digest::Digester;
use super::line::Line;
use super::store::Store;
use super::{ShipError, ShipEvent, ShipProgress, Shipment, ShippedFile, Ticket, Watch};
use crate::clock;

/// Somebody who watches is told so often.
const TELL: Duration = Duration::from_millis(100);
/// What is missing is remembered so often.
const SAVE: Duration = Duration::from_secs(1);
/// How often those are mentioned who call with another ticket.
const STRANGERS_AGAIN: Duration = Duration::from_secs(60);
/// Stretches to take in before something else has its turn.
const DIGEST_IN_A_ROW: usize = 4;

/// What a receiver is told.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where files go.
    pub folder: PathBuf,
    /// What both ends have.
    pub ticket: Ticket,
    /// Whether files that are there are replaced.
    pub overwrite: bool,
    /// Whether to wait for the next job after one.
    pub stay: bool,
    /// Nothing was heard for so long: nothing will be. None: it waits for ever.
    pub timeout: Option<Duration>,
}

/// Receives files until they are here, or, if it stays, until somebody asks for the end.
///
/// # Errors
/// Why they are not.
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
    let instance = clock::since_1970() as u16;
    let mut taker = Taker::new(clock::now(), instance);
    let mut job: Option<Job> = None;
    let mut failed = None;
    let mut told = clock::now();
    let (mut heard, mut strangers) = (told, None);
    loop {
        let now = clock::now();
        let taken = line.receive(now, |contents| {
            heard = now;
            taker.handle(now, contents, &mut |at, bytes: &[u8]| match &mut job {
                Some(Job {
                    store: Some(store), ..
                }) => store.keep(at, bytes),
                _ => Ok(()),
            })
        });
        if let Some((stranger, how)) = line.take_stranger()
            && strangers.is_none_or(|then| now >= then + STRANGERS_AGAIN)
        {
            strangers = Some(now);
            watch(ShipEvent::Note(format!(
                "somebody at {stranger} calls {how}, and is refused"
            )));
        }
        if options
            .timeout
            .is_some_and(|timeout| now >= heard + timeout)
        {
            return match job {
                // Nobody has said that he heard it; the files are here all the same.
                Some(job) if job.done => Ok(()),
                Some(_) => Err(ShipError::Job(Failure::Silence)),
                None => Err(ShipError::Unheard),
            };
        }
        if job.as_ref().is_some_and(|job| job.number != taker.job()) {
            // Its sender was started anew, or gave way to another: what it has left is on the disk.
            job = None;
        }
        taker.handle_timeout(now);
        let went = taken.and_then(|()| go_on(now, options, &mut taker, &mut job, watch));
        let ended = went.unwrap_or_else(|error| {
            // The job fails, and not the receiver; its sender is told why, and its parts are kept.
            watch(ShipEvent::Note(format!("refused: {error}")));
            taker.refuse(&error.to_string());
            job = None;
            failed = Some(error);
            false
        });
        transmit(now, &mut taker, &mut line);
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
            if let Some(progress) = job.as_ref().and_then(|job| job.progress(&taker)) {
                watch(ShipEvent::Progress(progress));
            }
        }
        let due = taker
            .poll_timeout()
            .unwrap_or(Instant::FAR_FUTURE)
            .min(told + TELL);
        if line.wait(now, if more { now } else { due }, stop)? {
            if let Some(Job {
                store: Some(store), ..
            }) = &mut job
                && taker.phase() == TakerPhase::Receiving
            {
                store.save(&taker.missing())?;
            }
            return match job {
                Some(_) => Err(ShipError::Stopped),
                None if options.stay => Ok(()),
                None => Err(ShipError::Unused),
            };
        }
    }
}

/// What is due after each input; whether a job has ended.
fn go_on(
    now: Instant,
    options: &ReceiveOptions,
    taker: &mut Taker,
    job: &mut Option<Job>,
    watch: Watch<'_>,
) -> Result<bool, ShipError> {
    match taker.phase() {
        TakerPhase::Waiting => Ok(false),
        TakerPhase::Offered => {
            match Job::new(now, options, taker, watch) {
                Ok((new, missing)) => {
                    taker.ask_for(missing);
                    *job = Some(new);
                }
                Err(error) => return Err(error),
            }
            Ok(false)
        }
        TakerPhase::Receiving | TakerPhase::Comparing => match job {
            Some(job) => job.go_on(now, taker, watch).map(|()| false),
            None => Ok(false),
        },
        TakerPhase::Done => {
            // A sender that has not heard the last word asks for it as long.
            let is_done = job.as_ref().is_some_and(|job| job.done);
            let ends = is_done && (taker.is_heard() || taker.is_alone(now));
            if ends {
                *job = None;
            }
            Ok(ends)
        }
        TakerPhase::Failed => {
            let heard = taker.is_heard() || taker.is_alone(now);
            match taker.failure().filter(|_| heard && !options.stay) {
                Some(failure) => Err(ShipError::Job(failure.clone())),
                None => Ok(heard),
            }
        }
    }
}

fn transmit(now: Instant, taker: &mut Taker, line: &mut Line) {
    let mut out = [0; LONGEST_DATAGRAM];
    while let Some(len) = taker.poll_transmit(now, &mut out) {
        line.send(now, &out[..len]);
    }
    line.flush();
}

/// Files get their names, and reach the disk, in a thread of their own: this may take longer than a sender waits for a word.
struct Placing {
    thread: JoinHandle<Result<(), ShipError>>,
    files: Vec<ShippedFile>,
}

/// What is received now.
struct Job {
    number: u64,
    began: Instant,
    /// Bytes that were here before.
    had: u64,
    /// None while files get their names.
    store: Option<Store>,
    placing: Option<Placing>,
    digester: Digester,
    /// Whether the digester can go on at once.
    more: bool,
    saved: Instant,
    done: bool,
}

impl Job {
    fn new(
        now: Instant,
        options: &ReceiveOptions,
        taker: &Taker,
        watch: Watch<'_>,
    ) -> Result<(Self, Ranges), ShipError> {
        let manifest = taker.manifest().ok_or(ShipError::Job(Failure::Silence))?;
        let (mut store, missing) = Store::open(&options.folder, manifest, options.overwrite)?;
        for note in store.notes() {
            watch(ShipEvent::Note(note));
        }
        let job = Self {
            number: taker.job(),
            began: now,
            had: manifest.total() - missing.bytes(),
            store: Some(store),
            placing: None,
            digester: Digester::new(manifest),
            more: false,
            saved: now,
            done: false,
        };
        Ok((job, missing))
    }

    fn progress(&self, taker: &Taker) -> Option<ShipProgress> {
        let total = taker.manifest()?.total();
        Some(ShipProgress {
            done: total - taker.missing_bytes(),
            total,
            doing: if taker.phase() == TakerPhase::Receiving {
                "receiving"
            } else {
                "comparing"
            },
        })
    }

    fn go_on(
        &mut self,
        now: Instant,
        taker: &mut Taker,
        watch: Watch<'_>,
    ) -> Result<(), ShipError> {
        if let Some(placing) = self.placing.take_if(|placing| placing.thread.is_finished()) {
            return self.placed(now, placing, taker, watch);
        }
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        if now.saturating_since(self.saved) >= SAVE && taker.phase() == TakerPhase::Receiving {
            self.saved = now;
            store.save(&taker.missing())?;
        }
        self.more = false;
        for _ in 0..DIGEST_IN_A_ROW {
            let end = taker.whole_from(self.digester.at());
            // A stretch at a time, so that little has to be written before it is full.
            if end < self.digester.at() + super::digest::STRETCH as u64 && taker.missing_bytes() > 0
            {
                break;
            }
            store.flush()?;
            self.more = self.digester.step(end, |at, bytes| store.read(at, bytes))?;
            if !self.more {
                break;
            }
        }
        let (TakerPhase::Comparing, Some(mine)) = (taker.phase(), self.digester.all()) else {
            return Ok(());
        };
        let manifest = taker
            .manifest()
            .ok_or(ShipError::Job(Failure::Silence))?
            .clone();
        let starts = manifest.starts();
        let mut damaged = Ranges::none();
        for (((place, entry), mine), theirs) in manifest.files().zip(mine).zip(taker.digests()) {
            if mine != theirs {
                watch(ShipEvent::Note(format!(
                    "{} came otherwise than it was sent: again",
                    printable(&entry.path)
                )));
                damaged.push(starts[place], entry.bytes);
            }
        }
        if !damaged.is_empty() {
            self.digester.restart();
            store.make_anew(&damaged)?;
            taker.ask_for(damaged);
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
        if let Some(mut store) = self.store.take() {
            let thread = std::thread::spawn(move || store.finish());
            self.placing = Some(Placing { thread, files });
        }
        Ok(())
    }

    fn placed(
        &mut self,
        now: Instant,
        Placing { thread, files }: Placing,
        taker: &mut Taker,
        watch: Watch<'_>,
    ) -> Result<(), ShipError> {
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        taker.accept();
        self.done = true;
        let took = now.saturating_since(self.began);
        let shipment = Shipment::new(files, self.had, took, taker.packets());
        watch(ShipEvent::Done(shipment));
        Ok(())
    }
}
