use airlane_base::{Duration, Rate};
use proptest::prelude::*;

use super::*;
use crate::config::PortConfig;
use crate::flow::{FlowKey, UDP};
use crate::sample;
use crate::wire::HeaderProfile;

/// A packet to a port number that selects its service.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::port) struct To(pub(in crate::port) u16);

sample::payload!(To, _packet => 100);

impl crate::pack::Divisible for To {}

impl Packet for To {
    fn flow(&self) -> FlowKey {
        sample::flow(UDP, 1, self.0)
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn service(number: u8, scheme: &str) -> ServiceConfig {
    toml::from_str(&format!(
        "number = {number}\nname = \"s{number}\"\nrate = 0.5\nscheme = {{ kind = \"{scheme}\" }}"
    ))
    .unwrap()
}

fn classes(services: &[ServiceConfig]) -> Vec<ClassConfig> {
    let class = |s: &ServiceConfig| {
        toml::from_str(&format!(
            "match = {{ dst-port = {} }}\nservice = \"{}\"",
            s.number, s.name
        ))
        .unwrap()
    };
    // Traffic for service 0 needs no rule.
    let ruled = services.iter().filter(|s| s.number != 0);
    ruled.map(class).collect()
}

fn port(services: &[ServiceConfig]) -> Port<To> {
    let rate = Rate::from_bps(10_000_000).unwrap();
    Port::new(PortConfig {
        burst: Duration::from_millis(1),
        services: services.to_vec(),
        classes: classes(services),
        ..PortConfig::new(HeaderProfile::Live, rate, Duration::from_millis(5), 1400)
    })
    .unwrap()
}

/// Two ends whose frames are exchanged without delay, and whose hellos are exchanged when the test says so.
struct World {
    now: Instant,
    ends: [Port<To>; 2],
    tables: [Vec<ServiceConfig>; 2],
}

impl World {
    fn new(tables: [&[(u8, &str)]; 2]) -> Self {
        let tables = tables.map(|t| t.iter().map(|(n, s)| service(*n, s)).collect::<Vec<_>>());
        let mut world = Self {
            now: Instant::ORIGIN + SECOND,
            ends: [port(&tables[0]), port(&tables[1])],
            tables,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let offers = [0, 1].map(|end| self.offers(end));
        for (end, offers) in self.ends.iter_mut().zip([&offers[1], &offers[0]]) {
            end.reset(self.now);
            end.begin_agreement(self.now, offers);
        }
    }

    fn offers(&self, end: usize) -> Vec<ServiceOffer> {
        let own = self.ends[end].own_services();
        own.into_iter().map(|own| own.offer).collect()
    }

    fn set(&mut self, end: usize, table: &[(u8, &str)]) -> Vec<String> {
        let table: Vec<_> = table.iter().map(|(n, s)| service(*n, s)).collect();
        let (now, classes) = (self.now, classes(&table));
        let changes = self.ends[end].set_services(now, &table, &classes).unwrap();
        self.tables[end] = table;
        changes
    }

    fn hello(&mut self, from: usize) {
        let offers = self.offers(from);
        self.ends[1 - from].handle_offers(self.now, &offers);
        self.check();
    }

    /// Exchanges frames for some time, and returns what each end delivered.
    fn run(&mut self, time: Duration) -> [Vec<To>; 2] {
        let mut up = [Vec::new(), Vec::new()];
        let end = self.now + time;
        while self.now < end {
            for from in 0..2 {
                if self.ends[from]
                    .poll_timeout()
                    .is_some_and(|due| due <= self.now)
                {
                    self.ends[from].handle_timeout(self.now);
                }
                while let Some(frame) = self.ends[from].poll_transmit(self.now) {
                    let to = &mut self.ends[1 - from];
                    if to.is_agreed(frame.header.service) {
                        to.handle_frame(self.now, frame);
                    }
                }
                for (end, up) in self.ends.iter_mut().zip(&mut up) {
                    up.extend(std::iter::from_fn(|| end.poll_deliver()));
                }
            }
            self.now += Duration::from_millis(1);
        }
        up
    }

    fn offer(&mut self, from: usize, to: u16) {
        let now = self.now;
        self.ends[from].handle_packet(now, To(to));
    }

    fn stands(&self, end: usize, number: u8) -> Option<(bool, bool)> {
        let mut all = self.ends[end].services();
        let found = all.find(|s| s.number == number)?;
        Some((found.waiting, found.draining))
    }

    /// Checks that an open service has a partner that accepts its frames, and that both are the same service.
    fn check(&self) {
        for (end, other) in [(0, 1), (1, 0)] {
            let theirs = self.offers(other);
            for own in self.offers(end) {
                let open = self.stands(end, own.service) == Some((false, false));
                if open && let Some(o) = theirs.iter().find(|o| o.service == own.service) {
                    // The peer may have started anew since its last hello; if not, it is the partner.
                    assert!(
                        o.instance != own.partner || o.partner == own.instance,
                        "{own:?} {o:?}"
                    );
                }
            }
        }
    }
}

/// More than any service here lingers after its last frame.
const LINGER: Duration = Duration::from_secs(8);

#[test]
fn a_service_opens_when_both_ends_have_it_and_closes_when_one_has_not() {
    let one: &[(u8, &str)] = &[(1, "sr-m2")];
    let two: &[(u8, &str)] = &[(1, "sr-m2"), (2, "rlp-oos")];
    let mut world = World::new([one, one]);
    assert_eq!(world.stands(0, 1), Some((false, false)), "open at once");
    assert_eq!(
        world.set(0, two),
        [
            "service 2 \"s2\" is added",
            "class { match = { dst-port = \"2\" }, service = \"s2\" } is added"
        ]
    );
    assert!(world.ends[0].services_changed());
    world.hello(0);
    assert_eq!(world.stands(0, 2), Some((true, false)));
    world.offer(0, 2);
    let [_, up] = world.run(SECOND);
    assert_eq!(up, [To(2)], "as what nobody wants");
    let sent = |world: &World, number| world.ends[0].ledger(number).unwrap().packets_sent;
    assert_eq!([sent(&world, 0), sent(&world, 2)], [1, 0]);

    world.set(1, two);
    // Each end announces its service once, then that it has paired.
    for from in [1, 0, 1] {
        world.hello(from);
    }
    assert_eq!(
        [0, 1].map(|end| world.stands(end, 2)),
        [Some((false, false)); 2]
    );
    for end in [0, 1] {
        world.offer(end, 2);
        world.offer(end, 1);
    }
    let [left, right] = world.run(SECOND);
    assert_eq!((left.len(), right.len()), (2, 2));
    assert_eq!([sent(&world, 0), sent(&world, 2)], [1, 1]);

    assert_eq!(
        world.set(1, one),
        [
            "service 2 \"s2\" is removed",
            "class { match = { dst-port = \"2\" }, service = \"s2\" } is removed"
        ]
    );
    world.hello(1);
    assert_eq!(world.stands(0, 2), Some((false, true)), "both ends drain");
    assert_eq!(world.stands(1, 2), Some((false, true)));
    world.run(LINGER);
    assert_eq!(
        world.stands(0, 2),
        Some((true, false)),
        "and this one waits"
    );
    assert_eq!(world.stands(1, 2), None);
    // The same number with another scheme: neither end pairs it with the other's.
    world.set(1, &[(1, "sr-m2"), (2, "xor")]);
    for from in [1, 0, 1, 0] {
        world.hello(from);
    }
    assert_eq!(
        [0, 1].map(|end| world.stands(end, 2)),
        [Some((true, false)); 2]
    );
    // Service 1 was never interrupted.
    assert_eq!(world.ends[0].ledger(1).unwrap().epoch_lost, 0);
}

#[test]
fn a_changed_service_drains_and_restarts() {
    let mut world = World::new([&[(1, "sr-m2"), (2, "rlp")], &[(1, "sr-m2"), (2, "rlp")]]);
    let changes = world.set(0, &[(1, "sr-m2"), (2, "sr")]);
    assert_eq!(
        changes,
        ["service 2 \"s2\" drains and begins anew as \"s2\""]
    );
    // It returns while it drains: the last change counts.
    world.set(0, &[(1, "sr-m2")]);
    world.set(0, &[(1, "sr-m2"), (2, "gbn")]);
    world.hello(0);
    world.run(LINGER);
    world.set(1, &[(1, "sr-m2"), (2, "gbn")]);
    world.run(LINGER);
    for from in [0, 1, 0, 1] {
        world.hello(from);
    }
    for end in [0, 1] {
        assert_eq!(world.stands(end, 2), Some((false, false)));
        let found = world.ends[end].services().find(|s| s.number == 2).unwrap();
        assert_eq!(found.scheme, "gbn");
    }
    // A rate is changed in place.
    let mut table = world.tables[0].clone();
    table[1].rate = 0.25;
    let (now, classes) = (world.now, classes(&table));
    let changes = world.ends[0].set_services(now, &table, &classes).unwrap();
    assert_eq!(changes, ["service \"s2\" has rate 0.25, was 0.5"]);
    assert_eq!(world.stands(0, 2), Some((false, false)));
}

#[test]
fn service_0_never_changes() {
    let mut world = World::new([&[(0, "rlp")], &[(0, "rlp")]]);
    for table in [vec![], vec![service(0, "sr")]] {
        let refused = world.ends[0].set_services(world.now, &table, &[]);
        assert_eq!(refused, Err(AdminError::DefaultService));
    }
    let twice = [service(1, "sr"), service(1, "rlp")];
    let refused = world.ends[0].set_services(world.now, &twice, &[]);
    assert!(matches!(refused, Err(AdminError::Config { .. })));
}

#[derive(Clone, Debug)]
enum Step {
    /// An end gets a table: which of three services, and with which of two schemes.
    Set(usize, [u8; 3]),
    Hello(usize),
    Run(u64),
    Packets(usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..2usize, prop::array::uniform3(0..3u8)).prop_map(|(end, t)| Step::Set(end, t)),
        4 => (0..2usize).prop_map(Step::Hello),
        2 => prop_oneof![1..100u64, 3_000..9_000u64].prop_map(Step::Run),
        2 => (0..2usize).prop_map(Step::Packets),
        1 => Just(Step::Restart),
    ]
}

fn table(choice: [u8; 3]) -> Vec<(u8, &'static str)> {
    let schemes = [None, Some("rlp"), Some("sr-m2")];
    let all = choice.iter().zip(1..);
    all.filter_map(|(c, n)| Some((n, schemes[usize::from(*c)]?)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// For all changes by operators and all losses of hellos: no frame reaches a different service, and in
    /// the end every common service is open and works.
    #[test]
    fn both_ends_always_come_to_agree(steps in prop::collection::vec(step(), 0..30)) {
        let mut world = World::new([&[(1, "rlp")], &[(1, "rlp")]]);
        for step in steps {
            match step {
                Step::Set(end, choice) => { world.set(end, &table(choice)); }
                Step::Hello(from) => world.hello(from),
                Step::Run(ms) => { world.run(Duration::from_millis(ms)); }
                Step::Packets(end) => (1..4).for_each(|to| world.offer(end, to)),
                // Both sessions begin anew when either end is restarted.
                Step::Restart => {
                    let fits = world.tables[0].iter().all(|a| {
                        let b = world.tables[1].iter().find(|b| b.number == a.number);
                        b.is_none_or(|b| b.scheme == a.scheme)
                    });
                    if fits { world.begin(); }
                }
            }
        }
        for _ in 0..8 {
            for from in [0, 1] {
                world.hello(from);
            }
            world.run(LINGER * 4);
        }
        for end in [0, 1] {
            for own in world.tables[end].clone() {
                let both = world.tables[1 - end].contains(&own);
                prop_assert_eq!(world.stands(end, own.number), Some((!both, false)));
            }
            let number = world.ends[end].services().count();
            prop_assert_eq!(number, world.tables[end].len() + 1);
        }
        // Open services deliver every packet.
        (1..4).for_each(|to| world.offer(0, to));
        let [_, up] = world.run(SECOND);
        prop_assert_eq!(up.len(), 3);
    }
}
