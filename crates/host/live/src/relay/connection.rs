//! One split connection: two sockets, and for each direction the bytes that wait between them.

use std::io;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::pipe::Pipe;

/// Indices of the legs: to the client, and to the server. A direction has the index of the leg that it comes from.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Steps of one connection before others get their turn.
const STEPS_IN_A_ROW: usize = 16;

/// Resources shared by all connections of a relay.
#[derive(Debug)]
pub(super) struct Pool {
    /// Limit of bytes held by one direction.
    pub(super) most: usize,
    /// Empty pipes for reuse.
    spares: Vec<Pipe>,
    /// Bytes in all pipes, and the maximum so far.
    pub(super) held: usize,
    pub(super) most_held: usize,
    /// Bytes passed on, by direction.
    pub(super) passed: [u64; 2],
}

impl Pool {
    /// Limit of pipes kept for reuse while there are connections.
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

    /// Closes the spare pipes.
    pub(super) fn give_up_spares(&mut self) {
        self.spares.clear();
    }
}

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// Both directions were closed.
    Closed,
    /// One leg failed.
    Dead { leg: usize, error: io::Error },
    /// The target does not answer.
    Unreachable(io::Error),
    /// It was idle too long, or idle for long while another connection needed its place.
    Idle,
    /// The relay ended it: the system has no pipe for it, or the relay stops.
    Cut(io::Error),
}

/// Result of a turn of a connection.
#[derive(Debug)]
pub(super) enum Turn {
    /// It waits for its sockets.
    Waits,
    /// It has more to do at once.
    GoesOn,
    /// It is over.
    Over(End),
}

/// One of its two sockets, with its readiness.
#[derive(Debug)]
struct Leg {
    socket: Socket,
    readable: bool,
    writable: bool,
}

/// State of reading a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// More may arrive.
    Open,
    /// The FIN has arrived; bytes before it may still wait.
    Ended,
    /// The FIN has been passed on.
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
    /// Whether the connection to the server is still being established.
    connecting: bool,
    /// Whether it is in the queue for a turn.
    pub(super) queued: bool,
    /// Time of the last progress, or of the start.
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

    /// Handles an event of a leg, and passes on what it can.
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
                // A connection may be reset by the server right after it was established.
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

    /// Passes on what it can, in both directions.
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

    /// Passes on bytes in one direction until a socket blocks, or others get their turn. Returns whether
    /// there is more to do.
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

    /// Reads bytes from leg `from` into the pipe. Returns whether any arrived, or the FIN.
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
                // With bytes in the pipe, the pipe may be full instead of the socket empty.
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

    /// Writes the pipe's bytes, and then the FIN, to the other leg. Returns whether any were written.
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

    /// Closes both legs, by a reset unless both directions were closed.
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

/// Makes closing this socket reset its connection.
pub(super) fn reset(socket: &Socket) {
    // A failed socket needs no reset.
    let _refused = socket.set_linger(Some(Duration::ZERO));
}

/// Whether the operation can be retried later.
fn is_patient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
