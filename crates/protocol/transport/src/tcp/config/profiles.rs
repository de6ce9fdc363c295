//! The values of each profile.

use airlane_base::{Duration, Size};

use super::TcpConfig;
use super::kinds::{
    AckClock, CongestionKind, DelayedAck, Profile, RecoveryKind, TimerKind, UndoKind, Variant,
};

impl TcpConfig {
    /// All values of a profile.
    pub fn profile(profile: Profile) -> Self {
        match profile {
            Profile::Ns2In1999 => Self {
                profile,
                variant: Some(Variant::Reno),
                recovery: None,
                congestion: None,
                partial_deflation: None,
                partial_restart: None,
                acknowledgments: None,
                eln_memory: None,
                delayed_ack: None,
                skip_acks: None,
                prr: None,
                counted_pipe: None,
                handshake: None,
                window_scaling: None,
                timestamps: None,
                dsack: None,
                limited_transmit: None,
                byte_counting: None,
                hystart: None,
                conservative_rounds: None,
                catch_up: None,
                eifel: None,
                undo: None,
                pacing: None,
                ecn: None,
                late_deflation: None,
                stray_inflation: None,
                repeated_cuts: None,
                eighth: None,
                stale_times: None,
                timer: None,
                buffer: None,
                header_size: None,
                window: 20,
                initial_window: 1,
                initial_ssthresh: None,
                idle_restart: None,
                dupack_threshold: 3,
                ack_size: Size::from_bytes(40),
                tick: Duration::from_millis(500),
                initial_rto: Duration::from_secs(6),
                min_rto: Duration::from_secs(1),
                max_rto: Duration::from_secs(64),
                give_up: None,
                freeze: false,
                keep_rtt_mark: false,
            },
            Profile::Ns2In2002 => Self {
                profile,
                limited_transmit: Some(true),
                stray_inflation: Some(true),
                repeated_cuts: Some(true),
                header_size: Some(Size::from_bytes(40)),
                window: 16_384,
                initial_window: 2,
                tick: Duration::from_millis(10),
                ..Self::profile(Profile::Ns2In1999)
            },
            Profile::BsdIn1997 => Self {
                profile,
                variant: None,
                recovery: Some(RecoveryKind::Reno),
                congestion: Some(CongestionKind::Bsd),
                delayed_ack: Some(DelayedAck {
                    every: 2,
                    within: Duration::from_millis(200),
                    clock: AckClock::FreeRunning,
                    quick: 0,
                }),
                timer: Some(TimerKind::Bsd),
                buffer: Some(Size::from_bytes(32_768)),
                header_size: Some(Size::from_bytes(58)),
                ack_size: Size::from_bytes(58),
                window: 65_535,
                ..Self::profile(Profile::Ns2In1999)
            },
            Profile::Modern => Self {
                profile,
                variant: None,
                recovery: Some(RecoveryKind::Rack),
                congestion: Some(CongestionKind::Cubic),
                delayed_ack: Some(DelayedAck {
                    every: 2,
                    within: Duration::from_millis(200),
                    clock: AckClock::FromArrival,
                    quick: 0,
                }),
                handshake: Some(true),
                window_scaling: Some(true),
                timestamps: Some(true),
                dsack: Some(true),
                hystart: Some(true),
                eifel: Some(true),
                undo: Some(UndoKind::Linux),
                pacing: Some(true),
                ecn: Some(true),
                timer: Some(TimerKind::Fine),
                header_size: Some(Size::from_bytes(40)),
                window: 4_096,
                initial_window: 10,
                tick: Duration::from_millis(1),
                initial_rto: Duration::from_secs(1),
                max_rto: Duration::from_secs(60),
                give_up: Some(Duration::from_secs(180)),
                ..Self::profile(Profile::Ns2In1999)
            },
        }
    }
}
