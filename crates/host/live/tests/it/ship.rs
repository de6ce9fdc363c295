//! A file transfer over an emulated lossy link, beside a call, and over a link of Airlane's own.
//!
//! ```text
//!  left: send ─ wire ═══ one [ air: 20 Mbit/s, 25 ms, 125 kB, 5 % loss ] two ═══ wire ─ recv :right
//! ```

use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;

use airlane_base::Rate;
use airlane_live::ship::{
    ReceiveOptions, SendOptions, ShipEvent, Shipment, Source, Ticket, receive, send,
};

use crate::common::air::Air;
use crate::common::traffic::{address, echoed};
use crate::common::{Namespace, Running, cable, can_run};

#[test]
fn a_file_crosses_a_path_that_loses_a_frame_in_twenty_beside_a_call() {
    if !can_run("a_file_crosses_a_path_that_loses_a_frame_in_twenty_beside_a_call") {
        return;
    }
    let (left, right, air) = Air::between_hosts("25 ms");
    let shipping = Shipping::start([&left, &right], "192.0.2.2:7008", 8_000_000, None);
    let answered = echoed(
        [&left, &right],
        address("192.0.2.1:0"),
        address("192.0.2.2:5004"),
        100,
    );
    let [sent, received] = shipping.finish();
    assert_eq!(sent.link, None, "no link of this machine leads there");
    // Every lost packet was sent again, and few of them twice.
    let lost = air.stop().down.lost_air.frames;
    assert!(
        lost > 200 && sent.again + 100 > lost,
        "{sent:?}, {lost} lost"
    );
    assert!(received.again * 20 < received.packets, "{received:?}");
    // The call lost only what was lost on the air, 5 % in each direction, and nothing in a queue.
    assert!(answered > 70, "{answered} of 100 answered");
}

/// A transfer of files with this content from one end to another.
struct Shipping {
    folders: [tempfile::TempDir; 2],
    content: Vec<u8>,
    sender: JoinHandle<Shipment>,
    receiver: JoinHandle<Shipment>,
    _stops: [UnixStream; 2],
}

impl Shipping {
    fn start([left, right]: [&Namespace; 2], to: &str, bytes: u64, link: Option<PathBuf>) -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let content: Vec<u8> = (0..bytes).map(|at| ((at * at) >> 7) as u8).collect();
        let file = folders[0].path().join("file");
        fs::write(&file, &content).unwrap();
        let ticket = Ticket::new().unwrap();
        let options = ReceiveOptions {
            listen: to.parse().unwrap(),
            folder: folders[1].path().to_owned(),
            ticket: ticket.clone(),
            overwrite: false,
            stay: false,
            timeout: None,
        };
        let (stop, stopped) = UnixStream::pair().unwrap();
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
        let source = Source::new(&[file]).unwrap();
        let options = SendOptions {
            to: vec![to.parse().unwrap()],
            ticket,
            most: Rate::from_bps(1_000_000_000).unwrap(),
            timeout: airlane_base::Duration::from_secs(64),
            link,
        };
        let (other_stop, stopped) = UnixStream::pair().unwrap();
        let sender =
            left.thread(move || send(source, &options, stopped.as_fd(), &mut |_| {}).unwrap());
        Self {
            folders,
            content,
            sender,
            receiver,
            _stops: [stop, other_stop],
        }
    }

    /// The results of both ends, once the file has arrived intact.
    fn finish(self) -> [Shipment; 2] {
        let ends = [self.sender, self.receiver].map(|end| end.join().unwrap());
        assert_eq!(
            fs::read(self.folders[1].path().join("file")).unwrap(),
            self.content
        );
        assert_eq!(ends[0].files, ends[1].files);
        ends
    }
}

#[test]
fn a_file_follows_the_link_that_leads_to_its_end() {
    if !can_run("a_file_follows_the_link_that_leads_to_its_end") {
        return;
    }
    let ends = [Namespace::new("left"), Namespace::new("right")];
    cable(&ends[0], "wire", &ends[1], "wire");
    let directory = tempfile::tempdir().unwrap();
    let nodes = [0, 1].map(|end| {
        let (mine, theirs) = (end + 1, 2 - end);
        let directory = directory.path().display();
        ends[end].ip(&format!("addr add 192.0.2.{mine}/24 dev wire"));
        let file = format!(
            r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{mine}/24"]
[control]
socket = "{directory}/end-{end}.sock"
[link]
rate = "20 Mbit/s"
underlay = {{ kind = "udp", listen = "192.0.2.{mine}:7007", peer = "192.0.2.{theirs}:7007" }}
security = "none"
classes = []
services = []
"#
        );
        Running::start(&ends[end], &file).unwrap()
    });
    for node in &nodes {
        node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
    }
    let [left, right] = &ends;
    let link = directory.path().join("end-0.sock");
    let shipping = Shipping::start([left, right], "10.7.0.2:7008", 4_000_000, Some(link));
    let [sent, received] = shipping.finish();
    assert_eq!(sent.link.as_deref(), Some("end-0"));
    assert_eq!(received.link, None);
}
