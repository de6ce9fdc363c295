//! Frames on their way to the underlay, in batches: one system call for many, in order.

use std::io::{self, IoSlice};

use airlane_base::Instant;
use airlane_link::wire::LIVE_HEADER_ROOM;

use super::drops::{Drops, Reason};
use crate::packet::LivePacket;
use crate::underlay::{BATCH, Underlay};

/// One datagram: a header, then a shared packet or nothing.
#[derive(Debug)]
struct Datagram {
    header: [u8; LIVE_HEADER_ROOM],
    header_len: usize,
    payload: Option<LivePacket>,
}

impl Datagram {
    fn parts(&self) -> [IoSlice<'_>; 2] {
        let payload = self.payload.as_ref().map_or(&[][..], LivePacket::bytes);
        [
            IoSlice::new(&self.header[..self.header_len]),
            IoSlice::new(payload),
        ]
    }
}

/// What the underlay has not taken yet.
#[derive(Debug)]
pub(super) struct Transmit {
    batch: Vec<Datagram>,
    /// The underlay's buffer was full. Nothing more goes in until it has room.
    blocked: bool,
    /// Datagrams may be fragmented until then: some were made before the path became narrower.
    fragments_until: Option<Instant>,
    /// A datagram did not fit the path.
    narrow: bool,
    pub(super) datagrams_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) narrowed: u64,
}

/// How long datagrams of before may be on their way after the path became narrower.
const FRAGMENTS_FOR: airlane_base::Duration = airlane_base::Duration::from_secs(10);

impl Transmit {
    pub(super) fn new() -> Self {
        Self {
            batch: Vec::with_capacity(BATCH),
            blocked: false,
            fragments_until: None,
            narrow: false,
            datagrams_sent: 0,
            bytes_sent: 0,
            narrowed: 0,
        }
    }

    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(super) fn is_full(&self) -> bool {
        self.batch.len() >= BATCH
    }

    /// Whether a datagram did not fit the path since the last question.
    pub(super) fn path_became_narrow(&mut self) -> bool {
        std::mem::take(&mut self.narrow)
    }

    pub(super) fn push(
        &mut self,
        header: [u8; LIVE_HEADER_ROOM],
        header_len: usize,
        payload: Option<LivePacket>,
    ) {
        self.batch.push(Datagram {
            header,
            header_len,
            payload,
        });
    }

    /// Gives the underlay what waits, in order. What it does not take and never will is counted.
    pub(super) fn flush(&mut self, now: Instant, underlay: &Underlay, drops: &mut Drops) {
        if self.fragments_until.is_some_and(|until| now >= until) {
            self.fragments_until = None;
            let _best_effort = underlay.allow_fragments(false);
        }
        self.blocked = false;
        let mut done = 0;
        while done < self.batch.len() {
            let waiting = &self.batch[done..];
            let sent = match waiting {
                [one] => underlay.send_one(&one.parts()).map(|()| 1),
                many => {
                    let parts: Vec<_> = many.iter().map(Datagram::parts).collect();
                    underlay.send(&parts)
                }
            };
            let reason = match sent {
                Ok(sent) => {
                    for datagram in &waiting[..sent.min(waiting.len())] {
                        let payload = datagram.payload.as_ref().map_or(0, |p| p.bytes().len());
                        self.bytes_sent += (datagram.header_len + payload) as u64;
                    }
                    self.datagrams_sent += sent as u64;
                    done += sent;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => match error.raw_os_error() {
                    // The path has become narrower than the frame. A service that never gives up
                    // would send it for ever, so it travels in fragments, this once.
                    Some(libc::EMSGSIZE) if self.fragments_until.is_none() => {
                        self.narrow = true;
                        self.narrowed += 1;
                        self.fragments_until = Some(now + FRAGMENTS_FOR);
                        if underlay.allow_fragments(true).is_ok() {
                            continue;
                        }
                        Reason::TooBig
                    }
                    Some(libc::EMSGSIZE) => Reason::TooBig,
                    Some(libc::ENOBUFS | libc::ENOMEM) => Reason::NoBuffer,
                    _ => Reason::NotSent,
                },
            };
            drops.count(now, reason);
            done += 1;
        }
        self.batch.drain(..done);
    }
}
