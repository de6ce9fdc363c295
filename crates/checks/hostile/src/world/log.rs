//! What nodes say in the log of what befalls them, from end to end.

use std::io;
use std::sync::{Arc, Mutex};

use super::*;
use crate::fault::Ns;

/// What is logged, as lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Two ends that find the rate of the pipe between them, a bulk flow and a thin one; after a while the way there takes less.
fn narrowed(seed: u64) -> World {
    let mut draw = Draw::new(seed, "narrowed");
    let rate = *draw.of(&[1_000_000, 4_000_000]);
    let room = rate / 8 * draw.within(50, 200) / 1_000;
    let pipe = Pipe::new(rate, draw.ms(2, 60), room.max(20_000), 0.0);
    let keys = [0; 2].map(|_| PrivateKey::generate(draw.key()));
    let ends = End::all(keys.into(), "auto", "", &mut draw).unwrap();
    let load = *draw.of(&[0.3, 0.8, 1.3]);
    let every = (1_200.0 * 8e9 / (rate as f64 * load)) as u64;
    let (port, lengths) = (
        *draw.of(&[443, 60_001]),
        *draw.of(&[(60, 1_200), (1_200, 1_200)]),
    );
    let flows = vec![
        Flow::new(0, (0, 1), port, every, lengths),
        Flow::new(1, (1, 0), 5_004, draw.ms(20, 100), (60, 200)),
    ];
    let narrow = Fault::Narrow {
        pipe: 0,
        // Below what the frames of the bulk flow take.
        mtu: draw.within(600, 1_250) as usize,
        lasts: Ns(40 * SECOND),
    };
    let faults = vec![(15 * SECOND, narrow)];
    let usual = vec![pipe.clone(), pipe];
    // Where a seed is odd no router says anything.
    World::start(2 * seed + 1, draw, ends, (usual, flows), faults).unwrap()
}

/// A path that swallows long datagrams is no policer.
#[test]
fn the_log_takes_a_black_hole_for_no_policer() {
    for seed in 0..12 {
        let log = Log::default();
        let writer = log.clone();
        let said = tracing_subscriber::fmt().with_ansi(false);
        let said = said.with_writer(move || writer.clone()).finish();
        let mut world = narrowed(seed);
        let ran = tracing::subscriber::with_default(said, || world.run(None));
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(ran, Ok(()), "{seed}: {:?}\n{said}", world.done.faults);
        assert!(said.contains("path MTU changed"), "{seed}: {said}");
        assert!(!said.contains("policed"), "{seed}: {said}");
    }
}
