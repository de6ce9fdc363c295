//! Computes how many rows each part of the screen has, and what remains hidden.

/// The heights of the screen's parts, rows.
pub(super) struct Heights {
    pub(super) head: u16,
    pub(super) list: u16,
    /// Height of each of the two tables of services.
    pub(super) table: u16,
    pub(super) foot: u16,
    /// Peers and flows that have no room.
    pub(super) peers: usize,
    pub(super) flows: usize,
}

impl Heights {
    /// A table has an empty row and a row of column heads.
    const NAMES: u16 = 2;

    /// Shares out `height` rows between the head and the foot, a list of peers, the services of one
    /// peer, and flows if they are shown. Upper parts have priority.
    pub(super) fn fit(
        height: u16,
        (head, foot): (u16, u16),
        (peers, services, flows): (usize, usize, Option<usize>),
    ) -> Self {
        let foot = foot.min(height);
        let head = head.min(height - foot);
        let mut left = height - foot - head;
        let list = match peers {
            0 => 0,
            // More than a third of the screen would leave too little room for the services.
            _ => (peers as u16 + Self::NAMES).min(height / 3).min(left),
        };
        left -= list;
        let whole = services as u16 + Self::NAMES;
        // If flows are shown, at least some get room.
        let spare = flows.map_or(0, |flows| (flows as u16 + Self::NAMES).min(left / 2));
        let room = (left - spare) / 2;
        let table = match room.min(whole + 1) {
            // Column heads without a row below them are of no use.
            few if few <= Self::NAMES => 0,
            enough => enough,
        };
        let hidden =
            |all: usize, room: u16| all.saturating_sub(room.saturating_sub(Self::NAMES).into());
        Self {
            head,
            list,
            table,
            foot,
            peers: hidden(peers, list),
            flows: hidden(flows.unwrap_or_default(), left - 2 * table),
        }
    }

    /// The number of services that have room.
    pub(super) fn services(&self) -> usize {
        self.table.saturating_sub(Self::NAMES).into()
    }
}
