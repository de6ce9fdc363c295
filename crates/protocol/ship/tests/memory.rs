//! The costliest lists that a sender may send: what they take at the receiver is bounded by their length on the wire.
//!
//! The whole test is one function, because the counter covers the process.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::convert::Infallible;

use airlane_base::{Duration, Instant, Rate};
use airlane_ship::{Entry, Kind, Manifest, Ranges, ShipReceiver, ShipReceiverPhase, Shipper};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn entry(path: String, kind: Kind, bytes: u64) -> Entry {
    Entry {
        path,
        kind,
        bytes,
        mode: 0o600,
        modified_ns: 1,
    }
}

/// What both ends allocate at most until the receiver has the list and asks for everything, MB.
fn megabytes(entries: Vec<Entry>) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let mut now = Instant::ORIGIN;
    let list = Manifest::new(entries).unwrap();
    let total = list.total();
    let most = Rate::from_bps(1_000_000_000).unwrap();
    let mut shipper = Shipper::new(now, list, &[1_448], 7, most).unwrap();
    let mut receiver = ShipReceiver::new(now, 1);
    let mut out = [0; 2_048];
    let mut zeros = |_: u64, _: &mut [u8]| Ok::<_, Infallible>(());
    let mut nowhere = |_: u64, _: &[u8]| Ok::<_, Infallible>(());
    while receiver.phase() != ShipReceiverPhase::Receiving {
        now += Duration::from_millis(1);
        shipper.handle_timeout(now);
        receiver.handle_timeout(now);
        while let Ok(Some(len)) = shipper.poll_transmit(now, &mut out, &mut zeros) {
            let Ok(()) = receiver.handle(now, &out[..len], &mut nowhere);
        }
        if receiver.phase() == ShipReceiverPhase::Offered {
            receiver.ask_for(Ranges::all(total));
        }
        while let Some(len) = receiver.poll_transmit(now, &mut out) {
            shipper.handle(now, &out[..len]);
        }
        assert_ne!(
            receiver.phase(),
            ShipReceiverPhase::Failed,
            "{:?}",
            receiver.failure()
        );
        assert!(
            now < Instant::from_nanos(600_000_000_000),
            "the list does not arrive"
        );
    }
    (MEMORY.peak_usage() - before) >> 20
}

#[test]
fn a_list_costs_by_its_length_on_the_wire() {
    // Both lists are nearly as long as the longest message, 32 MiB; the sender's copies count, too.
    let deep = "a/".repeat(126);
    let deep = (0..90_000).map(|i| entry(format!("{deep}{i}"), Kind::File, 1));
    let many = (0..400_000).map(|i| entry(i.to_string(), Kind::Folder, 0));
    for taken in [megabytes(deep.collect()), megabytes(many.collect())] {
        assert!(taken < 256, "{taken} MB");
    }
    let long = vec![entry("long".to_owned(), Kind::File, u64::MAX)];
    assert!(megabytes(long) < 16);
}
