//! Applications and their transport endpoints: what sends and receives at the ends of a flow.
//!
//! A flow is one component of the engine, with a single next deadline, although it has an end at each of two nodes.
//! It follows the sans-IO contract: give it one input, call [`poll_transmit`](Flow::poll_transmit) until it returns
//! nothing, then [`poll_timeout`](Flow::poll_timeout).

pub(crate) mod bulk;
pub(crate) mod clap;
pub(crate) mod conferencing;
pub(crate) mod custom;
pub(crate) mod datagrams;
pub(crate) mod end;
pub(crate) mod exchange;
pub(crate) mod mail;
pub(crate) mod pages;
pub(crate) mod place;
pub(crate) mod progress;
pub(crate) mod split;
pub(crate) mod talk;
pub(crate) mod telnet;
pub(crate) mod web;
pub(crate) mod window_probe;

use airlane_base::Instant;
use airlane_link::mobility::Hint;
use airlane_transport::clap::Status;

use crate::packet::Packet;
use crate::probe::DelayProbe;
use bulk::Bulk;
use clap::Clap;
use conferencing::Conferencing;
use custom::Custom;
use datagrams::Datagrams;
use end::End;
use exchange::Exchange;
use mail::Mail;
use pages::Pages;
use place::FlowPlace;
use progress::Progress;
use split::Split;
use talk::Talk;
use telnet::Telnet;
use web::Web;

/// One application with its endpoints.
#[derive(Debug)]
pub(crate) enum Flow {
    Bulk(Box<Bulk>),
    Clap(Box<Clap>),
    Split(Box<Split>),
    Conferencing(Box<Conferencing>),
    Pages(Box<Talk<Pages>>),
    Web(Box<Web>),
    Telnet(Box<Talk<Telnet>>),
    Mail(Box<Talk<Mail>>),
    Custom(Box<Custom>),
}

macro_rules! each {
    ($flow:expr, $app:ident => $call:expr) => {
        match $flow {
            Flow::Bulk($app) => $call,
            Flow::Clap($app) => $call,
            Flow::Split($app) => $call,
            Flow::Conferencing($app) => $call,
            Flow::Pages($app) => $call,
            Flow::Web($app) => $call,
            Flow::Telnet($app) => $call,
            Flow::Mail($app) => $call,
            Flow::Custom($app) => $call,
        }
    };
}

impl Flow {
    /// A packet has arrived at its destination node.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        each!(self, app => app.handle_packet(now, packet));
    }

    /// A packet has arrived corrupted, and the link can tell which packet it was.
    pub(crate) fn handle_destroyed(&mut self, packet: &Packet) {
        match self {
            Flow::Bulk(app) => app.handle_destroyed(packet),
            Flow::Split(app) => app.handle_destroyed(packet),
            Flow::Conferencing(_) | Flow::Clap(_) => {}
            Flow::Pages(app) => app.handle_destroyed(packet),
            Flow::Web(app) => app.handle_destroyed(packet),
            Flow::Telnet(app) => app.handle_destroyed(packet),
            Flow::Mail(app) => app.handle_destroyed(packet),
            Flow::Custom(app) => app.handle_destroyed(packet),
        }
    }

    /// Time has passed; an early call does nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        each!(self, app => app.handle_timeout(now));
    }

    /// One end of the flow learns that a link of its path went down or came back.
    pub(crate) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        match self {
            Flow::Bulk(app) => app.handle_hint(now, end, hint),
            // A hint does not say which leg of the path it concerns.
            Flow::Conferencing(_) | Flow::Split(_) | Flow::Clap(_) => {}
            Flow::Pages(app) => app.handle_hint(now, end, hint),
            Flow::Web(app) => app.handle_hint(now, end, hint),
            Flow::Telnet(app) => app.handle_hint(now, end, hint),
            Flow::Mail(app) => app.handle_hint(now, end, hint),
            Flow::Custom(app) => app.handle_hint(now, end, hint),
        }
    }

    /// Stops the applications: from now on they send nothing new.
    pub(crate) fn stop(&mut self, now: Instant) {
        each!(self, app => app.stop(now));
    }

    /// The interface of the first node reports its last interval.
    pub(crate) fn handle_status(&mut self, status: Status) {
        if let Flow::Clap(app) = self {
            app.handle_status(status);
        }
    }

    /// Writes the next packet to enter the network now into `packet`, and returns whether there was one. The packet
    /// is written in place: each move would stall on the stores just made.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        each!(self, app => app.poll_transmit(now, packet))
    }

    /// When `handle_timeout` is due.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        each!(self, app => app.poll_timeout())
    }

    /// Whether the application has finished its work.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        each!(self, app => app.is_finished())
    }

    /// The node where a packet of this flow enters the network.
    #[inline]
    pub(crate) fn origin(&self, packet: &Packet) -> u16 {
        match self {
            Flow::Split(app) => app.origin(packet),
            app => app.place().origin(packet),
        }
    }

    pub(crate) fn place(&self) -> &FlowPlace {
        each!(self, app => app.place())
    }

    /// User bytes delivered to the receiving application by the stop. Bytes against the main direction count only for
    /// custom applications.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        let received = |end: &End| end.endpoint().receiver().stats().delivered_bytes;
        match self {
            Flow::Bulk(app) => received(&app.ends()[1]),
            Flow::Split(app) => app.ends().last().map_or(0, received),
            Flow::Clap(app) => app.delivered_bytes(),
            Flow::Conferencing(app) => app.datagrams.bytes,
            Flow::Pages(app) => app.totals().delivered_bytes,
            Flow::Web(app) => app.totals().delivered_bytes,
            Flow::Telnet(app) => app.totals().delivered_bytes,
            Flow::Mail(app) => app.totals().delivered_bytes,
            Flow::Custom(app) => app.delivered_bytes(),
        }
    }

    /// Its progress probe, if it has one.
    pub(crate) fn progress(&self) -> Option<&Progress> {
        match self {
            Flow::Bulk(app) => app.progress.as_deref(),
            Flow::Conferencing(app) => app.progress.as_deref(),
            Flow::Clap(app) => app.progress.as_deref(),
            _ => None,
        }
    }

    /// Its datagrams, which are not retransmitted, if it sends any.
    fn datagrams(&self) -> Option<&Datagrams> {
        match self {
            Flow::Conferencing(app) => Some(&app.datagrams),
            Flow::Custom(app) => app.datagrams(),
            _ => None,
        }
    }

    /// After the stop: until when the run waits for packets of this flow whose fate is still unknown.
    pub(crate) fn awaited(&self) -> Option<Instant> {
        self.datagrams()?.awaited()
    }

    /// The station of the sending node has refused one of its packets.
    pub(crate) fn handle_refused(&mut self) {
        let progress = match self {
            Flow::Bulk(app) => &mut app.progress,
            Flow::Conferencing(app) => &mut app.progress,
            Flow::Clap(app) => &mut app.progress,
            _ => return,
        };
        if let Some(progress) = progress {
            progress.on_refused();
        }
    }

    /// Visits every end that sends over TCP, always in the same order.
    pub(crate) fn each_sender(&self, visit: impl FnMut(&End)) {
        let exchange = match self {
            Flow::Bulk(app) => return app.ends()[..1].iter().for_each(visit),
            Flow::Split(app) => return app.ends().iter().step_by(2).for_each(visit),
            Flow::Conferencing(_) | Flow::Clap(_) => return,
            Flow::Web(app) => {
                let ends = app.exchanges.iter().flat_map(Exchange::client_and_server);
                return ends.for_each(visit);
            }
            Flow::Pages(app) => &app.line.exchange,
            Flow::Telnet(app) => &app.line.exchange,
            Flow::Mail(app) => &app.line.exchange,
            Flow::Custom(app) => return app.ends().iter().for_each(visit),
        };
        exchange.client_and_server().into_iter().for_each(visit);
    }

    /// Durations of completed pages or responses, if the application has such.
    pub(crate) fn times(&self) -> Option<&DelayProbe> {
        match self {
            Flow::Bulk(_) | Flow::Split(_) | Flow::Conferencing(_) | Flow::Clap(_) => None,
            Flow::Pages(app) => Some(&app.line.times),
            Flow::Web(app) => Some(&app.times),
            Flow::Telnet(app) => Some(&app.line.times),
            Flow::Mail(app) => Some(&app.line.times),
            Flow::Custom(app) => Some(&app.times),
        }
    }
}
