//! The loop of a relay: accepts connections, handles socket events, and gives up targets that do not answer.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use socket2::Socket;

use super::connection::{CLIENT, Connection, End, Pool, SERVER, Turn, reset};
use super::open;
use super::{RelayConfig, RelayError, RelayReport, Target, YIELDS_AFTER, failed};
use crate::clock;
use airlane_node::Quiet;

/// Epoll tokens; connections have the numbers from 0.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const TELL: u64 = u64::MAX - 2;

/// Connections accepted in a row before other events are handled.
const ACCEPTS_IN_A_ROW: usize = 64;
/// Pause after the system ran out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest interval of checks for idle connections; a sixteenth of the idle timeout if that is shorter.
const SWEEP: Duration = Duration::from_secs(10);

fn refuse_loop(target: Target, listen: SocketAddr) -> Result<(), RelayError> {
    match target {
        // A port that the system chooses is not known yet.
        Target::Address(target) if listen.port() != 0 && open::is_itself(target, listen) => {
            Err(RelayError::Loop { target, listen })
        }
        _ => Ok(()),
    }
}

/// A listening relay.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    listener: Socket,
    epoll: OwnedFd,
    /// By place; the numbers of empty places are in `free`.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Places emptied in this turn: events of this turn may still name them.
    left: Vec<usize>,
    /// Connections with more to do at once.
    ready: VecDeque<usize>,
    /// Deadlines of connection attempts, in order, with place and serial number. A place that was reused has
    /// a newer serial number.
    waiting: VecDeque<(Instant, usize, u64)>,
    /// Serial number of the connection in each place.
    serials: Vec<u64>,
    /// No connection is accepted until then.
    paused: Option<Instant>,
    /// Next check for idle connections; `None` without connections.
    sweep: Option<Instant>,
    /// Limits log entries about refused connections and about resets.
    said: [Quiet; 2],
    pool: Pool,
    report: RelayReport,
}

impl Relay {
    /// Listens.
    ///
    /// # Errors
    /// If it would connect to itself, may not have that many connections, or cannot listen there.
    pub fn open(config: RelayConfig) -> Result<Self, RelayError> {
        refuse_loop(config.target, config.listen)?;
        if config.pool.as_bytes() == 0 {
            return Err(RelayError::Nothing("pool"));
        }
        if config.idle_timeout.is_zero() {
            return Err(RelayError::Nothing("idle timeout"));
        }
        if config.connections == 0 {
            return Err(RelayError::Nothing("limit of connections"));
        }
        open::allow_descriptors(config.connections)?;
        let listener = open::listen(&config)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|error| failed("wait for connections")(error.into()))?;
        let address = listener.local_addr().map_err(failed("listen"))?;
        let address = address.as_socket().unwrap_or(config.listen);
        refuse_loop(config.target, address)?;
        let most = usize::try_from(config.pool.as_bytes()).unwrap_or(usize::MAX);
        let relay = Self {
            config,
            listener,
            epoll,
            connections: Vec::new(),
            free: Vec::new(),
            left: Vec::new(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            serials: Vec::new(),
            paused: None,
            sweep: None,
            said: [Quiet::NEW; 2],
            pool: Pool::new(most),
            report: RelayReport::new(address),
        };
        relay.watch_listener(EventFlags::IN, true)?;
        Ok(relay)
    }

    /// The address where it listens.
    pub const fn listens_at(&self) -> SocketAddr {
        self.report.listen
    }

    /// Its counters.
    pub fn report(&self) -> RelayReport {
        let [to_servers_bytes, to_clients_bytes] = self.pool.passed;
        RelayReport {
            to_servers_bytes,
            to_clients_bytes,
            held_bytes: self.pool.held as u64,
            most_held_bytes: self.pool.most_held as u64,
            ..self.report.clone()
        }
    }

    /// Relays until `stop` is readable. It then resets all connections, because it cannot know whether their
    /// transfers were complete. Logs the counters whenever `tell` becomes readable.
    ///
    /// # Errors
    /// If polling fails.
    pub fn run(&mut self, stop: BorrowedFd<'_>, tell: BorrowedFd<'_>) -> Result<(), RelayError> {
        let RelayConfig {
            target,
            pool,
            connections,
            ..
        } = &self.config;
        tracing::info!(listen = %self.report.listen, %target, %pool, connections, "relaying");
        self.watch(stop, STOP, EventFlags::IN)?;
        self.watch(tell, TELL, EventFlags::IN | EventFlags::ET)?;
        let mut events = [MaybeUninit::uninit(); 256];
        loop {
            let timeout = self.timeout();
            let ready = match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
                Ok((ready, _)) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(failed("wait for connections")(error.into())),
            };
            for event in ready.iter().copied() {
                match event.data.u64() {
                    STOP => {
                        self.end();
                        return Ok(());
                    }
                    TELL => self.tell(),
                    LISTENER => self.accept(),
                    connection => self.handle_event(connection, event),
                }
            }
            for _ in 0..self.ready.len() {
                if let Some(place) = self.ready.pop_front()
                    && let Some(connection) = &mut self.connections[place]
                {
                    connection.queued = false;
                    let turn = connection.pass_on(&mut self.pool);
                    self.follow(place, turn);
                }
            }
            self.on_time(Instant::now())?;
            self.free.append(&mut self.left);
        }
    }

    fn watch(&self, what: BorrowedFd<'_>, name: u64, flags: EventFlags) -> Result<(), RelayError> {
        epoll::add(&self.epoll, what, EventData::new_u64(name), flags)
            .map_err(|error| failed("wait for connections")(error.into()))
    }

    fn watch_listener(&self, flags: EventFlags, first: bool) -> Result<(), RelayError> {
        let name = EventData::new_u64(LISTENER);
        let told = match first {
            true => epoll::add(&self.epoll, &self.listener, name, flags),
            false => epoll::modify(&self.epoll, &self.listener, name, flags),
        };
        told.map_err(|error| failed("wait for connections")(error.into()))
    }

    /// Time until something is due without an event.
    fn timeout(&self) -> Option<Timespec> {
        if !self.ready.is_empty() {
            return Some(Timespec::default());
        }
        let answer = self.waiting.front().map(|(until, ..)| *until);
        let next = [answer, self.paused, self.sweep];
        let next = next.into_iter().flatten().min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        })
    }

    /// Resets connections that have reached the idle timeout.
    fn end_idle(&mut self, now: Instant) {
        let limit = self.config.idle_timeout;
        let idle =
            |connection: &Connection| now.saturating_duration_since(connection.last) >= limit;
        for place in 0..self.connections.len() {
            if self.connections[place].as_ref().is_some_and(idle) {
                self.follow(place, Turn::Over(End::Idle));
            }
        }
        let next = now + SWEEP.min(limit / 16);
        self.sweep = (self.report.open > 0).then_some(next);
    }

    /// Resets the connection that has been idle longest, if it was idle long enough. Returns whether a place
    /// is free now.
    fn make_room(&mut self, now: Instant) -> bool {
        let places = self.connections.iter().zip(0..);
        let there =
            places.filter_map(|(connection, place)| Some((connection.as_ref()?.last, place)));
        let Some((last, place)) = there.min() else {
            return false;
        };
        let yields =
            now.saturating_duration_since(last) >= YIELDS_AFTER.min(self.config.idle_timeout);
        if yields {
            self.follow(place, Turn::Over(End::Idle));
        }
        yields
    }

    /// Gives up targets that have not answered, resets idle connections, and resumes accepting.
    fn on_time(&mut self, now: Instant) -> Result<(), RelayError> {
        while let Some((until, place, serial)) = self.waiting.front().copied() {
            let connection = self.connections[place].as_ref();
            let waits = connection.is_some_and(Connection::is_connecting);
            let waits = waits && self.serials[place] == serial;
            if waits && until > now {
                break;
            }
            self.waiting.pop_front();
            if waits {
                let error = io::ErrorKind::TimedOut.into();
                self.follow(place, Turn::Over(End::Unreachable(error)));
            }
        }
        if self.sweep.is_some_and(|due| due <= now) {
            self.end_idle(now);
        }
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
            self.watch_listener(EventFlags::IN, false)?;
        }
        Ok(())
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_IN_A_ROW {
            let client = match self.listener.accept() {
                Ok((client, _)) => client,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        tracing::warn!(%error, "no connection can be taken for a moment");
                        self.paused = Some(Instant::now() + PAUSE);
                        // The listener would be ready all the time.
                        let _refused = self.watch_listener(EventFlags::empty(), false);
                        return;
                    }
                    // The client has disconnected before it was accepted.
                    _ => continue,
                },
            };
            self.report.accepted += 1;
            let full = self.report.open >= self.config.connections as u64;
            if full && !self.make_room(Instant::now()) {
                self.report.refused += 1;
                reset(&client);
                let total = || self.report.refused;
                if let Some([total, new]) = self.said[0].speak(clock::now(), total) {
                    let limit = self.config.connections;
                    tracing::warn!(limit, new, total, "refused: there are too many connections");
                }
                continue;
            }
            self.begin(client);
        }
    }

    /// Connects an accepted client to its target.
    fn begin(&mut self, client: Socket) {
        let Self { config, report, .. } = self;
        let begun = || -> io::Result<Option<(Socket, SocketAddr)>> {
            open::tell_client(&client)?;
            let to = open::destination(&client, config.target)?;
            let mine = match config.target {
                Target::Address(_) => false,
                Target::Original { .. } if config.local_targets => {
                    open::is_itself(to, report.listen)
                }
                Target::Original { .. } => open::is_local(to.ip()),
            };
            if mine {
                tracing::warn!(
                    %to,
                    why = "this machine's own services are not for the relay's clients",
                    "a connection is refused"
                );
                return Ok(None);
            }
            Ok(Some((open::connect(to, &client, config)?, to)))
        };
        match begun() {
            Ok(Some((server, to))) => self.enter(Connection::new(client, server), to),
            Ok(None) => {
                self.report.local += 1;
                reset(&client);
            }
            Err(error) => {
                tracing::info!(%error, "a connection has no reachable target");
                self.report.unreachable += 1;
                reset(&client);
            }
        }
    }

    fn enter(&mut self, connection: Connection, to: SocketAddr) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.serials.push(0);
            self.connections.len() - 1
        });
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for leg in [CLIENT, SERVER] {
            let socket = connection.socket(leg).as_fd();
            if let Err(error) = self.watch(socket, (2 * place + leg) as u64, flags) {
                tracing::warn!(%error, "a connection is cut");
                self.report.cut += 1;
                let end = End::Cut(io::Error::other("epoll"));
                connection.close(&end, &mut self.pool);
                self.left.push(place);
                return;
            }
        }
        self.serials[place] += 1;
        let until = Instant::now() + self.config.connect_timeout;
        self.waiting.push_back((until, place, self.serials[place]));
        let soon = Instant::now() + SWEEP.min(self.config.idle_timeout / 16);
        self.sweep = self.sweep.or(Some(soon));
        self.report.open += 1;
        self.report.most_open = self.report.most_open.max(self.report.open);
        tracing::debug!(place, %to, "a connection begins");
        self.connections[place] = Some(connection);
    }

    fn handle_event(&mut self, name: u64, event: Event) {
        let (place, leg) = (name as usize / 2, name as usize % 2);
        // It may have ended in this turn.
        if let Some(connection) = &mut self.connections[place] {
            let turn = connection.handle_event(leg, event.flags, &mut self.pool);
            self.follow(place, turn);
        }
    }

    /// Applies the result of a turn of a connection.
    fn follow(&mut self, place: usize, turn: Turn) {
        let end = match turn {
            Turn::Waits => return,
            Turn::GoesOn => {
                if let Some(connection) = &mut self.connections[place]
                    && !std::mem::replace(&mut connection.queued, true)
                {
                    self.ready.push_back(place);
                }
                return;
            }
            Turn::Over(end) => end,
        };
        let report = &mut self.report;
        match &end {
            End::Closed => report.closed += 1,
            End::Dead { leg: CLIENT, .. } => report.reset_by_client += 1,
            End::Dead { .. } => report.reset_by_server += 1,
            End::Unreachable(_) => report.unreachable += 1,
            End::Idle => report.idle += 1,
            End::Cut(_) => report.cut += 1,
        }
        match &end {
            End::Closed => tracing::debug!(place, "a connection has ended"),
            End::Dead { leg, error } => {
                let side = ["client", "server"][*leg];
                tracing::debug!(place, side, %error, "a connection is reset");
                let total = || report.reset_by_client + report.reset_by_server;
                if let Some([total, new]) = self.said[1].speak(clock::now(), total) {
                    let why = "one of their ends has gone";
                    tracing::info!(new, total, last = side, why, "connections are reset");
                }
            }
            End::Idle => tracing::debug!(place, "a connection has been idle for too long"),
            End::Unreachable(error) => {
                let target = self.config.target;
                tracing::info!(%target, %error, "the target is not there");
            }
            End::Cut(error) => tracing::warn!(%error, "a connection is cut"),
        }
        report.open -= 1;
        if let Some(connection) = self.connections[place].take() {
            connection.close(&end, &mut self.pool);
            self.left.push(place);
        }
        if self.report.open == 0 {
            self.pool.give_up_spares();
        }
    }

    fn tell(&self) {
        let report = self.report();
        tracing::info!(
            open = report.open,
            accepted = report.accepted,
            closed = report.closed,
            reset_by_client = report.reset_by_client,
            reset_by_server = report.reset_by_server,
            unreachable = report.unreachable,
            local = report.local,
            idle = report.idle,
            refused = report.refused,
            to_servers_bytes = report.to_servers_bytes,
            to_clients_bytes = report.to_clients_bytes,
            held_bytes = report.held_bytes,
            "status"
        );
    }

    /// Resets all connections.
    fn end(&mut self) {
        for connection in self.connections.drain(..).flatten() {
            self.report.cut += 1;
            self.report.open -= 1;
            let end = End::Cut(io::ErrorKind::ConnectionAborted.into());
            connection.close(&end, &mut self.pool);
        }
        tracing::info!(reset = self.report.cut, "the relay ends");
    }
}
