//! What a service exports as a MAC does (Gopal 2007, section 3.3.2): what it has taken, how often it ran dry, and what
//! finds room in its queue. A service is an interface of its own here, as each has a queue of its own.

/// Counts of a service since it came, and the room in its queue now. Whoever reads it makes intervals of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Packets that it took from its queue to send them. Repairs do not count.
    pub taken_packets: u64,
    /// Bytes of them.
    pub taken_bytes: u64,
    /// How often it was to hand over what it has, had nothing, and none was on its way to the link.
    pub underflows: u64,
    /// Bytes that its queue would take now and still let stand.
    pub room_bytes: u64,
    /// Whether nothing waits in it, nor is on its way to the link.
    pub is_idle: bool,
}
