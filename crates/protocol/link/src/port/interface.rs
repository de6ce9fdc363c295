//! The state that a service exports as a MAC does (Gopal 2007, section 3.3.2): what it has taken, how often
//! it ran dry, and the room in its queue. Each service is an interface of its own here, as each has its own
//! queue.

/// Counters of a service since its installation, and the present room in its queue. The reader computes
/// intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Packets that it took from its queue to send. Repairs do not count.
    pub taken_packets: u64,
    /// Bytes of these packets.
    pub taken_bytes: u64,
    /// How often it could have handed over a frame but had none, and none was on its way to the link.
    pub underflows: u64,
    /// Bytes that its queue can take now and hold as a standing queue.
    pub room_bytes: u64,
    /// Whether nothing is queued, nor on its way to the link.
    pub is_idle: bool,
}
