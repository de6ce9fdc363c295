//! The counts that interfaces export, by the control socket and along a path.
//!
//! ```text
//!  farm 10.7.0.2 ══ 100 Mbit/s ══ base 10.7.0.1 ══ 1 Mbit/s ══ mill 10.7.0.3
//! ```

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use airlane_live::control::ControlError;
use airlane_live::control::registration::register;
use airlane_live::status::FlowOffer;

use crate::base_station::plain_site;
use crate::common::PATIENCE;
use crate::common::station::{Entry, all_confirmed};
use crate::common::traffic::address;

/// A client of the socket, written without the library.
struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    fn new(socket: &str, to: &str) -> Self {
        let stream = BufReader::new(UnixStream::connect(socket).unwrap());
        let mut client = Self { stream };
        let said = client.ask(&format!(
            r#"{{"command":"register","from":"10.7.0.2:9","to":"{to}","protocol":"tcp"}}"#
        ));
        assert!(said.contains("is registered"), "{said}");
        client
    }

    fn ask(&mut self, request: &str) -> String {
        let line = format!("{request}\n");
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        self.stream.read_line(&mut answer).unwrap();
        answer
    }

    fn wait_until(&mut self, wanted: impl Fn(&FlowOffer) -> bool) -> FlowOffer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(r#"{"command":"pull"}"#);
            let offer = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
            if wanted(&offer) {
                return offer;
            }
            assert!(Instant::now() < deadline, "{offer:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_flow_gets_its_service_and_the_least_offer_on_its_path() {
    let Some(site) = plain_site("a_flow_gets_its_service_and_the_least_offer_on_its_path") else {
        return;
    };
    let slow = Entry {
        more: "rate = \"1 Mbit/s\"",
        ..Entry::of(1, 1)
    };
    let base = site.start_base("100 Mbit/s", &[Entry::of(0, 1), slow]);
    let farm = site.start_station(0, "100 Mbit/s");
    let _mill = site.start_station(1, "100 Mbit/s");
    all_confirmed(&base, &[0, 1]);
    farm.wait_until("in it", |s| s.peers[0].session.state == "confirmed");
    let socket = site.directory.path().join("farm.sock");
    let socket = socket.to_str().unwrap();

    // Over two hops: the second one, which the base reports, has less room.
    let mut far = Client::new(socket, "10.7.0.3:80");
    let offer = far.wait_until(|offer| offer.route.as_ref().is_some_and(|route| route.complete));
    let (local, route) = (offer.local.unwrap(), offer.route.unwrap());
    assert_eq!((offer.service.as_str(), offer.flows), ("files", 1));
    // The room of 100 ms at 100 Mbit/s and at 1 Mbit/s.
    assert_eq!((local.out_bytes, local.room_bytes), (0, 1_250_000));
    assert!(local.underflows > 0, "who idles has too little");
    assert_eq!((route.least.room_bytes, route.least_room_node), (12_500, 1));

    // Two flows share the service, even if one of them has a single hop.
    let mut near = Client::new(socket, "10.7.0.1:80");
    let offer = near.wait_until(|offer| offer.route.as_ref().is_some_and(|route| route.complete));
    let route = offer.route.unwrap();
    assert_eq!(
        (route.least.room_bytes, route.least_room_node),
        (1_250_000, 0)
    );
    assert_eq!(offer.flows, 2);
    drop(far);
    near.wait_until(|offer| offer.flows == 1);

    // No peer of the base has the address: the probe turns round at the base and says so.
    let mut lost = Client::new(socket, "10.7.0.77:80");
    let offer = lost.wait_until(|offer| offer.route.is_some());
    assert!(!offer.route.unwrap().complete);

    // The base itself knows that no peer has it.
    let socket = site.directory.path().join("base.sock");
    let refused = site
        .base
        .run(|| register(&socket, 9, address("10.7.0.77:80")).unwrap_err());
    assert!(
        matches!(&refused, ControlError::Refused { error, .. } if error.contains("no peer has")),
        "{refused}"
    );
}
