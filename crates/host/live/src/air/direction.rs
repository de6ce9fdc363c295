//! One direction of the emulated link, without its sockets: the frames that enter the channel, and their statistics.

use airlane_base::{Duration, Instant, Streams};
use airlane_channel::{
    Channel, ChannelConfig, ChannelStats, Count, ErrorModel, ErrorModelConfig, OutageConfig,
};

use super::config::AirConfig;
use super::packet_socket::Received;
use super::report::{DirectionReport, Refused};
use crate::offload::checksum;
use crate::offload::layout::ethernet_payload;
use crate::offload::segment::SuperPacket;
use crate::offload::vnet::{Cut, VNET_HEADER_LEN};

const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;

/// A zeroed offload header followed by an Ethernet frame, as it will be sent.
pub(super) type FrameBytes = Vec<u8>;

/// Returned buffers, so that frames need no allocation after a while.
#[derive(Debug, Default)]
pub(super) struct FramePool(Vec<FrameBytes>);

impl FramePool {
    /// More frames than the bandwidth-delay product of any link that this emulator can carry.
    const KEPT: usize = 4096;

    fn take(&mut self, frame: &[u8], vlan: Option<[u8; 4]>) -> FrameBytes {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.clear();
        buffer.resize(VNET_HEADER_LEN, 0);
        match (vlan, frame.split_at_checked(12)) {
            (Some(tag), Some((addresses, rest))) => {
                buffer.extend_from_slice(addresses);
                buffer.extend_from_slice(&tag);
                buffer.extend_from_slice(rest);
            }
            _ => buffer.extend_from_slice(frame),
        }
        buffer
    }

    pub(super) fn give_back(&mut self, frame: FrameBytes) {
        if self.0.len() < Self::KEPT {
            self.0.push(frame);
        }
    }
}

/// Why a frame was refused. The first refusal of each kind is reported to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    TooLong { len: usize, max: usize },
    NotSegmentable,
    Malformed,
}

#[derive(Debug)]
pub(super) struct Direction {
    channel: Channel<FrameBytes>,
    model: ErrorModelConfig,
    /// MTU of the interface at the other end, bytes.
    mtu: usize,
    refused: Refused,
    super_packets: u64,
    checksums_completed: u64,
    sent_on_air: u64,
    losses_asked: f64,
    /// Frames that the error model lost, apart from outages and the policer.
    lost_to_errors: u64,
    /// Arrival time of the last frame.
    last_came: Instant,
    delivered: Count,
    late_total: Duration,
    late_max: Duration,
    second: u64,
    second_bytes: u64,
    busiest_second_bytes: u64,
}

impl Direction {
    /// Down is from the first interface to the second.
    pub(super) fn new(config: &AirConfig, down: bool, streams: Streams, mtu: usize) -> Self {
        let rate = config.rate.of(down);
        let channel = ChannelConfig {
            rate: rate.mean().expect("the caller has read the trace"),
            delay: *config.delay.of(down),
            queue: *config.queue.of(down),
        };
        let model = config.errors.of(down);
        // The name that the simulator gives to this direction.
        let way = if down { "down" } else { "up" };
        let name = format!("link.{}.{way}", config.name);
        let errors = ErrorModel::new(model, channel.rate, streams, &name);
        let jitter = config.jitter.and_then(|jitter| jitter.of(down));
        let random = streams.stream(&format!("{name}.jitter"));
        Self {
            channel: Channel::new(channel, errors)
                .with_rate(rate)
                .with_outages(OutageConfig::windows(&config.outages))
                .with_police(config.police.and_then(|police| police.of(down)))
                .with_jitter(jitter, random),
            model: model.clone(),
            mtu,
            refused: Refused::default(),
            super_packets: 0,
            checksums_completed: 0,
            sent_on_air: 0,
            losses_asked: 0.0,
            lost_to_errors: 0,
            last_came: Instant::ORIGIN,
            delivered: Count::default(),
            late_total: Duration::ZERO,
            late_max: Duration::ZERO,
            second: 0,
            second_bytes: 0,
            busiest_second_bytes: 0,
        }
    }

    /// Takes a frame that arrived at `came`, segmented if necessary. Returns an error for the first refusal
    /// of each kind.
    pub(super) fn handle_frame(
        &mut self,
        came: Instant,
        received: Received<'_>,
        pool: &mut FramePool,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let Received {
            header,
            frame,
            vlan,
            truncated,
            ..
        } = received;
        // The arrival time is from the wall clock, which may be set back.
        self.last_came = self.last_came.max(came);
        if truncated {
            return self.refuse(Refusal::TooLong {
                len: frame.len(),
                max: self.mtu + ETHERNET_HEADER,
            });
        }
        if frame.len() < ETHERNET_HEADER {
            return self.refuse(Refusal::Malformed);
        }
        let transport = match header.cut() {
            Cut::Whole => {
                if header.needs_checksum {
                    let (start, offset) = (header.csum_start, header.csum_offset);
                    if !checksum::complete(frame, start.into(), offset.into()) {
                        return self.refuse(Refusal::Malformed);
                    }
                    self.checksums_completed += 1;
                }
                return self.offer(frame, vlan, pool);
            }
            Cut::Segments(transport) => transport,
            Cut::Unknown => return self.refuse(Refusal::NotSegmentable),
        };
        let whole = ethernet_payload(frame)
            .map(|ip| SuperPacket::parse(frame, ip, transport, header.gso_size.into()));
        let Some(Ok(whole)) = whole else {
            return self.refuse(Refusal::NotSegmentable);
        };
        let mut first = Ok(());
        scratch.resize(frame.len(), 0);
        for i in 0..whole.segments() {
            let Some(len) = whole.write(i, scratch) else {
                break;
            };
            let offered = self.offer(&scratch[..len], vlan, pool);
            if first.is_ok() {
                first = offered;
            }
        }
        self.super_packets += 1;
        first
    }

    /// Counts a super-packet whose type does not fit the offload header.
    pub(super) fn refuse_unknown_offload(&mut self) -> Result<(), Refusal> {
        self.refuse(Refusal::NotSegmentable)
    }

    pub(super) const fn count_missed(&mut self, frames: u64) {
        self.refused.missed += frames;
    }

    pub(super) const fn count_not_sent(&mut self) {
        self.refused.not_sent += 1;
    }

    fn refuse(&mut self, refusal: Refusal) -> Result<(), Refusal> {
        let counter = match refusal {
            Refusal::TooLong { .. } => &mut self.refused.too_long,
            Refusal::NotSegmentable => &mut self.refused.not_segmentable,
            Refusal::Malformed => &mut self.refused.malformed,
        };
        *counter += 1;
        if *counter == 1 { Err(refusal) } else { Ok(()) }
    }

    fn offer(
        &mut self,
        frame: &[u8],
        vlan: Option<[u8; 4]>,
        pool: &mut FramePool,
    ) -> Result<(), Refusal> {
        let tagged = matches!(frame.get(12..14), Some([0x81, 0] | [0x88, 0xa8]));
        let tag = if vlan.is_some() || tagged {
            VLAN_TAG
        } else {
            0
        };
        let len = frame.len() + if vlan.is_some() { VLAN_TAG } else { 0 };
        let max = self.mtu + ETHERNET_HEADER + tag;
        if len > max {
            return self.refuse(Refusal::TooLong { len, max });
        }
        let before = *self.channel.stats();
        match self
            .channel
            .send(self.last_came, len, pool.take(frame, vlan))
        {
            Ok(_) => {
                let after = *self.channel.stats();
                let lost = |stats: &ChannelStats| stats.lost_air.frames;
                let dropped = |stats: &ChannelStats| (stats.lost_outage, stats.lost_policed);
                if dropped(&before) == dropped(&after) {
                    self.lost_to_errors += lost(&after) - lost(&before);
                }
                let rate = self.channel.config().rate;
                self.sent_on_air += 1;
                self.losses_asked += self.model.loss_probability(rate, len);
            }
            Err(frame) => pool.give_back(frame),
        }
        Ok(())
    }

    /// The next frame that is due, if any.
    pub(super) fn poll_deliver(&mut self, now: Instant) -> Option<FrameBytes> {
        let due = self.channel.poll_timeout()?;
        let frame = self.channel.poll_deliver(now)?;
        let late = now.saturating_since(due);
        self.late_total = self.late_total + late;
        self.late_max = self.late_max.max(late);
        let bytes = frame.len() - VNET_HEADER_LEN;
        self.delivered.add(bytes);
        // Counted by due time, so that a late frame does not make the next second look faster.
        let second = due.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.second_bytes = 0;
        }
        self.second_bytes += bytes as u64;
        self.busiest_second_bytes = self.busiest_second_bytes.max(self.second_bytes);
        Some(frame)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.channel.poll_timeout()
    }

    pub(super) fn report(&self, from: &str, to: &str, ran: Duration) -> DirectionReport {
        let stats = self.channel.stats();
        let on_air = self.sent_on_air.max(1) as f64;
        let left = |offered: u64, parts: [u64; 3]| offered - parts.iter().sum::<u64>();
        DirectionReport {
            from: from.to_owned(),
            to: to.to_owned(),
            offered: stats.offered,
            dropped_queue: stats.dropped_queue,
            lost_air: stats.lost_air,
            lost_outage: stats.lost_outage,
            lost_policed: stats.lost_policed,
            overtaken: stats.overtaken,
            delivered: self.delivered,
            in_flight: Count {
                frames: left(
                    stats.offered.frames,
                    [
                        stats.dropped_queue.frames,
                        stats.lost_air.frames,
                        stats.delivered.frames,
                    ],
                ),
                bytes: left(
                    stats.offered.bytes,
                    [
                        stats.dropped_queue.bytes,
                        stats.lost_air.bytes,
                        stats.delivered.bytes,
                    ],
                ),
            },
            refused: self.refused,
            super_packets: self.super_packets,
            checksums_completed: self.checksums_completed,
            fer_asked: self.losses_asked / on_air,
            fer_measured: self.lost_to_errors as f64 / on_air,
            rate_asked_bps: self.channel.config().rate.as_bps(),
            rate_mean_bps: self.delivered.bytes as f64 * 8.0 / ran.as_secs_f64().max(1e-9),
            rate_busiest_second_bps: self.busiest_second_bytes as f64 * 8.0,
            delay_asked_ns: self.channel.config().delay.as_nanos(),
            late_mean_ns: self.late_total.as_nanos() / self.delivered.frames.max(1),
            late_max_ns: self.late_max.as_nanos(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::vnet::VnetHeader;
    use airlane_base::config;
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};

    fn direction_at(rate: &str) -> Direction {
        let text = format!(
            "schema = 1\ninterfaces = ['a', 'b']\ndelay = '25 ms'\nqueue = '125 kB'\nrate = {rate}"
        );
        let mut config: AirConfig = config::load(&text, "air.toml").unwrap();
        // One Mahimahi packet each millisecond, then none for a second.
        let times: String = (1..=10)
            .chain([1_010])
            .map(|ms| format!("{ms}\n"))
            .collect();
        config.load_traces(|_| Ok(times.clone().into())).unwrap();
        Direction::new(&config, true, Streams::new(1, 0), 1500)
    }

    fn direction() -> Direction {
        direction_at("'20 Mbit/s'")
    }

    fn give(
        direction: &mut Direction,
        header: VnetHeader,
        frame: &[u8],
        vlan: Option<[u8; 4]>,
    ) -> Result<(), Refusal> {
        let mut frame = frame.to_vec();
        let received = Received {
            header,
            frame: &mut frame,
            vlan,
            arrived: None,
            truncated: false,
        };
        direction.handle_frame(
            Instant::ORIGIN,
            received,
            &mut FramePool::default(),
            &mut Vec::new(),
        )
    }

    fn take_all(direction: &mut Direction) -> Vec<FrameBytes> {
        std::iter::from_fn(|| direction.poll_deliver(Instant::FAR_FUTURE)).collect()
    }

    fn tcp_frame(payload: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1000, 5001, 7, 1000)
            .write(&mut frame, &vec![7; payload])
            .unwrap();
        frame
    }

    #[test]
    fn a_super_packet_crosses_as_frames_that_fit() {
        let mut direction = direction();
        let header = VnetHeader {
            needs_checksum: true,
            gso_type: 0x81, // TCP over IPv4, with ECN
            header_len: 54,
            gso_size: 1460,
            csum_start: 34,
            csum_offset: 16,
        };
        give(&mut direction, header, &tcp_frame(64_000), None).unwrap();
        let frames = take_all(&mut direction);
        assert_eq!(frames.len(), 44);
        assert!(frames.iter().all(|f| f.len() <= VNET_HEADER_LEN + 1514));
        let report = direction.report("a", "b", Duration::from_secs(1));
        assert_eq!((report.super_packets, report.delivered.frames), (1, 44));
        assert_eq!(report.refused.total(), 0);
    }

    /// Arrival time, ms, of the last of 40 frames of 1250 B that are offered at the start.
    fn last_of_forty(rate: &str) -> u64 {
        let mut direction = direction_at(rate);
        for _ in 0..40 {
            give(
                &mut direction,
                VnetHeader::default(),
                &tcp_frame(1_196),
                None,
            )
            .unwrap();
        }
        let mut last = Instant::ORIGIN;
        while let Some(due) = direction.poll_timeout() {
            direction.poll_deliver(due).unwrap();
            last = due;
        }
        let report = direction.report("a", "b", Duration::from_secs(1));
        assert_eq!(report.delivered.frames, 40);
        last.as_nanos() / 1_000_000
    }

    #[test]
    fn a_queue_drains_at_the_current_rate() {
        let steps = |rates: &str| format!("{{ kind = 'steps', every = '1 s', rates = {rates} }}");
        // 400 kbit: 200 kbit in the first second and the rest in 10 ms, or all in 20 ms.
        assert_eq!(last_of_forty(&steps("['0.2 Mbit/s', '20 Mbit/s']")), 1_035);
        assert_eq!(last_of_forty(&steps("['20 Mbit/s', '0.2 Mbit/s']")), 45);
        // 34 opportunities of 1504 B: 11 in each 1.01 s; the last is the first one after three such periods.
        let times = "{ kind = 'opportunities', file = 'lte.down' }";
        assert_eq!(last_of_forty(times), 3 * 1_010 + 1 + 25);
    }

    #[test]
    fn an_outage_blocks_all_frames_and_is_not_counted_as_link_errors() {
        let mut direction = direction_at(
            "'20 Mbit/s'\noutages = [{ from = '1 s', to = '2 s' }]\n\
             police = { rate = '1 kbit/s', burst = '1514 B' }",
        );
        for ms in [0, 1_500, 20_000] {
            direction.last_came = Instant::ORIGIN + Duration::from_millis(ms);
            give(
                &mut direction,
                VnetHeader::default(),
                &tcp_frame(1_196),
                None,
            )
            .unwrap();
        }
        let crossed = take_all(&mut direction).len();
        let report = direction.report("a", "b", Duration::from_secs(20));
        // A frame lost in an outage may be dropped by the policer as well.
        assert_eq!((crossed, report.lost_outage.frames), (2, 1));
        assert_eq!(report.lost_policed.frames, 1);
        assert!(report.fer_measured.abs() < f64::EPSILON);
    }

    #[test]
    fn unsendable_frames_are_refused_and_logged_once() {
        let mut direction = direction();
        let plain = VnetHeader::default();
        let too_long = Err(Refusal::TooLong {
            len: 1515,
            max: 1514,
        });
        assert_eq!(
            give(&mut direction, plain, &tcp_frame(1461), None),
            too_long
        );
        assert_eq!(give(&mut direction, plain, &tcp_frame(1461), None), Ok(()));
        assert_eq!(
            give(&mut direction, plain, &[0; 13], None),
            Err(Refusal::Malformed)
        );
        let sctp = VnetHeader {
            gso_type: 77,
            ..plain
        };
        let refused = give(&mut direction, sctp, &tcp_frame(9), None);
        assert_eq!(refused, Err(Refusal::NotSegmentable));
        let outside = VnetHeader {
            needs_checksum: true,
            csum_start: 60_000,
            ..plain
        };
        assert_eq!(give(&mut direction, outside, &tcp_frame(9), None), Ok(()));
        let report = direction.report("a", "b", Duration::from_secs(1));
        let r = report.refused;
        assert_eq!((r.too_long, r.malformed, r.not_segmentable), (2, 2, 1));
        assert_eq!(report.offered.frames, 0);
    }

    #[test]
    fn a_vlan_tag_goes_back_to_its_place() {
        let mut direction = direction();
        let frame = tcp_frame(1460);
        let tag = [0x81, 0, 0, 5];
        give(&mut direction, VnetHeader::default(), &frame, Some(tag)).unwrap();
        let sent = take_all(&mut direction).remove(0);
        let sent = &sent[VNET_HEADER_LEN..];
        assert_eq!(sent.len(), frame.len() + 4);
        assert_eq!(
            (&sent[..12], &sent[12..16], &sent[16..]),
            (&frame[..12], &tag[..], &frame[12..])
        );
    }

    #[test]
    fn an_unfinished_checksum_is_completed() {
        let mut direction = direction();
        let whole = tcp_frame(100);
        let mut unfinished = whole.clone();
        // The kernel leaves the checksum of the pseudo-header in the field.
        let pseudo = checksum::sum(&whole[26..34]) + 6 + 120;
        let pseudo = !checksum::finish(pseudo);
        unfinished[50..52].copy_from_slice(&pseudo.to_be_bytes());
        let header = VnetHeader {
            needs_checksum: true,
            csum_start: 34,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        give(&mut direction, header, &unfinished, None).unwrap();
        let sent = take_all(&mut direction).remove(0);
        assert_eq!(&sent[VNET_HEADER_LEN..], &whole[..]);
        let packet = SlicedPacket::from_ethernet(&sent[VNET_HEADER_LEN..]).unwrap();
        assert!(matches!(packet.transport, Some(TransportSlice::Tcp(_))));
    }
}
