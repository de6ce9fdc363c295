//! One connection that is split: two sockets, and of each direction what waits between them.

use std::io;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::pipe::Pipe;

/// A leg by its place: to the client, or to the server. A direction has the number of the leg it comes from.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Steps of a connection in a row, before others have their turn.
const STEPS_IN_A_ROW: usize = 16;

/// What is there for all connections of a relay.
#[derive(Debug)]
pub(super) struct Pool {
    /// One direction holds at most so many bytes.
    pub(super) most: usize,
    /// Empty pipes for whoever needs one next.
    spares: Vec<Pipe>,
    /// Bytes that wait in all pipes, and the most that did.
    pub(super) held: usize,
    pub(super) most_held: usize,
    /// Bytes passed on, by direction.
    pub(super) passed: [u64; 2],
}

impl Pool {
    /// Pipes that are kept for the next ones while there are connections.
    const SPARES: usize = 32;

    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            spares: Vec::new(),
            held: 0,
            most_held: 0,
            passed: [0; 2],
        }
    }

    fn lend(&mut self) -> io::Result<Pipe> {
        match self.spares.pop() {
            Some(pipe) => Ok(pipe),
            None => Pipe::open(self.most),
        }
    }

    fn take_back(&mut self, pipe: Pipe) {
        self.held -= pipe.held();
        if pipe.held() == 0 && self.spares.len() < Self::SPARES {
            self.spares.push(pipe);
        }
    }

    /// Nobody will need a pipe soon.
    pub(super) fn give_up_spares(&mut self) {
        self.spares.clear();
    }
}

/// Why a connection does not go on.
#[derive(Debug)]
pub(super) enum End {
    /// Both directions are through.
    Closed,
    /// One leg is dead.
    Dead { leg: usize, error: io::Error },
    /// The target does not answer.
    Unreachable(io::Error),
    /// Nothing has passed for too long, or for long where another needs its place.
    Idle,
    /// The relay ends it: the system gives nothing to pass bytes on with, or it is asked to stop.
    Cut(io::Error),
}

/// What a turn of a connection comes to.
#[derive(Debug)]
pub(super) enum Turn {
    /// It waits for its sockets.
    Waits,
    /// It could go on at once.
    GoesOn,
    /// It is over.
    Over(End),
}

/// One of its two sockets, and what is known of it.
#[derive(Debug)]
struct Leg {
    socket: Socket,
    readable: bool,
    writable: bool,
}

/// What is read of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// More may come.
    Open,
    /// Its end has come; what is before it may still wait.
    Ended,
    /// Its end has been passed on.
    Through,
}

#[derive(Debug)]
struct Direction {
    pipe: Option<Pipe>,
    reading: Reading,
}

/// A connection with both its legs.
#[derive(Debug)]
pub(super) struct Connection {
    legs: [Leg; 2],
    /// By the leg that they come from.
    directions: [Direction; 2],
    /// Whether the server's leg has not been answered yet.
    connecting: bool,
    /// Whether it has a turn waiting.
    pub(super) queued: bool,
    /// When something passed last, or it began.
    pub(super) last: Instant,
}

impl Connection {
    pub(super) fn new(client: Socket, server: Socket) -> Self {
        let leg = |socket| Leg {
            socket,
            readable: false,
            writable: false,
        };
        let direction = || Direction {
            pipe: None,
            reading: Reading::Open,
        };
        Self {
            legs: [leg(client), leg(server)],
            directions: [direction(), direction()],
            connecting: true,
            queued: false,
            last: Instant::now(),
        }
    }

    pub(super) fn socket(&self, leg: usize) -> &Socket {
        &self.legs[leg].socket
    }

    pub(super) const fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// The system says what has become of a leg; passes on what can be.
    pub(super) fn handle_event(&mut self, leg: usize, flags: EventFlags, pool: &mut Pool) -> Turn {
        let reads = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let writes = EventFlags::OUT | EventFlags::HUP | EventFlags::ERR;
        let Leg {
            socket,
            readable,
            writable,
        } = &mut self.legs[leg];
        *readable |= flags.intersects(reads);
        *writable |= flags.intersects(writes);
        if flags.contains(EventFlags::ERR) {
            let error = socket.take_error().and_then(|error| match error {
                Some(error) => Err(error),
                None => Ok(()),
            });
            if let Err(error) = error {
                // One that is there may be gone again before anybody looks.
                let there = error.kind() == io::ErrorKind::ConnectionReset;
                return Turn::Over(match self.connecting && leg == SERVER && !there {
                    true => End::Unreachable(error),
                    false => End::Dead { leg, error },
                });
            }
        }
        if leg == SERVER && self.connecting && self.legs[SERVER].writable {
            self.connecting = false;
        }
        self.pass_on(pool)
    }

    /// Passes on what can be, both ways.
    pub(super) fn pass_on(&mut self, pool: &mut Pool) -> Turn {
        if self.connecting {
            return Turn::Waits;
        }
        let mut goes_on = false;
        for from in [CLIENT, SERVER] {
            match self.pass_on_from(from, pool) {
                Ok(more) => goes_on |= more,
                Err(end) => return Turn::Over(end),
            }
        }
        let through = |direction: &Direction| direction.reading == Reading::Through;
        match (self.directions.iter().all(through), goes_on) {
            (true, _) => Turn::Over(End::Closed),
            (false, true) => Turn::GoesOn,
            (false, false) => Turn::Waits,
        }
    }

    /// Passes on in one direction until a socket does not go on, or it is the turn of others; whether it is that.
    fn pass_on_from(&mut self, from: usize, pool: &mut Pool) -> Result<bool, End> {
        for _ in 0..STEPS_IN_A_ROW {
            let took = self.take(from, pool)?;
            let gave = self.give(from, pool)?;
            if !took && !gave {
                return Ok(false);
            }
            self.last = Instant::now();
        }
        Ok(true)
    }

    /// Takes in what has come at leg `from`; whether something has, or its end.
    fn take(&mut self, from: usize, pool: &mut Pool) -> Result<bool, End> {
        let leg = &mut self.legs[from];
        let direction = &mut self.directions[from];
        let held = direction.pipe.as_ref().map_or(0, Pipe::held);
        if direction.reading != Reading::Open || !leg.readable || held >= pool.most {
            return Ok(false);
        }
        let pipe = match &mut direction.pipe {
            Some(pipe) => pipe,
            place => place.insert(pool.lend().map_err(End::Cut)?),
        };
        let taken = pipe.fill(&leg.socket, pool.most - held);
        match taken {
            Ok(0) => direction.reading = Reading::Ended,
            Ok(taken) => {
                pool.held += taken;
                pool.most_held = pool.most_held.max(pool.held);
            }
            Err(error) if is_patient(&error) => {
                // A pipe that is not empty may be full instead.
                if held == 0 {
                    leg.readable = false;
                    direction.give_back(pool);
                }
                return Ok(false);
            }
            Err(error) => return Err(End::Dead { leg: from, error }),
        }
        Ok(true)
    }

    /// Gives what was taken in to the other leg, and its end behind it; whether that went on.
    fn give(&mut self, from: usize, pool: &mut Pool) -> Result<bool, End> {
        let to = 1 - from;
        let leg = &mut self.legs[to];
        let direction = &mut self.directions[from];
        let mut gave = false;
        if let Some(pipe) = direction.pipe.as_mut().filter(|pipe| pipe.held() > 0) {
            if !leg.writable {
                return Ok(false);
            }
            match pipe.drain(&leg.socket) {
                Ok(given) => {
                    pool.held -= given;
                    pool.passed[from] += given as u64;
                    gave = given > 0;
                }
                Err(error) if is_patient(&error) => leg.writable = false,
                Err(error) => return Err(End::Dead { leg: to, error }),
            }
        }
        let empty = direction.pipe.as_ref().is_none_or(|pipe| pipe.held() == 0);
        if direction.reading == Reading::Ended && empty {
            let shut = leg.socket.shutdown(Shutdown::Write);
            shut.map_err(|error| End::Dead { leg: to, error })?;
            direction.reading = Reading::Through;
            direction.give_back(pool);
        }
        Ok(gave)
    }

    /// Both legs are closed: by a reset, unless both directions are through.
    pub(super) fn close(mut self, end: &End, pool: &mut Pool) {
        for direction in &mut self.directions {
            direction.give_back(pool);
        }
        if !matches!(end, End::Closed) {
            reset(&self.legs[CLIENT].socket);
            reset(&self.legs[SERVER].socket);
        }
    }
}

impl Direction {
    fn give_back(&mut self, pool: &mut Pool) {
        if let Some(pipe) = self.pipe.take() {
            pool.take_back(pipe);
        }
    }
}

/// Closing this socket will reset its connection.
pub(super) fn reset(socket: &Socket) {
    // One that is dead needs no reset.
    let _refused = socket.set_linger(Some(Duration::ZERO));
}

/// Whether it will go on later.
fn is_patient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
