//! Timed acknowledgments in, expected segments out: one script for each behaviour.

use proptest::prelude::*;

use super::*;
use crate::tcp::Receiver;

/// A sender and its clock.
struct Script {
    sender: Sender,
    now: Instant,
}

impl Script {
    fn endless(config: TcpConfig) -> Self {
        Self::new(config, u64::MAX)
    }

    fn new(config: TcpConfig, bytes: u64) -> Self {
        let mut sender = Sender::new(&config, 100, Duration::ZERO);
        sender.write(bytes);
        Self {
            sender,
            now: Instant::ORIGIN,
        }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        let now = Instant::ORIGIN + Duration::from_millis(ms);
        assert!(now >= self.now, "scripts do not go back");
        self.now = now;
        self
    }

    fn ack(&mut self, ack: u64) -> &mut Self {
        self.sender.handle_ack(self.now, Ack { ack });
        self
    }

    fn acks(&mut self, acks: impl IntoIterator<Item = u64>) -> &mut Self {
        for ack in acks {
            self.ack(ack);
        }
        self
    }

    /// Everything that may leave now: segment numbers, negative if sent before.
    fn sends(&mut self, expected: &[i64]) -> &mut Self {
        let mut sent = vec![];
        while let Some(s) = self.sender.poll_transmit(self.now) {
            sent.push(if s.retransmission {
                -(s.seq as i64)
            } else {
                s.seq as i64
            });
        }
        assert_eq!(sent, expected, "at {:?}", self.now);
        self
    }

    /// Expects the timer to be due at `ms` and lets it expire.
    fn expires(&mut self, ms: u64) -> &mut Self {
        assert_eq!(
            self.sender.poll_timeout().map(|t| t.as_nanos() / 1_000_000),
            Some(ms),
            "timer"
        );
        self.at(ms);
        self.sender.handle_timeout(self.now);
        self
    }

    fn cwnd(&mut self, expected: f64) -> &mut Self {
        assert!(
            (self.sender.cwnd() - expected).abs() < 1e-9,
            "cwnd {} instead of {expected}",
            self.sender.cwnd()
        );
        self
    }

    fn ssthresh(&mut self, expected: u64) -> &mut Self {
        assert_eq!(self.sender.ssthresh(), expected);
        self
    }
}

fn window(window: u32) -> TcpConfig {
    TcpConfig {
        window,
        ..TcpConfig::default()
    }
}

/// A sender with eight segments, 7 to 14, in flight at 300 ms, in congestion avoidance just above
/// `ssthresh` = 8. The last sample was one tick: the timeout is 3 ticks.
fn eight_in_flight() -> Script {
    let mut s = Script::endless(window(8));
    s.sends(&[0]).at(100).ack(1).sends(&[1, 2]);
    s.at(200).acks([2, 3]).sends(&[3, 4, 5, 6]);
    s.at(300)
        .acks(4..=7)
        .cwnd(8.0)
        .sends(&[7, 8, 9, 10, 11, 12, 13, 14]);
    s
}

/// 500 bytes in 2 round trips of 100 ms, the third segment timed last, at 100 ms.
fn five_delivered(config: TcpConfig) -> Script {
    let mut s = Script::new(config, 500);
    s.sends(&[0]).at(100).ack(1).sends(&[1, 2]);
    s.at(200).acks([2, 3]).sends(&[3, 4]).at(300).acks([4, 5]);
    assert!(s.sender.is_finished());
    s
}

fn again(s: &mut Script, config: &TcpConfig, bytes: u64) {
    s.sender.restart(config, Duration::ZERO);
    s.sender.write(bytes);
}

#[test]
fn a_kept_mark_leaves_short_transfers_untimed_and_longer_ones_with_the_time_between() {
    let config = TcpConfig {
        keep_rtt_mark: true,
        ..TcpConfig::default()
    };
    let mut s = five_delivered(config.clone());
    again(&mut s, &config, 200);
    s.at(20_000).sends(&[0]).at(20_100).ack(1).sends(&[1]);
    // Nothing was timed: the timeout is still the initial one.
    s.expires(26_100);

    let mut s = five_delivered(config.clone());
    again(&mut s, &config, 600);
    s.at(20_000).sends(&[0]).at(20_100).ack(1).sends(&[1, 2]);
    s.at(20_200).acks([2, 3]).sends(&[3, 4, 5]);
    s.at(20_300).ack(4);
    // Segment 3 was marked at 200 ms: a sample of 40 ticks, so timers that start later take 60 s.
    s.at(20_400).ack(5).expires(80_400);
}

#[test]
fn without_the_mark_a_new_connection_is_a_fresh_one() {
    let config = TcpConfig::default();
    let mut s = five_delivered(config.clone());
    again(&mut s, &config, 600);
    s.at(20_000).sends(&[0]).at(20_100).ack(1).sends(&[1, 2]);
    s.at(20_200).acks([2, 3]).sends(&[3, 4, 5]).expires(21_700);
}

#[test]
fn slow_start_doubles_each_round_trip_up_to_the_window() {
    let mut s = Script::endless(window(6));
    s.sends(&[0]);
    s.at(100).ack(1).cwnd(2.0).sends(&[1, 2]);
    s.at(200).ack(2).sends(&[3, 4]).ack(3).sends(&[5, 6]);
    s.at(300)
        .ack(4)
        .sends(&[7, 8])
        .ack(5)
        .cwnd(6.0)
        .sends(&[9, 10]);
    // The advertised window is full: one segment for each acknowledgment, though cwnd still opens.
    s.ack(6)
        .cwnd(6.0 + 1.0 / 6.0)
        .sends(&[11])
        .ack(7)
        .sends(&[12]);
}

#[test]
fn congestion_avoidance_opens_by_one_segment_each_window() {
    let mut s = eight_in_flight();
    s.at(400);
    let mut cwnd = 8.0;
    for ack in 8..=15 {
        s.ack(ack);
        cwnd += 1.0 / cwnd;
    }
    s.cwnd(cwnd);
    assert!((8.9..9.0).contains(&cwnd));
}

#[test]
fn a_limited_transfer_ends_with_a_short_segment_and_stops_its_timer() {
    let mut s = Script::new(window(8), 250);
    s.sends(&[0]).at(100).ack(1);
    assert_eq!(s.sender.poll_transmit(s.now).unwrap().len, 100);
    assert_eq!(s.sender.poll_transmit(s.now).unwrap().len, 50);
    s.sends(&[]).at(200).ack(2).sends(&[]);
    assert!(!s.sender.is_finished());
    assert_eq!(s.sender.acked_bytes(), 200);
    s.at(250).ack(3);
    assert!(s.sender.is_finished());
    assert_eq!(s.sender.acked_bytes(), 250);
    assert_eq!(s.sender.poll_timeout(), None);
    assert_eq!(s.sender.last_acked(), Some(s.now));
    assert_eq!(s.sender.first_sent(), Some(Instant::ORIGIN));
}

#[test]
fn two_duplicates_do_nothing_the_third_retransmits_and_halves() {
    let mut s = eight_in_flight();
    s.at(400).acks([7, 7]).sends(&[]).cwnd(8.0);
    s.ack(7).cwnd(4.0).ssthresh(4).sends(&[-7]);
    assert_eq!(s.sender.stats().fast_retransmits, 1);
}

#[test]
fn duplicates_in_recovery_inflate_the_window_and_release_new_data() {
    // Window 8 would cap the inflated one: advertise 20, but keep cwnd at 8.
    let mut s = Script::endless(window(20));
    s.sends(&[0]).at(100).ack(1).sends(&[1, 2]);
    s.at(200).acks([2, 3]).sends(&[3, 4, 5, 6]);
    s.at(300).acks(4..=7).sends(&[7, 8, 9, 10, 11, 12, 13, 14]);
    // Segment 7 is lost; seven duplicates come back. cwnd 4: 4 + 3 = 7 at the third, 8 at the
    // fourth, and only the fifth opens the window beyond the eight in flight.
    s.at(400).acks([7, 7, 7]).sends(&[-7]).ack(7).sends(&[]);
    s.ack(7)
        .sends(&[15])
        .ack(7)
        .sends(&[16])
        .ack(7)
        .sends(&[17]);
    // Recovery ends with the first new acknowledgment: the window deflates to cwnd, which then
    // opens as for any new acknowledgment (4 >= ssthresh: by 1/4).
    s.at(500).ack(15).cwnd(4.25).sends(&[18]);
    s.at(510).ack(16).sends(&[19]);
}

#[test]
fn a_partial_acknowledgment_ends_recovery_and_the_second_hole_waits_for_the_timer() {
    // Reno, not NewReno: 7 and 8 are lost.
    let mut s = eight_in_flight();
    s.at(400).acks([7, 7, 7]).sends(&[-7]).acks([7, 7, 7]);
    // Three more than the window of 8 allows: inflation is capped by the advertised window.
    s.sends(&[]);
    s.at(500).ack(8).cwnd(4.25).sends(&[]);
    // Duplicates of 8 are of the window that was already cut: no second fast retransmit.
    s.acks([8, 8, 8, 8]).sends(&[]);
    assert_eq!(s.sender.stats().fast_retransmits, 1);
    // The fast retransmit abandoned the measurement; the estimate is still 1 tick: 3 ticks.
    s.expires(2_000).cwnd(1.0).ssthresh(2).sends(&[-8]);
}

#[test]
fn a_loss_in_the_next_window_is_repaired_fast_again() {
    let mut s = eight_in_flight();
    s.at(400).acks([7, 7, 7]).sends(&[-7]);
    s.at(500).ack(15).sends(&[15, 16, 17, 18]);
    s.at(600)
        .acks([16])
        .sends(&[19])
        .acks([16, 16, 16])
        .sends(&[-16, 20]);
    // Four in flight, and the window inflated to 2 + 3 holds one more.
    assert_eq!(s.sender.stats().fast_retransmits, 2);
}

#[test]
fn a_timeout_restarts_slow_start_from_the_hole_and_sends_again_what_follows() {
    let mut s = eight_in_flight();
    // Everything is lost. Timer: set by the last acknowledgment at 300 ms.
    s.expires(1_800).cwnd(1.0).ssthresh(4).sends(&[-7]);
    s.at(1_900).ack(8).cwnd(2.0).sends(&[-8, -9]);
    // The receiver had 10 to 12: the acknowledgment skips them.
    s.at(2_000)
        .ack(9)
        .sends(&[-10, -11])
        .ack(13)
        .cwnd(4.0)
        .sends(&[-13, -14, 15, 16]);
    assert_eq!(s.sender.stats().timeouts, 1);
    assert_eq!(s.sender.stats().retransmissions, 7);
}

#[test]
fn duplicates_after_a_timeout_do_not_retransmit_what_the_timeout_covers() {
    let mut s = eight_in_flight();
    s.expires(1_800).sends(&[-7]);
    s.at(1_900).ack(8).sends(&[-8, -9]);
    // Segments sent twice cause duplicates; snd_una has not passed `recover` = 15.
    s.at(2_000).acks([8, 8, 8, 8]).sends(&[]).cwnd(2.0);
    assert_eq!(s.sender.stats().fast_retransmits, 0);
}

#[test]
fn timeouts_back_off_until_a_new_segment_is_timed() {
    let mut s = eight_in_flight();
    s.expires(1_800).sends(&[-7]);
    s.expires(1_800 + 3_000).sends(&[-7]);
    s.expires(4_800 + 6_000).sends(&[-7]);
    // Karn: the acknowledgment of a retransmission is no sample, the backoff of 8 stays.
    s.at(10_900).ack(15).sends(&[15, 16]);
    assert_eq!(s.sender.poll_timeout().unwrap().as_nanos(), 22_900_000_000);
    // Segment 15 left once: its sample of one tick ends the backoff, but the timer that the same
    // acknowledgment restarts still has it; the next one has 3 ticks again.
    s.at(11_000).ack(16).cwnd(2.5).sends(&[17]);
    assert_eq!(s.sender.poll_timeout().unwrap().as_nanos(), 23_000_000_000);
    s.at(11_100).ack(17).sends(&[18]);
    assert_eq!(s.sender.poll_timeout().unwrap().as_nanos(), 12_600_000_000);
}

#[test]
fn halves_are_whole_segments() {
    let mut s = Script::endless(window(7));
    s.sends(&[0]).at(100).ack(1).sends(&[1, 2]);
    s.at(200).acks([2, 3]).sends(&[3, 4, 5, 6]);
    s.at(300)
        .acks(4..=7)
        .cwnd(7.0 + 1.0 / 7.0)
        .sends(&[7, 8, 9, 10, 11, 12, 13]);
    s.at(400).acks([7, 7, 7]).cwnd(3.0).ssthresh(3).sends(&[-7]);
}

#[test]
fn the_first_segment_lost_waits_six_seconds() {
    let mut s = Script::endless(window(8));
    s.sends(&[0]).expires(6_000).sends(&[0]);
    assert_eq!(s.sender.stats().retransmissions, 1);
    s.expires(18_000).sends(&[0]);
    s.expires(42_000).sends(&[0]);
    // 48 s, then the largest timeout.
    s.expires(90_000).sends(&[0]).expires(154_000).sends(&[0]);
}

#[test]
fn impossible_and_old_acknowledgments_change_nothing() {
    let mut s = eight_in_flight();
    s.at(400).acks([99, 3, 3, 3, 3]).sends(&[]).cwnd(8.0);
    assert_eq!(s.sender.stats().invalid_acks, 1);
    assert_eq!(s.sender.stats().duplicate_acks, 0);
}

#[test]
fn a_frozen_sender_stands_still_and_keeps_its_timeout() {
    let mut script = Script::endless(window(4));
    script.at(0).sends(&[0]).at(100).ack(1).sends(&[1, 2]);
    let due = script.sender.poll_timeout().unwrap();
    // 1 s before the timer would run out the path goes down, for 100 s.
    let down = due - Duration::from_secs(1);
    script.sender.freeze(down);
    script.sender.freeze(down + Duration::from_secs(5)); // twice is once
    assert_eq!(script.sender.poll_timeout(), None);
    script.now = down + Duration::from_secs(50);
    script.sender.handle_timeout(script.now);
    // An acknowledgment that was on its way is taken; what it permits waits.
    script.ack(2).sends(&[]);
    let rto = script.sender.rto();
    script.now = down + Duration::from_secs(100);
    script.sender.thaw(script.now);
    script.sends(&[3, 4]);
    // That acknowledgment restarted the timer, which runs only since now.
    assert_eq!(script.sender.poll_timeout(), Some(script.now + rto));
    assert_eq!(script.sender.stats().timeouts, 0);
    assert_eq!(script.sender.stats().window_cuts, 0);
}

#[test]
fn a_thawed_timer_goes_on_with_what_was_left() {
    let mut script = Script::endless(window(4));
    script.at(0).sends(&[0]);
    let due = script.sender.poll_timeout().unwrap();
    script
        .at(1_000)
        .sender
        .freeze(Instant::ORIGIN + Duration::from_secs(1));
    script.at(31_000);
    script.sender.thaw(script.now);
    assert_eq!(
        script.sender.poll_timeout(),
        Some(due + Duration::from_secs(30))
    );
    // Once, and without a round trip that holds the outage.
    script.sender.thaw(script.now);
    assert_eq!(
        script.sender.poll_timeout(),
        Some(due + Duration::from_secs(30))
    );
    let before = script.sender.rto();
    script.at(31_100).ack(1);
    assert_eq!(script.sender.rto(), before);
}

proptest! {
    /// Over any pattern of losses in both directions the transfer completes, exactly, and the
    /// flight never exceeds the advertised window; also when more is given to the connection on the
    /// way.
    #[test]
    fn every_transfer_completes_over_any_losses(
        losses in prop::collection::vec(any::<bool>(), 0..400),
        first in 1u64..40,
        more in prop::collection::vec((1u64..1_500, 0usize..100), 0..6),
        win in 1u32..24,
    ) {
        let config = window(win);
        let bytes = first * 100 - 1 + more.iter().map(|(bytes, _)| *bytes).sum::<u64>();
        let mut more = more.into_iter();
        let mut next = more.next();
        let mut sender = Sender::new(&config, 100, Duration::ZERO);
        sender.write(first * 100 - 1);
        let mut receiver = Receiver::new(&config);
        let mut losses = losses.into_iter();
        let mut lost = move || losses.next().unwrap_or(false);
        let mut now = Instant::ORIGIN;
        let mut in_flight: std::collections::VecDeque<Data> = Default::default();
        for _ in 0..20_000 {
            if let Some((bytes, wait)) = &mut next {
                if *wait == 0 || sender.is_finished() {
                    sender.write(*bytes);
                    next = more.next();
                } else {
                    *wait -= 1;
                }
            }
            while let Some(s) = sender.poll_transmit(now) {
                prop_assert!(s.seq < sender.segments() && s.len > 0);
                prop_assert!(sender.flight_size() <= u64::from(win));
                if !lost() {
                    in_flight.push_back(s);
                }
            }
            if sender.is_finished() && next.is_none() {
                break;
            }
            if sender.is_finished() {
                continue;
            }
            if let Some(s) = in_flight.pop_front() {
                now += Duration::from_millis(7);
                receiver.handle_data(s);
                let ack = receiver.poll_ack().unwrap();
                if !lost() {
                    sender.handle_ack(now, ack);
                }
            } else {
                let due = sender.poll_timeout();
                prop_assert!(due.is_some(), "stalled without a timer");
                now = now.max(due.unwrap());
                sender.handle_timeout(now);
                prop_assert!(sender.poll_timeout().unwrap() > now);
            }
        }
        prop_assert!(sender.is_finished());
        prop_assert_eq!(receiver.stats().delivered_bytes, bytes);
        prop_assert_eq!(sender.acked_bytes(), bytes);
        prop_assert_eq!((sender.written(), receiver.received()), (bytes, bytes));
        prop_assert_eq!(sender.poll_timeout(), None);
    }
}
