//! Runs a link for a long time, under everything that happens to links, and checks that it stays healthy.
//!
//! The secured link of [`live`](airlane_testkit::live) between the demo's ends, with a file, pages and voice all the
//! time. Meanwhile a [`schedule`] changes its loss, blocks it, kills and restarts its ends, also with the log on a
//! full disk and without a route to the peer, changes their keys, also by SIGHUP, and moves one of them. The checks
//! have files of their own: [`memory`] does not grow, the [`books`] of both ends add up, no event leaves unexplained
//! drops ([`drops`]), and after each event every application recovers ([`recovery`]).

pub mod books;
pub mod drops;
pub mod memory;
mod plan;
pub mod recovery;
pub mod schedule;
mod site;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airlane_probe::{
    ClientConfig, Progress, ServerConfig, Times, TrafficReport, run_client, serve,
};
use serde::Serialize;
use serde_json::Value;

use crate::progress::ProgressLine as Shown;
use airlane_testkit::live::{LiveError, TUNNEL_SERVER, server};
pub use plan::SoakPlan;

use books::{Books, ENDS, Line};
use memory::{Memory, MemorySample};
use recovery::{Recovered, RecoveryWatch};
use schedule::SoakEvent;
use site::SoakSite;

/// The results.
#[derive(Debug, Default, Serialize)]
pub struct SoakOutcome {
    /// Seed of the events and of the losses.
    pub seed: u64,
    /// Duration of the load, s.
    pub seconds: f64,
    /// The results of the applications, round by round.
    pub rounds: Vec<RoundReport>,
    /// The events, and how long each application waited for its next bytes.
    pub events: Vec<Happened>,
    /// Processes and their memory.
    pub lives: Vec<Life>,
    /// The checks that failed.
    pub failures: Vec<String>,
    /// The folder of the programs' output.
    pub files: PathBuf,
}

/// One round.
#[derive(Debug, Serialize)]
pub struct RoundReport {
    /// The results of the applications.
    pub traffic: Option<TrafficReport>,
    /// The ledgers after the load had ended.
    pub books: Vec<Line>,
}

/// An event.
#[derive(Debug, Serialize)]
pub struct Happened {
    /// Since the start, s.
    pub at_s: f64,
    /// What happened.
    pub event: SoakEvent,
    /// When each application recovered.
    pub recovered: Recovered,
}

/// A process.
#[derive(Debug, Serialize)]
pub struct Life {
    /// The end that the process ran.
    pub end: &'static str,
    /// How long it lived, s.
    pub age_s: f64,
    /// Its memory; none if its life was too short.
    pub memory: Option<Memory>,
    /// Its drops outside of the services.
    pub drops: std::collections::BTreeMap<String, u64>,
    /// Its resident memory during load, kB, sampled every 2 s.
    pub resident_kb: Vec<u64>,
}

/// Restarts an end.
type Start = fn(&mut SoakSite, usize) -> Result<(), LiveError>;

/// The loop's period, and how often an end's status is read.
const TICK: Duration = Duration::from_millis(50);
const SAMPLE: Duration = Duration::from_secs(2);
/// How long packets in flight may take to arrive after the load has ended.
const QUIET: Duration = Duration::from_secs(30);
/// Load after the measuring period, in which late packets still count.
const GRACE: Duration = Duration::from_secs(5);
/// How long applications run before the measurement.
const WARMUP: Duration = Duration::from_secs(3);

/// A running process and its history.
#[derive(Debug)]
pub(crate) struct EndProcess {
    started: Instant,
    /// Whether this process replaced another.
    restarted: bool,
    samples: Vec<MemorySample>,
}

impl EndProcess {
    fn new(restarted: bool) -> Self {
        Self {
            started: Instant::now(),
            restarted,
            samples: Vec::new(),
        }
    }
}

/// A soak in progress.
pub(crate) struct Soak {
    site: SoakSite,
    start: Instant,
    processes: [EndProcess; 2],
    books: Books,
    outcome: SoakOutcome,
}

/// Runs the soak. Failed checks are in the outcome, including a program that ends by itself; the load may then still
/// be running.
///
/// # Errors
/// If the link does not come up.
pub fn run(plan: &SoakPlan) -> Result<SoakOutcome, LiveError> {
    let rounds = schedule::rounds(plan.total, plan.every, plan.seed);
    let steps = rounds.iter().map(|round| round.events.len() as u64 + 1);
    let mut shown = Shown::new(steps.sum());
    let site = SoakSite::new(plan)?;
    let mut soak = Soak {
        start: Instant::now(),
        processes: [EndProcess::new(false), EndProcess::new(false)],
        books: Books::default(),
        outcome: SoakOutcome {
            seed: plan.seed,
            files: site.files().to_owned(),
            ..SoakOutcome::default()
        },
        site,
    };
    soak.outcome.seconds = plan.total.as_secs_f64();
    if let Err(error) = soak.all(&rounds, &mut shown) {
        soak.outcome.failures.push(error.to_string());
    }
    Ok(soak.outcome)
}

impl Soak {
    fn all(&mut self, rounds: &[schedule::SoakRound], shown: &mut Shown) -> Result<(), LiveError> {
        for (number, round) in (1..).zip(rounds) {
            shown.step(&format!("round {number}"));
            self.round(round, shown)?;
        }
        for end in [0, 1] {
            let last = self.site.link.stop_end(end)?;
            self.end_of_life(end, last);
        }
        Ok(())
    }

    fn round(&mut self, round: &schedule::SoakRound, shown: &mut Shown) -> Result<(), LiveError> {
        let progress = Progress::default();
        let load = Load::start(&self.site, round.length, &progress);
        let begin = Instant::now();
        let mut events = round.events.iter().peekable();
        let mut recovery: Option<(RecoveryWatch, f64, SoakEvent)> = None;
        let mut next_sample = begin;
        while !load.client.is_finished() {
            std::thread::sleep(TICK);
            let now = Instant::now();
            self.site.link.check()?;
            if now >= next_sample {
                next_sample = now + SAMPLE;
                self.sample()?;
            }
            let counts = progress.counts();
            // Voice ends with the load. The client then asks the server what has arrived, which takes long on a slow
            // link.
            if let Some((recovery, ..)) = &mut recovery
                && now < begin + WARMUP + round.length
            {
                recovery.observe(now, counts);
            }
            let due = events.next_if(|(at, _)| now >= begin + *at);
            if let Some(&(_, event)) = due {
                self.close(recovery.take());
                let at_s = self.start.elapsed().as_secs_f64();
                shown.step(&format!("{at_s:.0} s: {event}"));
                let from = Instant::now();
                self.happen(event)?;
                let outage = match event {
                    SoakEvent::Loss(_) | SoakEvent::NewKeys | SoakEvent::Hangup => Duration::ZERO,
                    _ => from.elapsed(),
                };
                let counts = progress.counts();
                recovery = Some((
                    RecoveryWatch::new(Instant::now(), counts, outage),
                    at_s,
                    event,
                ));
            }
        }
        self.close(recovery.take());
        let (traffic, problems) = load.finish();
        let number = self.outcome.rounds.len() + 1;
        let mut problems: Vec<String> = problems;
        problems.extend(traffic.iter().flat_map(complaints));
        let books = self.audit()?;
        for line in books.iter().filter(|line| !line.adds_up) {
            problems.push(format!("the books do not add up: {line:?}"));
        }
        let problems = problems.into_iter().map(|p| format!("round {number}: {p}"));
        self.outcome.failures.extend(problems);
        self.outcome.rounds.push(RoundReport { traffic, books });
        Ok(())
    }

    /// Records the recovery from an event.
    fn close(&mut self, ended: Option<(RecoveryWatch, f64, SoakEvent)>) {
        let Some((recovery, at_s, event)) = ended else {
            return;
        };
        let problems = recovery.problems();
        let problems = problems.map(|problem| format!("{at_s:.0} s, {event}: {problem}"));
        self.outcome.failures.extend(problems);
        let recovered = recovery.recovered();
        self.outcome.events.push(Happened {
            at_s,
            event,
            recovered,
        });
    }

    /// Reads the status and the memory of both ends.
    fn sample(&mut self) -> Result<(), LiveError> {
        for end in [0, 1] {
            let status = self.site.link.status(end)?;
            let sample = MemorySample {
                age_s: self.processes[end].started.elapsed().as_secs_f64(),
                resident: self.site.link.resident(end)?,
                frames: books::frames(&status),
            };
            self.processes[end].samples.push(sample);
            self.observe(end, &status);
        }
        Ok(())
    }

    fn observe(&mut self, end: usize, status: &Value) {
        let problems = self.books.observe(end, status);
        self.outcome.failures.extend(problems);
    }

    fn happen(&mut self, event: SoakEvent) -> Result<(), LiveError> {
        match event {
            SoakEvent::Loss(channel) => self.site.set_loss(channel),
            SoakEvent::Outage(time) => {
                self.site.silence()?;
                let until = Instant::now() + time;
                while Instant::now() < until {
                    std::thread::sleep(SAMPLE.min(until.saturating_duration_since(Instant::now())));
                    self.sample()?;
                }
                self.site.end_silence()
            }
            SoakEvent::Kill(end) => {
                let asked = Instant::now();
                let last = self.site.link.status(end)?;
                self.site.link.kill_end(end)?;
                self.restart(end, last, asked.elapsed(), SoakSite::start)
            }
            SoakEvent::Stop(end) => self.stop(end, SoakSite::start),
            SoakEvent::FullLog(end) => self.stop(end, SoakSite::start_with_full_log),
            SoakEvent::NoRoute(end) => self.stop(end, SoakSite::start_without_route),
            SoakEvent::NewKeys => self.site.new_keys(),
            SoakEvent::Hangup => self.site.hang_up(),
            SoakEvent::Move => self.site.move_right(),
        }
    }

    fn stop(&mut self, end: usize, start: Start) -> Result<(), LiveError> {
        let last = self.site.link.stop_end(end)?;
        self.restart(end, last, Duration::ZERO, start)
    }

    /// Restarts an end that has stopped.
    fn restart(
        &mut self,
        end: usize,
        last: Value,
        unseen: Duration,
        start: Start,
    ) -> Result<(), LiveError> {
        self.books.gone(end, &last, unseen.as_secs_f64());
        let other = self.site.link.status(1 - end)?;
        self.end_of_life(end, last);
        start(&mut self.site, end)?;
        self.processes[end] = EndProcess::new(true);
        for end in [0, 1] {
            self.site.link.wait_for_session(end)?;
        }
        let after = self.site.link.status(1 - end)?;
        self.books.sent_to_nobody(1 - end, &other, &after);
        Ok(())
    }

    /// Checks the life of a process.
    fn end_of_life(&mut self, end: usize, last: Value) {
        self.observe(end, &last);
        let process = &self.processes[end];
        let memory = Memory::judge(&process.samples);
        let age_s = process.started.elapsed().as_secs_f64();
        let begin_s = self.start.elapsed().as_secs_f64() - age_s;
        let who = format!("{} of {begin_s:.0} s", ENDS[end]);
        if let Some(memory) = memory.as_ref().filter(|memory| !memory.flat) {
            let problem = format!("{who}: memory grows: {memory:?}");
            self.outcome.failures.push(problem);
        }
        for (reason, count) in drops::unexplained(&last, process.restarted) {
            let problem = format!("{who}: {count} dropped for {reason}, which nothing explains");
            self.outcome.failures.push(problem);
        }
        let drops = drops::drops(&last);
        let samples = process.samples.iter();
        self.outcome.lives.push(Life {
            end: ENDS[end],
            age_s,
            memory,
            drops,
            resident_kb: samples.map(|sample| sample.resident / 1024).collect(),
        });
    }

    /// Waits until nothing is in flight, and compares the ledgers.
    fn audit(&mut self) -> Result<Vec<Line>, LiveError> {
        let deadline = Instant::now() + QUIET;
        let mut before = [self.site.link.status(0)?, self.site.link.status(1)?];
        loop {
            std::thread::sleep(Duration::from_secs(2));
            let now = [self.site.link.status(0)?, self.site.link.status(1)?];
            let quiet = [0, 1]
                .iter()
                .all(|&end| books::is_quiet(&before[end], &now[end]));
            if quiet || Instant::now() > deadline {
                if !quiet {
                    self.outcome
                        .failures
                        .push("the link does not fall silent".to_owned());
                }
                for (end, status) in now.iter().enumerate() {
                    self.observe(end, status);
                }
                return Ok(self.books.audit([&now[0], &now[1]]));
            }
            before = now;
        }
    }
}

/// Problems with the applications of a round.
fn complaints(traffic: &TrafficReport) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(error) = traffic.file.as_ref().and_then(|file| file.error.as_ref()) {
        problems.push(format!("the file ended: {error}"));
    }
    // A host whose interface is down for a moment has no route to the server.
    const EXPLAINED: [&str; 3] = [
        "network unreachable",
        "host unreachable",
        "address not available",
    ];
    let errors = traffic.pages.iter().flat_map(|pages| &pages.errors);
    for (error, count) in errors.filter(|(error, _)| !EXPLAINED.contains(&error.as_str())) {
        problems.push(format!("{count} pages failed: {error}"));
    }
    for voice in [&traffic.voice_down, &traffic.voice_up]
        .into_iter()
        .flatten()
    {
        if voice.duplicates > 0 {
            problems.push(format!("{} voice packets came twice", voice.duplicates));
        }
    }
    problems
}

/// The applications of a round.
struct Load {
    client: JoinHandle<Result<TrafficReport, String>>,
    server: JoinHandle<Result<(), String>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn start(site: &SoakSite, length: Duration, progress: &Progress) -> Self {
        let [left, right] = site.link.shared_hosts();
        let stop = Arc::new(AtomicBool::new(false));
        let server = ServerConfig {
            lifetime: length * 2 + Duration::from_secs(600),
            progress: progress.clone(),
            ..server()
        };
        let client = ClientConfig {
            times: Times {
                warmup: WARMUP,
                measure: length,
                grace: GRACE,
            },
            progress: progress.clone(),
            ..ClientConfig::new(TUNNEL_SERVER)
        };
        let server = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let served = left.run(|| serve(&server, &stop, &|_| ()));
                let served = served.map_err(|error| error.to_string())?;
                served.map_err(|error| error.to_string())
            }
        });
        let client = std::thread::spawn(move || {
            let carried = right.run(|| run_client(&client));
            let carried = carried.map_err(|error| error.to_string())?;
            carried.map_err(|error| error.to_string())
        });
        Self {
            client,
            server,
            stop,
        }
    }

    /// The results of the applications, and their problems.
    fn finish(self) -> (Option<TrafficReport>, Vec<String>) {
        let panicked = |_| Err("a thread panicked".to_owned());
        let client = self.client.join().unwrap_or_else(panicked);
        self.stop.store(true, Ordering::Relaxed);
        let server = self
            .server
            .join()
            .unwrap_or_else(|_| Err("a thread panicked".to_owned()));
        let mut problems = Vec::new();
        problems.extend(server.err().map(|error| format!("the server: {error}")));
        let traffic = match client {
            Ok(traffic) => Some(traffic),
            Err(error) => {
                problems.push(format!("the client: {error}"));
                None
            }
        };
        (traffic, problems)
    }
}
