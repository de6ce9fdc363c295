//! Faults.

use std::fmt;

use crate::draw::Draw;

/// Nanoseconds, displayed as milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Ns(pub(crate) u64);

impl fmt::Debug for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0 / 1_000_000)
    }
}

/// One fault. Pipes and ends are referred to by number.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Cut {
        pipe: usize,
        lasts: Ns,
    },
    CutAll {
        lasts: Ns,
    },
    Loss {
        pipe: usize,
        rate: f64,
        lasts: Ns,
    },
    Copies {
        pipe: usize,
        rate: f64,
        lasts: Ns,
    },
    Late {
        pipe: usize,
        rate: f64,
        most: Ns,
        lasts: Ns,
    },
    Damage {
        pipe: usize,
        rate: f64,
        lasts: Ns,
    },
    Rate {
        pipe: usize,
        times: f64,
        lasts: Ns,
    },
    Narrow {
        pipe: usize,
        mtu: usize,
        lasts: Ns,
    },
    /// Datagrams seen before are repeated, from their source or from another one.
    Replay {
        count: u64,
        elsewhere: bool,
    },
    /// An unknown sender sends bytes to an end: random ones, or modified datagrams seen before.
    Stranger {
        end: usize,
        count: u64,
        changed: bool,
    },
    Restart {
        end: usize,
        lasts: Ns,
    },
    /// The end's address changes.
    Move {
        end: usize,
    },
    /// A NAT loses its mapping and assigns another port.
    Rebind {
        end: usize,
    },
    /// The path drops datagrams from, or to, the port that the end has now, for good. Lasts until the end must have
    /// another one.
    Swallow {
        end: usize,
        is_inward: bool,
        lasts: Ns,
    },
    Sleep {
        end: usize,
        lasts: Ns,
    },
    Unplug {
        end: usize,
        lasts: Ns,
    },
    /// Reloads the file with another weight or share, and back.
    Reload {
        end: usize,
    },
    Share {
        end: usize,
        rate: f64,
    },
}

impl Fault {
    /// When a swallowed port has been left: three attempts of up to 55 s, since both ends may be on fresh ports at once.
    pub(crate) const LEFT: Ns = Ns(165_000_000_000);

    pub(crate) fn draw(draw: &mut Draw, ends: usize, pipes: usize) -> Self {
        let pipe = draw.within(0, pipes as u64) as usize;
        let end = draw.within(0, ends as u64) as usize;
        let lasts = Ns(draw.ms(100, 8_000));
        match draw.within(0, 17) {
            0 => Self::Cut { pipe, lasts },
            1 => Self::CutAll { lasts },
            2 => Self::Loss {
                pipe,
                rate: *draw.of(&[0.1, 0.3, 0.6]),
                lasts,
            },
            3 => Self::Copies {
                pipe,
                rate: *draw.of(&[0.05, 0.5]),
                lasts,
            },
            4 => Self::Late {
                pipe,
                rate: *draw.of(&[0.1, 0.5]),
                most: Ns(draw.ms(5, 3_000)),
                lasts,
            },
            5 => Self::Damage {
                pipe,
                rate: *draw.of(&[0.02, 0.3]),
                lasts,
            },
            6 => Self::Rate {
                pipe,
                times: *draw.of(&[0.1, 0.3, 3.0, 10.0]),
                lasts,
            },
            7 => Self::Narrow {
                pipe,
                mtu: draw.within(300, 1_400) as usize,
                lasts,
            },
            8 => Self::Replay {
                count: draw.within(1, 200),
                elsewhere: draw.chance(0.5),
            },
            9 => Self::Stranger {
                end,
                count: draw.within(1, 200),
                changed: draw.chance(0.5),
            },
            10 => Self::Restart {
                end,
                lasts: Ns(draw.ms(0, 3_000)),
            },
            11 => Self::Move { end },
            12 => Self::Rebind { end },
            13 => Self::Sleep { end, lasts },
            14 => Self::Unplug { end, lasts },
            15 => Self::Reload { end },
            _ => Self::Share {
                end,
                rate: *draw.of(&[0.1, 1.0, 5.0]),
            },
        }
    }

    /// In few worlds, the port of an end that calls is swallowed. Drawn from a stream of its own, which leaves all other
    /// faults as they are.
    pub(crate) fn draw_swallow(seed: u64, ends: usize) -> Option<(u64, Self)> {
        let mut draw = Draw::new(seed, "swallow");
        draw.chance(0.04).then(|| {
            let fault = Self::Swallow {
                end: draw.within(1, ends as u64) as usize,
                is_inward: draw.chance(0.5),
                lasts: Self::LEFT,
            };
            (draw.ms(1_000, 15_000), fault)
        })
    }

    /// Its duration.
    pub(crate) const fn lasts(&self) -> u64 {
        match self {
            Self::Cut { lasts, .. }
            | Self::CutAll { lasts }
            | Self::Loss { lasts, .. }
            | Self::Copies { lasts, .. }
            | Self::Late { lasts, .. }
            | Self::Damage { lasts, .. }
            | Self::Rate { lasts, .. }
            | Self::Narrow { lasts, .. }
            | Self::Restart { lasts, .. }
            | Self::Swallow { lasts, .. }
            | Self::Sleep { lasts, .. }
            | Self::Unplug { lasts, .. } => lasts.0,
            _ => 0,
        }
    }
}
