//! What frames are for, and what each kind is to a port that does not know its scheme.

/// What a kind of frame is to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It carries a packet for the first time.
    Original,
    /// It carries a packet again, before anybody could ask for it.
    Copy,
    /// It carries a packet again.
    Repair,
    /// It carries what packets of a block combine to.
    Redundancy,
    /// It carries no packet.
    Control,
    /// It carries no packet and goes on without end, so that it keeps no service that is to go.
    Idle,
    /// It is between the ports, and of no service.
    Port,
    /// It is between the sessions, and reaches no port.
    Session,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $code:literal, $name:literal, $role:ident;)+) => {
        /// What a frame is for. Which of them a service has is its scheme's to say. The codes are ours where the
        /// dissertation is silent (XYL-S-9).
        // As wide as its neighbours in the header: a narrow one makes `Option<Frame>` tell by a byte in its
        // midst whether there is a frame, and frames are then moved in pieces around that byte.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum FrameKind {
            $($(#[doc = $doc])+ $kind = $code,)+
        }

        impl FrameKind {
            /// All of them.
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

            /// What it is to a port.
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
    /// An acknowledgment alone.
    Ack = 1, "ack", Control;
    /// A request for one frame.
    Nak = 2, "nak", Control;
    /// It names the highest number sent while there is nothing new to send.
    Keepalive = 3, "keepalive", Idle;
    /// Redundancy: what packets of a block combine to.
    Parity = 4, "parity", Redundancy;
    /// A packet, sent again before anybody could ask for it; live profiles only.
    Copy = 5, "copy", Copy;
    /// It begins a service anew, or answers that.
    Link = 6, "link", Control;
    /// A packet, sent again.
    Retransmission = 7, "retransmission", Repair;
    /// It says which frames have been received.
    Bitmap = 8, "bitmap", Control;
    /// Session control.
    Hello = 9, "hello", Session;
    /// It asks the other port when it came, and how much has by then; live profiles only.
    Mark = 10, "mark", Port;
    /// It answers a mark, by its number.
    Report = 11, "report", Port;
}

impl FrameKind {
    /// Whether it is between the ports, and of no service.
    #[inline]
    pub const fn is_of_ports(self) -> bool {
        matches!(self.role(), Role::Port)
    }

    /// Whether it belongs to a service.
    #[inline]
    pub const fn is_of_services(self) -> bool {
        !matches!(self.role(), Role::Port | Role::Session)
    }

    /// Whether what it carries is one whole packet.
    #[inline]
    pub const fn is_packet(self) -> bool {
        matches!(self.role(), Role::Original | Role::Copy | Role::Repair)
    }

    /// Whether it repeats a packet, or carries redundancy of packets.
    #[inline]
    pub const fn repairs(self) -> bool {
        matches!(self.role(), Role::Copy | Role::Repair | Role::Redundancy)
    }

    /// Whether a packet travels in it, or redundancy of packets.
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

    /// Whether it has this one.
    #[inline]
    pub const fn has(self, kind: FrameKind) -> bool {
        self.0 >> kind as u32 & 1 == 1
    }
}
