//! Ports for tests, configured as in files.

use airlane_base::{Duration, Rate};
use airlane_link::{ClassConfig, Codec, HeaderProfile, Port, PortConfig, ServiceConfig};
use serde::de::DeserializeOwned;

use crate::TestPacket;

/// The configuration of a port, from which both ends of a [`Pair`](crate::Pair) are built.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Header profile and modulus of sequence numbers.
    pub codec: Codec,
    /// Everything else.
    pub config: PortConfig,
}

impl Setup {
    /// 1 Mbit/s, 5 ms, packets up to 1,000 B, SCFQ, no services yet.
    pub fn new(header: HeaderProfile) -> Self {
        Self {
            codec: Codec::new(header),
            config: PortConfig::new(
                header,
                Rate::from_bps(1_000_000).expect("a million is not zero"),
                Duration::from_millis(5),
                1_000,
            ),
        }
    }

    /// Sets the modulus of sequence numbers, if the headers have room for it.
    #[must_use]
    pub fn modulus(mut self, modulus: u64) -> Self {
        self.codec = self.codec.with_modulus(modulus);
        self
    }

    /// Sets another rate.
    #[must_use]
    pub fn rate(mut self, rate: &str) -> Self {
        self.config.rate = rate.parse().expect("a rate such as \"1 Mbit/s\"");
        self
    }

    /// Makes services hand over everything at once.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.config.handed_over = parse("\"unlimited\"");
        self
    }

    /// Adds a service for the packets with its number. `scheme` and `queue` are the contents of TOML tables:
    /// `kind = "sr-m2", window = 4`.
    #[must_use]
    pub fn service(mut self, number: u8, rate: f64, scheme: &str, queue: &str) -> Self {
        self.config
            .services
            .push(service(number, rate, scheme, queue));
        if number != 0 {
            self.config.classes.push(class(number));
        }
        self
    }

    /// Makes packets share frames in all services; `aggregate` is the content of a TOML table.
    #[must_use]
    pub fn together(mut self, aggregate: &str) -> Self {
        let aggregate = parse(&format!("{{ {aggregate} }}"));
        for service in &mut self.config.services {
            service.aggregate = Some(aggregate);
        }
        self
    }

    /// Compresses headers in all services.
    #[must_use]
    pub fn compact(mut self) -> Self {
        for service in &mut self.config.services {
            service.compact_headers = true;
        }
        self
    }

    /// Limits the payload of frames: longer packets are fragmented.
    #[must_use]
    pub fn cut(mut self, payload: usize) -> Self {
        self.config.max_frame_payload = Some(payload);
        self
    }

    /// Builds a port.
    ///
    /// # Panics
    /// If the configuration is refused.
    pub fn build(&self) -> Port<TestPacket> {
        Port::with_codec(self.codec, self.config.clone()).expect("the test's ports can be built")
    }
}

/// A service named after its number, without aggregation or a budget.
pub fn service(number: u8, rate: f64, scheme: &str, queue: &str) -> ServiceConfig {
    parse(&format!(
        "{{ number = {number}, name = \"s{number}\", rate = {rate:?}, scheme = {{ {scheme} }}, \
         queue = {{ {queue} }}, aggregate = \"off\", patience = \"9999 min\" }}"
    ))
}

/// The class that assigns test packets to the service with this number.
pub fn class(number: u8) -> ClassConfig {
    parse(&format!(
        "{{ match = {{ dscp = {number} }}, service = \"s{number}\" }}"
    ))
}

fn parse<T: DeserializeOwned>(value: &str) -> T {
    #[derive(serde::Deserialize)]
    struct Document<T> {
        value: T,
    }
    match toml::from_str::<Document<T>>(&format!("value = {value}")) {
        Ok(document) => document.value,
        Err(error) => panic!("the test's TOML is wrong: {error}"),
    }
}
