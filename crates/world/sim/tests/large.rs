//! Worlds of ten thousand nodes and flows: memory grows with the contents of a world, not with their square, and a
//! world beyond the limits gives one error.
//!
//! The whole test is one function, because the counter covers the process.

use airlane_sim::{Prepared, Scenario};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most bytes that were allocated during `work`, in addition to those before.
fn most<R>(work: impl FnOnce() -> R) -> (R, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = work();
    (result, MEMORY.peak_usage() - before)
}

/// Hosts around a chain of routers, and flows between them.
#[derive(Clone, Copy)]
struct World {
    hosts: usize,
    routers: usize,
    flows: usize,
}

impl World {
    fn text(self) -> String {
        let Self {
            hosts,
            routers,
            flows,
        } = self;
        let mut text =
            "schema = 1\nname = \"large\"\nduration = \"200 ms\"\ndrain = \"1 s\"\n".to_owned();
        let link = "rate = \"10 Gbit/s\"\ndelay = \"1 ms\"\nqueue = \"10000 packets\"\n";
        for router in 0..routers {
            text += &format!("[nodes.r{router}]\n");
            if router > 0 {
                let last = router - 1;
                let ends = format!("ends = [\"r{last}\", \"r{router}\"]");
                text += &format!("[links.r{router}]\n{ends}\n{link}");
            }
        }
        for host in 0..hosts {
            let router = host % routers;
            let ends = format!("ends = [\"r{router}\", \"h{host}\"]");
            text += &format!("[nodes.h{host}]\n[links.h{host}]\n{ends}\n{link}");
        }
        let app = "kind = \"conferencing\", packet = \"100 B\", rate = \"80 kbit/s\", talk = \"10 s\", silence = \"0 s\"";
        for flow in 0..flows {
            let (from, to) = (flow % hosts, (flow + hosts / 2 + 1) % hosts);
            let ends = format!("ends = [\"h{from}\", \"h{to}\"]");
            let how = format!("transport = {{ kind = \"udp\" }}\napp = {{ {app} }}");
            text += &format!("[[flows]]\nname = \"f{flow}\"\n{ends}\n{how}\n");
        }
        text
    }
}

#[test]
fn memory_grows_with_nodes_and_flows() {
    let run = |world: World| {
        let text = world.text();
        let (scenario, reading) = most(|| Scenario::from_toml(&text, "large").unwrap());
        let (prepared, preparing) = most(|| Prepared::new(&scenario).unwrap());
        let (result, running) = most(|| prepared.run(1, 0));
        assert_eq!(result.flows.len(), world.flows);
        for flow in &result.flows {
            assert!(
                flow.packets_sent >= 20,
                "{}: {}",
                flow.name,
                flow.packets_sent
            );
            let came = flow.packets_received + flow.packets_under_way;
            assert_eq!(came, flow.packets_sent, "{}", flow.name);
        }
        println!(
            "{} nodes: {reading} B to read, {preparing} to prepare, {running} to run",
            world.hosts
        );
        [reading, preparing, running]
    };
    let small = World {
        hosts: 1_000,
        routers: 10,
        flows: 1_000,
    };
    let large = World {
        hosts: 10_000,
        routers: 10,
        flows: 10_000,
    };
    let (small, large) = (run(small), run(large));
    for (small, large) in small.into_iter().zip(large) {
        assert!(large < 15 * small, "{small} B became {large} B");
    }

    let too_large = World {
        hosts: 200_000,
        routers: 1,
        flows: 1,
    };
    let text = too_large.text();
    let (refused, reading) = most(|| Scenario::from_toml(&text, "large").unwrap_err());
    println!("{} B of text: {reading} B", text.len());
    let said: Vec<_> = refused
        .problems()
        .iter()
        .map(|p| p.message.as_str())
        .collect();
    assert_eq!(
        said,
        ["200001 nodes are too many", "200000 links are too many"]
    );
}
