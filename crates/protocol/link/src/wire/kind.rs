//! The kinds of frames, and the role of each for a port that does not know the scheme.

/// The role of a kind of frame for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It carries a packet for the first time.
    Original,
    /// It carries a packet again, before any request.
    Copy,
    /// It carries a packet again.
    Repair,
    /// It carries a combination of the packets of a block.
    Redundancy,
    /// It carries no packet.
    Control,
    /// It carries no packet and recurs without end, so it does not keep alive a service that is being
    /// removed.
    Idle,
    /// It is exchanged between the ports, and belongs to no service.
    Port,
    /// It is exchanged between the sessions, and reaches no port.
    Session,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $code:literal, $name:literal, $role:ident;)+) => {
        /// The kind of a frame. The scheme determines which kinds a service uses. The codes are our choice,
        /// where the dissertation gives none (XYL-S-9).
        // As wide as its neighbours in the header: if it were narrow, `Option<Frame>` would use it as the
        // discriminant, and frames would be moved in pieces around that byte.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum FrameKind {
            $($(#[doc = $doc])+ $kind = $code,)+
        }

        impl FrameKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            pub(super) const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$kind),)+
                    _ => None,
                }
            }

            /// The name that events and documents use.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// Its role for a port.
            pub const fn role(self) -> Role {
                match self {
                    $(Self::$kind => Role::$role,)+
                }
            }
        }
    };
}

kinds! {
    /// A packet, sent for the first time.
    Data = 0, "data", Original;
    /// An acknowledgment without a packet.
    Ack = 1, "ack", Control;
    /// A request for one frame.
    Nak = 2, "nak", Control;
    /// The highest number sent, while there is nothing new to send.
    Keepalive = 3, "keepalive", Idle;
    /// Redundancy: a combination of the packets of a block.
    Parity = 4, "parity", Redundancy;
    /// A packet, sent again before any request; live profiles only.
    Copy = 5, "copy", Copy;
    /// The reset of a service, or the response to one.
    Link = 6, "link", Control;
    /// A packet, retransmitted.
    Retransmission = 7, "retransmission", Repair;
    /// A bitmap of the frames received.
    Bitmap = 8, "bitmap", Control;
    /// Session control.
    Hello = 9, "hello", Session;
    /// Asks the other port for the mark's arrival time and the bytes received by then; live profiles only.
    Mark = 10, "mark", Port;
    /// Answers a mark, by its number.
    Report = 11, "report", Port;
}

impl FrameKind {
    /// Whether it is exchanged between the ports, and belongs to no service.
    #[inline]
    pub const fn is_of_ports(self) -> bool {
        matches!(self.role(), Role::Port)
    }

    /// Whether it belongs to a service.
    #[inline]
    pub const fn is_of_services(self) -> bool {
        !matches!(self.role(), Role::Port | Role::Session)
    }

    /// Whether it carries one whole packet.
    #[inline]
    pub const fn is_packet(self) -> bool {
        matches!(self.role(), Role::Original | Role::Copy | Role::Repair)
    }

    /// Whether it repeats a packet, or carries redundancy of packets.
    #[inline]
    pub const fn repairs(self) -> bool {
        matches!(self.role(), Role::Copy | Role::Repair | Role::Redundancy)
    }

    /// Whether it carries a packet, or redundancy of packets.
    #[inline]
    pub const fn carries_packet(self) -> bool {
        self.is_packet() || self.repairs()
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// The set of these kinds.
    pub const fn of(kinds: &[FrameKind]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < kinds.len() {
            set |= 1 << kinds[at] as u16;
            at += 1;
        }
        Self(set)
    }

    /// Whether the set contains this kind.
    #[inline]
    pub const fn has(self, kind: FrameKind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }
}
