//! A world: drawn, run, and checked.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use airlane_secure::PrivateKey;

use crate::draw::Draw;
use crate::end::End;
use crate::fault::Fault;
use crate::files::SERVICES;
use crate::network::Pipe;
use crate::traffic::{self, Flow};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The time that a driver lets pass between two turns that only deadlines caused, ns.
const QUANTUM: u64 = 250_000;
/// The number of datagrams that a replay can choose from.
const SEEN: usize = 512;
/// Turns in a row after which a deadline may not be due again at once.
const IDLE_TURNS: u32 = 20;
/// How long after the last fault flows must progress, and the longest gap, ns.
const PATIENCE: u64 = 10 * SECOND;
const WITHIN: u64 = 3 * SECOND;
/// Limit on a node's packet memory, bytes: more than the queues of one peer need. With 8 MB a base drops packets of
/// peers whose own queues are short.
const MEMORY: usize = 64 << 20;

/// A broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The world.
    pub seed: u64,
    /// When it happened, milliseconds.
    pub at_ms: u64,
    /// What happened.
    pub what: String,
    /// The faults before it.
    pub faults: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed, at_ms, what, ..
        } = self;
        write!(f, "seed {seed}, {at_ms} ms: {what}")
    }
}

/// The result of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Events handled.
    pub events: u64,
    /// Datagrams sent, and a checksum of them.
    pub datagrams: u64,
    /// See [`Outcome::datagrams`].
    pub checksum: u64,
    /// Packets of applications sent, and delivered.
    pub sent: u64,
    /// See [`Outcome::sent`].
    pub arrived: u64,
    /// Its faults.
    pub faults: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Arrive {
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
        pipe: usize,
    },
    Wake(usize),
    Send(usize),
    Fault(usize),
    Over(usize),
    Calm,
    Look,
}

#[derive(Debug)]
pub(crate) struct World {
    seed: u64,
    pub(crate) now: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// For the fate of datagrams, and the seeds of nodes.
    pub(crate) draw: Draw,
    pub(crate) ends: Vec<End>,
    addresses: Vec<Ipv4Addr>,
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) usual: Vec<Pipe>,
    flows: Vec<Flow>,
    pub(crate) faults: Vec<Fault>,
    /// Ports that the paths lead nowhere, and whether as destination or as source.
    pub(crate) swallowed: Vec<(SocketAddr, bool)>,
    calm: u64,
    pub(crate) seen: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
    done: Outcome,
}

/// Runs the world of a seed; `watch`, if there is one, gets the state of its ends every half second.
///
/// # Errors
/// The first broken law.
pub fn run(seed: u64, watch: Option<fn(u64, &str)>) -> Result<Outcome, Broken> {
    let broken = |at: u64, what: String, faults: &[String]| Broken {
        seed,
        at_ms: at / MS,
        what,
        faults: faults.to_vec(),
    };
    let mut world = World::draw(seed).map_err(|what| broken(0, what, &[]))?;
    let ran = world.run(watch);
    ran.map_err(|what| broken(world.now, what, &world.done.faults))?;
    Ok(world.done)
}

impl World {
    fn draw(seed: u64) -> Result<Self, String> {
        let mut draw = Draw::new(seed, "world");
        let ends = match draw.within(0, 10) {
            0..6 => 2,
            6..9 => draw.within(3, 6) as usize,
            _ => draw.within(6, 20) as usize,
        };
        let keys: Vec<PrivateKey> = (0..ends)
            .map(|_| PrivateKey::generate(draw.key()))
            .collect();
        let usual: Vec<Pipe> = (1..ends)
            .flat_map(|_| {
                let pipe = Pipe::draw(&mut draw);
                // Usually the same in both directions.
                let back = match draw.chance(0.7) {
                    true => pipe.clone(),
                    false => Pipe::draw(&mut draw),
                };
                [pipe, back]
            })
            .collect();
        let services = *draw.of(&SERVICES);
        let slowest = usual.iter().map(|pipe| pipe.rate).min().unwrap_or_default();
        let rate = match draw.chance(0.6) {
            true => "auto".to_owned(),
            false => format!("{} kbit/s", slowest * 9 / 10_000),
        };
        let all = End::all(keys, &rate, services, &mut draw)?;
        let flows = draw.within(1, 4) as usize * (ends - 1);
        let flows = (0..flows.min(12)).map(|number| {
            let station = 1 + number % (ends - 1);
            let (from, to) = if draw.chance(0.5) {
                (station, 0)
            } else {
                (0, station)
            };
            Flow::draw(number as u16, from, to, &mut draw)
        });
        let flows: Vec<Flow> = flows.collect();
        let count = draw.within(0, 12);
        let drawn = (0..count).map(|_| {
            let fault = Fault::draw(&mut draw, ends, usual.len());
            (draw.ms(1_000, 15_000), fault)
        });
        let mut faults: Vec<(u64, Fault)> = drawn.collect();
        faults.extend(Fault::draw_swallow(seed, ends));
        faults.sort_by_key(|(at, _)| *at);
        Self::start(seed, draw, all, (usual, flows), faults)
    }

    /// A world of these ends, pipes, flows and faults; `draw` also gives the start times of the flows.
    fn start(
        seed: u64,
        mut draw: Draw,
        ends: Vec<End>,
        (usual, flows): (Vec<Pipe>, Vec<Flow>),
        faults: Vec<(u64, Fault)>,
    ) -> Result<Self, String> {
        let over = faults.iter().map(|(at, fault)| at + fault.lasts()).max();
        let calm = over.unwrap_or(SECOND) + SECOND;
        let mut world = Self {
            seed,
            now: 0,
            order: 0,
            events: BinaryHeap::new(),
            draw: Draw::new(seed, "network"),
            addresses: ends.iter().map(|end| end.address).collect(),
            ends,
            pipes: usual.clone(),
            usual,
            flows,
            faults: Vec::new(),
            swallowed: Vec::new(),
            calm,
            seen: VecDeque::new(),
            done: Outcome {
                events: 0,
                datagrams: 0,
                checksum: 0xcbf2_9ce4_8422_2325,
                sent: 0,
                arrived: 0,
                faults: Vec::new(),
            },
        };
        for (number, (at, fault)) in faults.into_iter().enumerate() {
            world.done.faults.push(format!("{} ms: {fault:?}", at / MS));
            world.push(at, Event::Fault(number));
            world.push(at + fault.lasts(), Event::Over(number));
            world.faults.push(fault);
        }
        for flow in 0..world.flows.len() {
            let at = draw.ms(0, 1_000);
            world.push(at, Event::Send(flow));
        }
        world.push(calm, Event::Calm);
        world.push(SECOND, Event::Look);
        for end in 0..world.ends.len() {
            let seed = world.draw.key();
            world.ends[end].start(0, seed)?;
            world.limit_memory(end);
            world.settle(end)?;
        }
        Ok(world)
    }

    pub(crate) fn limit_memory(&mut self, end: usize) {
        if let Some(node) = &mut self.ends[end].node {
            node.set_most_memory(MEMORY);
        }
    }

    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn run(&mut self, watch: Option<fn(u64, &str)>) -> Result<(), String> {
        let within: Vec<u64> = self.flows.iter().map(|flow| self.within(flow)).collect();
        let end = self.calm + PATIENCE + within.iter().max().unwrap_or(&WITHIN);
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > end {
                break;
            }
            self.now = at;
            self.done.events += 1;
            if let (Event::Look, Some(watch)) = (&event, watch) {
                watch(self.now / MS, &self.states());
            }
            self.handle(event)?;
        }
        self.now = end;
        // Frames, acknowledgments and repairs for each packet, and hellos, probes and requests of each end.
        let most = 12 * self.done.sent + end / SECOND * 200 * self.ends.len() as u64;
        if self.done.datagrams > most {
            let (datagrams, packets) = (self.done.datagrams, self.done.sent);
            return Err(format!(
                "{datagrams} datagrams left for {packets} packets: {}",
                self.states()
            ));
        }
        for (number, flow) in self.flows.iter().enumerate() {
            if flow.last < end - within[number] {
                let (from, to) = (flow.from, flow.to);
                let last = flow.last / MS;
                return Err(format!(
                    "the flow {number} from end {from} to {to} does not move, the last of it came at {last} ms: {}",
                    self.states()
                ));
            }
        }
        Ok(())
    }

    /// How long a flow may take to progress: longer if more is offered than the pipe or the end's stated rate carries,
    /// since all flows share it.
    fn within(&self, flow: &Flow) -> u64 {
        let Some(pipe) = pipe_of(flow.from, flow.to) else {
            return WITHIN;
        };
        let times = |rate: u64, beside: &dyn Fn(&&Flow) -> bool| {
            let beside = self.flows.iter().filter(beside);
            beside.map(Flow::bits_per_second).sum::<u64>() / rate
        };
        let by_pipe = times(self.usual[pipe].rate, &|other| {
            pipe_of(other.from, other.to) == Some(pipe)
        });
        // A rate that is found has a limit that nothing here reaches.
        let stated = self.ends[flow.from].config.link.rate.as_bps();
        let by_end = times(stated, &|other| other.from == flow.from);
        WITHIN * (1 + by_pipe.max(by_end)).min(5)
    }

    /// The state of the ends, as they report it.
    fn states(&self) -> String {
        let ends = self.ends.iter().enumerate().map(|(number, end)| {
            let now = end.clock.at(self.now);
            let Some(node) = &end.node else {
                return format!("end {number} is off");
            };
            let status = node.status(now);
            let peers = status.peers.iter().map(|peer| {
                let services = peer.services.iter();
                let busy =
                    services.filter(|s| s.ledger.packets_offered + s.ledger.packets_delivered > 0);
                let services = busy.map(|s| {
                    let (name, wait, ledger) = (&s.name, s.queue_bytes, &s.ledger);
                    let (sent, repairs) = (ledger.frames_sent, ledger.repair_frames_sent);
                    let (came, delivered) = (ledger.frames_received, ledger.packets_delivered);
                    format!("{name}: {wait} B wait, sent {sent}, repairs {repairs}, came {came}, delivered {delivered}")
                });
                format!(
                    "{} {} at {} b/s, MTU {}, drops {:?}, {:?}",
                    peer.name,
                    peer.session.state,
                    peer.sending_rate_bps,
                    peer.path_mtu_bytes,
                    peer.drops,
                    services.collect::<Vec<_>>()
                )
            });
            let own: Vec<_> = status.drops.iter().filter(|(_, n)| **n > 0).collect();
            format!(
                "end {number}: [{}] {own:?}",
                peers.collect::<Vec<_>>().join("; ")
            )
        });
        ends.collect::<Vec<_>>().join(" | ")
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Arrive {
                from,
                to,
                mut bytes,
                pipe,
            } => {
                let Some(end) = self.ends.iter().position(|end| end.public == to) else {
                    return Ok(());
                };
                if !self.ends[end].is_awake(self.now) || !self.ends[end].is_wired {
                    return Ok(());
                }
                if let Some(pipe) = self.pipes.get(pipe)
                    && self.draw.chance(pipe.damage)
                    && !bytes.is_empty()
                {
                    let at = self.draw.within(0, bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << self.draw.within(0, 8);
                }
                self.ends[end].handle_datagram(self.now, from, &bytes);
                self.input(end)
            }
            Event::Wake(end) => {
                if self.ends[end].wake != self.now {
                    return Ok(());
                }
                self.ends[end].wake = u64::MAX;
                if !self.ends[end].is_awake(self.now) {
                    return Ok(());
                }
                self.ends[end].handle_timeout(self.now);
                self.settle(end)
            }
            Event::Send(flow) => {
                let (from, every) = (self.flows[flow].from, self.flows[flow].every);
                let next = self.now + self.draw.within(every / 2, every * 3 / 2);
                self.push(next, Event::Send(flow));
                if !self.ends[from].is_awake(self.now) {
                    return Ok(());
                }
                let packet = self.flows[flow].next(&self.addresses);
                self.done.sent += 1;
                self.ends[from].handle_packet(self.now, &packet);
                self.input(from)
            }
            Event::Fault(number) => self.begin(number),
            Event::Over(number) => self.end(number),
            Event::Calm => {
                for (pipe, usual) in self.pipes.iter_mut().zip(&self.usual) {
                    pipe.restore(usual);
                }
                for end in 0..self.ends.len() {
                    self.ends[end].is_wired = true;
                    if self.ends[end].node.is_none() {
                        self.restart(end)?;
                    }
                }
                Ok(())
            }
            Event::Look => {
                self.push(self.now + SECOND / 2, Event::Look);
                for (number, end) in self.ends.iter().enumerate() {
                    let taken = end
                        .node
                        .as_ref()
                        .map_or(0, airlane_node::Node::memory_bytes);
                    // Tolerance for one frame.
                    if taken > MEMORY + MEMORY / 8 + (1 << 18) {
                        return Err(format!("the packets of end {number} take {taken} B"));
                    }
                }
                Ok(())
            }
        }
    }

    /// An end has had an input.
    pub(crate) fn input(&mut self, end: usize) -> Result<(), String> {
        self.ends[end].idle_turns = 0;
        self.settle(end)
    }

    /// Polls all outputs of a node, and its next deadline.
    fn settle(&mut self, end: usize) -> Result<(), String> {
        let now = self.now;
        let said = self.said(end);
        self.ends[end].answer(now, said);
        let own = self.ends[end].clock.at(now);
        while let Some(node) = &mut self.ends[end].node
            && let Some((_link, packet)) = node.poll_deliver(own)
        {
            let taken = traffic::take(&mut self.flows, end, packet.bytes(), now, &self.addresses);
            taken.map_err(|wrong| format!("end {end} got what it must not: {wrong:?}"))?;
            self.done.arrived += 1;
        }
        self.send(end);
        let due = self.ends[end].deadline(now);
        if due <= now {
            self.ends[end].idle_turns += 1;
            if self.ends[end].idle_turns > IDLE_TURNS {
                return Err(format!(
                    "end {end} is due again and again, and does nothing: {}",
                    self.states()
                ));
            }
        } else {
            self.ends[end].idle_turns = 0;
        }
        let due = due.max(now + QUANTUM);
        if due < self.ends[end].wake {
            self.ends[end].wake = due;
            self.push(due, Event::Wake(end));
        }
        Ok(())
    }

    fn send(&mut self, end: usize) {
        let own = self.ends[end].clock.at(self.now);
        loop {
            let from = self.ends[end].public;
            let Some(node) = &mut self.ends[end].node else {
                return;
            };
            let Some(datagram) = node.poll_datagram(own) else {
                return;
            };
            let airlane_secure::PeerAddress::Udp(to) = datagram.to else {
                continue;
            };
            let bytes = datagram.bytes.to_vec();
            self.done.datagrams += 1;
            for byte in bytes.iter().chain(&self.now.to_le_bytes()) {
                let mixed = (self.done.checksum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                self.done.checksum = mixed;
            }
            if self.ends[end].is_wired {
                self.carry(end, from, to, bytes);
            }
        }
    }

    fn carry(&mut self, end: usize, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let other = self.ends.iter().position(|end| end.public == to);
        let Some(pipe) = other.and_then(|other| pipe_of(end, other)) else {
            return;
        };
        if self.seen.len() == SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back((from, to, bytes.clone()));
        let mut swallowed = self.swallowed.iter();
        if swallowed.any(|(port, is_inward)| *port == if *is_inward { to } else { from }) {
            return;
        }
        for at in self.pipes[pipe].carry(self.now, bytes.len(), &mut self.draw) {
            let bytes = bytes.clone();
            self.push(
                at,
                Event::Arrive {
                    from,
                    to,
                    bytes,
                    pipe,
                },
            );
        }
    }

    /// The path MTU that routers report to an end: some do, correctly.
    fn said(&self, end: usize) -> Option<usize> {
        let says = self.seed.is_multiple_of(2);
        let ways = (0..self.ends.len()).filter_map(|other| pipe_of(end, other));
        let least = ways.map(|pipe| self.pipes[pipe].mtu).min();
        least.filter(|_| says)
    }
}

/// The number of the pipe from one end to another: all lead to the first end, or away from it.
const fn pipe_of(from: usize, to: usize) -> Option<usize> {
    match (from, to) {
        (0, 0) => None,
        (0, to) => Some(2 * (to - 1)),
        (from, 0) => Some(2 * (from - 1) + 1),
        _ => None,
    }
}

#[cfg(test)]
mod log;
#[cfg(test)]
mod swallowed;
