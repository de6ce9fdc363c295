//! Service numbers, and sets of them.

/// Service numbers have 4 bits.
pub(super) const SERVICES: usize = 16;

/// The members of a bit set in ascending order.
pub(super) fn numbers(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let rest = set & set.checked_sub(1)?;
        let number = std::mem::replace(&mut set, rest).trailing_zeros();
        Some(number as usize % SERVICES)
    })
}
