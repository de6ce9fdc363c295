//! Hands frames and packets to transmitters, and shows the outcome to the observer.

use airlane_base::Instant;
use airlane_channel::{Channel, ChannelStats};
use airlane_link::{Frame, Port};

use super::observe::{Departure, Loss, Observer};
use crate::packet::Packet;

/// Hands a port's frame to the transmitter of a direction.
#[inline]
pub(super) fn put_on_link<O: Observer>(
    channel: &mut Channel<Frame<Packet>>,
    now: Instant,
    (out, port): (usize, &Port<Packet>),
    frame: Frame<Packet>,
    observer: &mut O,
) {
    let len = port.frame_len(&frame);
    let watched = O::WATCHES.then(|| frame.clone());
    // If the link sends at times of its own, its queue may be full: the channel counts the drop.
    let departure = transmit::<O, _>(channel, now, len, frame);
    if let Some(frame) = watched {
        observer.on_frame(now, out, port, &frame, departure);
    }
}

/// Shows the observer what the port at the near end of a direction has dropped, and the events of its services.
pub(super) fn show_port<O: Observer>(
    port: &mut Port<Packet>,
    now: Instant,
    out: usize,
    observer: &mut O,
) {
    for (service, reason, packet) in port.take_dropped() {
        observer.on_drop(now, out, service, reason, &packet);
    }
    for event in port.take_events() {
        observer.on_told(now, out, event);
    }
}

/// Hands something to a transmitter; if observed, determines its outcome.
#[inline(always)]
pub(super) fn transmit<O: Observer, T>(
    channel: &mut Channel<T>,
    now: Instant,
    len: usize,
    item: T,
) -> Departure {
    let before = O::WATCHES.then(|| *channel.stats());
    match channel.send(now, len, item) {
        Ok(departs) => Departure::Sent {
            start: match before {
                Some(_) => channel.last_start(),
                None => now,
            },
            departs,
            lost: before.and_then(|before| loss(&before, channel.stats())),
        },
        Err(_) => Departure::Dropped,
    }
}

/// Which kind of loss the counters show for the frame between the two readings.
pub(super) fn loss(before: &ChannelStats, after: &ChannelStats) -> Option<Loss> {
    if after.lost_air.frames == before.lost_air.frames {
        return None;
    }
    Some(if after.lost_policed.frames > before.lost_policed.frames {
        Loss::Policed
    } else if after.lost_handoff.frames > before.lost_handoff.frames {
        Loss::Handoff
    } else if after.lost_outage.frames > before.lost_outage.frames {
        Loss::Outage
    } else {
        Loss::Errors
    })
}
