//! Applies faults to a world, and ends them.

use std::net::{Ipv4Addr, SocketAddr};

use airlane_node::{PathFacts, ServiceChange};

use crate::fault::Fault;
use crate::world::{Event, World};

impl World {
    /// Restarts an end, without any of its previous state.
    pub(crate) fn restart(&mut self, end: usize) -> Result<(), String> {
        let seed = self.draw.key();
        self.ends[end].start(self.now, seed)?;
        self.limit_memory(end);
        self.input(end)
    }

    /// Injects a datagram that none of the ends has sent.
    fn inject(&mut self, at: u64, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let arrive = Event::Arrive {
            from,
            to,
            bytes,
            pipe: usize::MAX,
        };
        self.push(at, arrive);
    }

    /// Begins a fault.
    pub(crate) fn begin(&mut self, number: usize) -> Result<(), String> {
        let fault = self.faults[number].clone();
        let now = self.now;
        match fault {
            Fault::Cut { pipe, .. } => self.pipes[pipe].is_cut = true,
            Fault::CutAll { .. } => self.pipes.iter_mut().for_each(|pipe| pipe.is_cut = true),
            Fault::Loss { pipe, rate, .. } => self.pipes[pipe].loss = rate,
            Fault::Copies { pipe, rate, .. } => self.pipes[pipe].copies = rate,
            Fault::Late {
                pipe, rate, most, ..
            } => self.pipes[pipe].late = (rate, most.0),
            Fault::Damage { pipe, rate, .. } => self.pipes[pipe].damage = rate,
            Fault::Rate { pipe, times, .. } => {
                let rate = self.usual[pipe].rate as f64 * times;
                self.pipes[pipe].rate = (rate as u64).max(50_000);
            }
            Fault::Narrow { pipe, mtu, .. } => self.pipes[pipe].mtu = mtu,
            Fault::Replay { count, elsewhere } => {
                for _ in 0..count.min(self.seen.len() as u64) {
                    let which = self.draw.within(0, self.seen.len() as u64) as usize;
                    let (mut from, to, bytes) = self.seen[which].clone();
                    if elsewhere {
                        from = SocketAddr::new(Ipv4Addr::new(203, 0, 113, 9).into(), 9);
                    }
                    let at = now + self.draw.ms(0, 500);
                    self.inject(at, from, to, bytes);
                }
            }
            Fault::Stranger {
                end,
                count,
                changed,
            } => {
                for _ in 0..count {
                    let seen = match self.seen.is_empty() {
                        true => None,
                        false => {
                            let which = self.draw.within(0, self.seen.len() as u64) as usize;
                            Some(self.seen[which].clone())
                        }
                    };
                    let (from, mut bytes) = match seen.filter(|_| changed) {
                        Some((from, _, bytes)) => (from, bytes),
                        None => {
                            let length = self.draw.within(0, 300);
                            let bytes = (0..length).map(|_| self.draw.bits() as u8).collect();
                            (
                                SocketAddr::new(Ipv4Addr::new(203, 0, 113, 7).into(), 7),
                                bytes,
                            )
                        }
                    };
                    if !bytes.is_empty() {
                        let at = self.draw.within(0, bytes.len() as u64) as usize;
                        bytes[at] = bytes[at].wrapping_add(1 + self.draw.within(0, 255) as u8);
                    }
                    let (to, at) = (self.ends[end].public, now + self.draw.ms(0, 500));
                    self.inject(at, from, to, bytes);
                }
            }
            Fault::Restart { end, lasts } => {
                self.ends[end].node = None;
                self.ends[end].wake = u64::MAX;
                if lasts.0 == 0 {
                    return self.restart(end);
                }
            }
            Fault::Move { end } if end > 0 => {
                let host = Ipv4Addr::new(198, 51, 100, self.draw.within(1, 255) as u8);
                self.ends[end].public.set_ip(host.into());
            }
            Fault::Rebind { end } if end > 0 => {
                let port = self.draw.within(10_000, 60_000) as u16;
                self.ends[end].public.set_port(port);
            }
            Fault::Move { .. } | Fault::Rebind { .. } => {}
            Fault::Swallow { end, is_inward, .. } => {
                let port = self.ends[end].public;
                self.swallowed.push((port, is_inward));
            }
            Fault::Sleep { end, lasts } => self.ends[end].sleeps = now + lasts.0,
            Fault::Unplug { end, .. } => self.ends[end].is_wired = false,
            Fault::Reload { end } => return self.reload(end),
            Fault::Share { end, rate } => {
                let own = self.ends[end].clock.at(now);
                if self.ends[end].is_awake(now)
                    && let Some(node) = &mut self.ends[end].node
                {
                    let services = &node.config().link.services;
                    let name = services[services.len() / 2].name.clone();
                    let change = ServiceChange::Set { name, rate };
                    node.change_services(own, &change)
                        .map_err(|error| error.to_string())?;
                    return self.input(end);
                }
            }
        }
        Ok(())
    }

    /// Reloads a file with another weight.
    fn reload(&mut self, end: usize) -> Result<(), String> {
        if !self.ends[end].is_awake(self.now) {
            return Ok(());
        }
        let weight = *self.draw.of(&[0.5, 1.0, 4.0]);
        let mut file = self.ends[end].config.clone();
        for peer in &mut file.peers {
            peer.weight = weight;
        }
        let paths = vec![PathFacts::UNKNOWN; file.peers().len()];
        let (own, secrets) = (self.ends[end].clock.at(self.now), self.ends[end].secrets());
        if let Some(node) = &mut self.ends[end].node {
            let dry = node.reload(own, &file, Some(&secrets), &paths, true);
            dry.map_err(|error| error.to_string())?;
            let changes = node.reload(own, &file, Some(&secrets), &paths, false);
            changes.map_err(|error| error.to_string())?;
        }
        self.ends[end].config = file;
        self.input(end)
    }

    /// Ends a fault.
    pub(crate) fn end(&mut self, number: usize) -> Result<(), String> {
        match self.faults[number] {
            Fault::CutAll { .. } => self.pipes.iter_mut().for_each(|pipe| pipe.is_cut = false),
            Fault::Cut { pipe, .. }
            | Fault::Loss { pipe, .. }
            | Fault::Copies { pipe, .. }
            | Fault::Late { pipe, .. }
            | Fault::Damage { pipe, .. }
            | Fault::Rate { pipe, .. }
            | Fault::Narrow { pipe, .. } => {
                self.pipes[pipe].restore(&self.usual[pipe]);
            }
            Fault::Restart { end, .. } if self.ends[end].node.is_none() => {
                return self.restart(end);
            }
            Fault::Sleep { end, .. } if self.ends[end].is_awake(self.now) => {
                let (own, seed) = (self.ends[end].clock.at(self.now), self.draw.key());
                if let Some(node) = &mut self.ends[end].node {
                    node.renew_keys(own, seed);
                }
                self.ends[end].handle_timeout(self.now);
                return self.input(end);
            }
            Fault::Unplug { end, .. } => {
                self.ends[end].is_wired = true;
                let own = self.ends[end].clock.at(self.now);
                if self.ends[end].is_awake(self.now)
                    && let Some(node) = &mut self.ends[end].node
                {
                    node.handle_interface_back(own);
                    return self.input(end);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
