//! A file over an emulated lossy link, beside a call.
//!
//! ```text
//!  left: send ─ wire ═══ one [ air: 20 Mbit/s, 25 ms, 125 kB, 5 % loss ] two ═══ wire ─ recv :right
//! ```

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use airlane_base::Rate;
use airlane_live::ship::{ReceiveOptions, SendOptions, ShipEvent, Source, Ticket, receive, send};

use crate::common::air::Air;
use crate::common::traffic::{address, echoed};
use crate::common::{Namespace, cable, can_run};

const AIR: &str = r#"
schema = 1
interfaces = ["one", "two"]
rate = "20 Mbit/s"
delay = "25 ms"
queue = "125 kB"
errors = { kind = "uniform", rate = 0.05 }
"#;

#[test]
fn a_file_crosses_a_path_that_loses_a_frame_in_twenty_beside_a_call() {
    if !can_run("a_file_crosses_a_path_that_loses_a_frame_in_twenty_beside_a_call") {
        return;
    }
    let (left, middle, right) = (
        Namespace::new("left"),
        Namespace::new("middle"),
        Namespace::new("right"),
    );
    cable(&left, "wire", &middle, "one");
    cable(&right, "wire", &middle, "two");
    for (end, last) in [(&left, 1), (&right, 2)] {
        end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
    }
    let air = Air::start(&middle, AIR);
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content: Vec<u8> = (0..8_000_000_u64)
        .map(|at| ((at * at) >> 7) as u8)
        .collect();
    fs::write(from.path().join("file"), &content).unwrap();

    let ticket = Ticket::new().unwrap();
    let options = ReceiveOptions {
        listen: "192.0.2.2:7008".parse().unwrap(),
        folder: to.path().to_owned(),
        ticket: ticket.clone(),
        overwrite: false,
        stay: false,
    };
    let (_stop, stopped) = UnixStream::pair().unwrap();
    let receiver = right.thread(move || {
        let mut done = None;
        receive(&options, stopped.as_fd(), &mut |event| {
            if let ShipEvent::Done(shipment) = event {
                done = Some(shipment);
            }
        })
        .unwrap();
        done.unwrap()
    });
    let source = Source::new(&[from.path().join("file")]).unwrap();
    let options = SendOptions {
        to: vec!["192.0.2.2:7008".parse().unwrap()],
        ticket,
        most: Rate::from_bps(1_000_000_000).unwrap(),
    };
    let (_stop, stopped) = UnixStream::pair().unwrap();
    let sender = left.thread(move || send(source, &options, stopped.as_fd(), &mut |_| {}).unwrap());
    let answered = echoed(
        [&left, &right],
        address("192.0.2.1:0"),
        address("192.0.2.2:5004"),
        100,
    );
    let (sent, received) = (sender.join().unwrap(), receiver.join().unwrap());
    assert_eq!(fs::read(to.path().join("file")).unwrap(), content);
    assert_eq!(sent.files, received.files);
    // Each that was lost went again, and few of them twice.
    let lost = air.stop().down.lost_air.frames;
    assert!(
        lost > 200 && sent.again + 100 > lost,
        "{sent:?}, {lost} lost"
    );
    assert!(received.again * 20 < received.packets, "{received:?}");
    // The call lost what the air took, and no queue took more: 5 % each way.
    assert!(answered > 70, "{answered} of 100 answered");
}
