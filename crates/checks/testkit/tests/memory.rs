//! Memory of a running port: no allocation per packet once its buffers have reached their working size, and no
//! unbounded buffer, whatever the loss and the load.
//!
//! The whole test is one function, because the counter covers the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use airlane_base::{Duration, Instant, Rng, Streams};
use airlane_link::{Frame, FrameKind, Header, HeaderProfile, Port};
use airlane_testkit::{Setup, Sink, TestPacket, drain};

/// Counts allocations while enabled.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call goes to the system's allocator with its arguments unchanged; the counters
// neither allocate nor unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.load(Relaxed) {
            ALLOCATIONS.fetch_add(1, Relaxed);
            BYTES.fetch_add(layout.size() as i64, Relaxed);
        }
        // SAFETY: the caller's promises about the layout are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if COUNTS.load(Relaxed) {
            BYTES.fetch_sub(layout.size() as i64, Relaxed);
        }
        // SAFETY: the block came from `alloc` or `realloc` above, so from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if COUNTS.load(Relaxed) {
            ALLOCATIONS.fetch_add(1, Relaxed);
            BYTES.fetch_add(size as i64 - layout.size() as i64, Relaxed);
        }
        // SAFETY: as for `dealloc`; the new size is the caller's.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Counts only the ports' work, not the test's own queues.
fn counted<R>(work: impl FnOnce() -> R) -> R {
    COUNTS.store(true, Relaxed);
    let result = work();
    COUNTS.store(false, Relaxed);
    result
}

/// Buffers for a port's outputs, allocated before counting.
struct Room {
    frames: Vec<Frame<TestPacket>>,
    delivered: u64,
}

impl Sink<TestPacket> for Room {
    fn transmit(&mut self, frame: Frame<TestPacket>) {
        self.frames.push(frame);
    }
    fn deliver(&mut self, _: TestPacket) {
        self.delivered += 1;
    }
}

/// Two ports and a FIFO channel with random loss.
struct Link {
    ports: [Port<TestPacket>; 2],
    air: [VecDeque<(Instant, Frame<TestPacket>)>; 2],
    room: Room,
    rng: Rng,
    loss: f64,
    now: Instant,
}

impl Link {
    fn drain(&mut self, end: usize) {
        let (port, room) = (&mut self.ports[end], &mut self.room);
        counted(|| drain(port, self.now, room));
        for frame in self.room.frames.drain(..) {
            let len = self.ports[end].frame_len(&frame);
            let takes = Duration::from_nanos(len as u64 * 400) + Duration::from_millis(5);
            if !self.rng.chance(self.loss) {
                self.air[1 - end].push_back((self.now + takes, frame));
            }
        }
    }

    /// The next arrival or deadline, up to `end`.
    fn step(&mut self, end: Instant) -> bool {
        let arrivals = (0..2).filter_map(|e| self.air[e].front().map(|f| (f.0, e, true)));
        let deadlines = (0..2).filter_map(|e| self.ports[e].poll_timeout().map(|t| (t, e, false)));
        let Some((at, end_of_it, is_frame)) = arrivals.chain(deadlines).min() else {
            return false;
        };
        if at > end {
            return false;
        }
        self.now = self.now.max(at);
        let port = &mut self.ports[end_of_it];
        if is_frame {
            let (_, frame) = self.air[end_of_it]
                .pop_front()
                .expect("it has just been seen");
            counted(|| port.handle_frame(self.now, frame));
        } else {
            counted(|| port.handle_timeout(self.now));
        }
        self.drain(end_of_it);
        true
    }

    /// Offers packets to all services of both ends for a while, more than the link carries.
    fn run(&mut self, time: Duration, id: &mut u64) {
        let end = self.now + time;
        while self.now < end {
            for from in 0..2 {
                for service in 0..7 {
                    let packet = TestPacket::new(service, *id, 200 + *id as usize % 800);
                    *id += 1;
                    let port = &mut self.ports[from];
                    counted(|| port.handle_packet(self.now, packet));
                    self.drain(from);
                }
            }
            let next = self.now + Duration::from_millis(1);
            while self.step(next) {}
            self.now = next;
        }
    }
}

fn link(header: HeaderProfile, queue: &str, loss: f64) -> Link {
    let setup = Setup::new(header)
        .rate("20 Mbit/s")
        .service(0, 0.25, "kind = \"default\"", queue)
        .service(1, 0.25, "kind = \"sr-m2\", window = 100", queue)
        .service(2, 0.25, "kind = \"rlp\", window = 100", queue)
        .service(3, 0.25, "kind = \"rlp-oos\", window = 100", queue)
        .service(4, 0.25, "kind = \"gbn\", window = 100", queue)
        .service(5, 0.25, "kind = \"sr\", window = 100", queue)
        .service(6, 0.25, "kind = \"sr-bitmap\", window = 100", queue);
    Link {
        ports: [setup.build(), setup.build()],
        air: Default::default(),
        room: Room {
            frames: Vec::with_capacity(1_000),
            delivered: 0,
        },
        rng: Streams::new(5, 0).stream("loss"),
        loss,
        now: Instant::ORIGIN,
    }
}

#[test]
fn a_running_port_allocates_nothing_and_grows_no_more() {
    let mut id = 0;
    for header in [HeaderProfile::Study, HeaderProfile::Live] {
        for queue in [
            "kind = \"fq-codel\", limit = \"200 packets\"",
            "kind = \"drop-tail\", limit = \"50 packets\"",
            "kind = \"none\"",
        ] {
            for loss in [0.0, 0.1, 0.5] {
                let mut link = link(header, queue, loss);
                link.run(Duration::from_secs(2), &mut id);
                let (before, delivered) = (ALLOCATIONS.load(Relaxed), link.room.delivered);
                link.run(Duration::from_secs(2), &mut id);
                let allocations = ALLOCATIONS.load(Relaxed) - before;
                let delivered = link.room.delivered - delivered;
                assert!(
                    delivered > 3_000,
                    "{header:?}, {queue}, {loss}: {delivered}"
                );
                // A buffer may still grow to a length that it has not had before, and no more: each doubling is one
                // allocation, and the bounds are a window or two.
                let growth = if loss > 0.0 { 6 } else { 0 };
                assert!(
                    allocations <= growth,
                    "{header:?}, {queue}, loss {loss}: {allocations} allocations for {delivered} packets"
                );
            }
        }
    }

    jumps_while_the_link_is_busy();
    requests_for_the_same_frames();
}

/// Bytes by which a port has grown at the end of each of two rounds of inputs.
fn growth(
    port: &mut Port<TestPacket>,
    mut frame: impl FnMut(u64) -> Frame<TestPacket>,
) -> [i64; 2] {
    const STEPS: u64 = 20_000;
    let mut room = Room {
        frames: Vec::with_capacity(1_000),
        delivered: 0,
    };
    [0, 1].map(|round| {
        BYTES.store(0, Relaxed);
        for step in round * STEPS..(round + 1) * STEPS {
            let now = Instant::ORIGIN + Duration::from_millis(step);
            let frame = frame(step);
            counted(|| {
                port.handle_frame(now, frame);
                drain(port, now, &mut room)
            });
            room.frames.clear();
        }
        BYTES.load(Relaxed)
    })
}

fn frame(service: u8, kind: FrameKind, seq: u64, id: u64) -> Frame<TestPacket> {
    let mut header = Header::new(kind, seq as u32);
    header.service = service;
    let payload = kind
        .carries_packet()
        .then(|| TestPacket::new(service, id, 10));
    Frame::new(header, payload)
}

/// Original frames with gaps before them arrive, and the link is too busy for the requests.
fn jumps_while_the_link_is_busy() {
    for scheme in ["rlp", "rlp-oos", "gbn", "sr", "sr-m1", "sr-m2", "sr-bitmap"] {
        let scheme = format!("kind = \"{scheme}\", window = 100");
        let setup = Setup::new(HeaderProfile::Live).rate("10 bit/s").service(
            1,
            1.0,
            &scheme,
            "kind = \"none\"",
        );
        let grown = growth(&mut setup.build(), |step| {
            frame(1, FrameKind::Data, 40 * step + 39, step)
        });
        assert!(grown[0] < 100_000 && grown[1] <= 0, "{scheme}: {grown:?} B");
    }
}

/// The peer requests the same frames over and over, and gets them: each repair starts a timer.
fn requests_for_the_same_frames() {
    let scheme = "kind = \"sr-m2\", window = 100, timers = { ack = \"1 s\", nak = \"1 s\", \
                  keepalive = \"1 s\", rto = \"10000 s\" }";
    let setup = Setup::new(HeaderProfile::Live)
        .rate("1 Gbit/s")
        .unlimited()
        .service(1, 1.0, scheme, "kind = \"none\"");
    let mut port = setup.build();
    for id in 0..100 {
        port.handle_packet(Instant::ORIGIN, TestPacket::new(1, id, 10));
    }
    let grown = growth(&mut port, |step| frame(1, FrameKind::Nak, 1 + step % 99, 0));
    assert!(grown[0] < 100_000 && grown[1] <= 0, "{grown:?} B");
    assert!(
        port.ledger(1)
            .is_some_and(|books| books.repair_frames_sent > 30_000)
    );
}
