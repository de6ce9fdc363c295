//! Time as integer nanoseconds. The driver chooses the origin; nothing here can read a clock.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::{UnitError, deserialize_quantity, number, parse_quantity};

/// A point in time, in nanoseconds since an origin that the driver chose.
///
/// Stored plus one, so that an `Option` of it is one word, too: deadlines are compared and copied at every event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(NonZeroU64);

/// Hashed as a wider number than any other field, so that a hasher can tell times from amounts and take them relative to
/// now.
impl Hash for Instant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.as_nanos().into());
    }
}

impl Instant {
    /// The driver's origin.
    pub const ORIGIN: Self = Self(NonZeroU64::MIN);
    /// The latest instant.
    pub const FAR_FUTURE: Self = Self(NonZeroU64::MAX);

    /// The instant `nanos` nanoseconds after the origin, at most [`Instant::FAR_FUTURE`].
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ORIGIN
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.as_nanos()).finish()
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::FAR_FUTURE`].
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    /// Saturates at the origin.
    fn sub(self, d: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(d.0))
    }
}

/// A span of time in nanoseconds. In files: `"100 ms"`, `"1.35 s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest duration.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000_000))
    }

    /// `s` seconds, to the nearest nanosecond; zero if `s` is negative or not a number.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self * factor`, to the nearest nanosecond.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }

    /// `self - other`, at least zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The absolute difference to `other`.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl std::ops::Div<u64> for Duration {
    type Output = Self;
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let (value, unit) = match n {
            0 => return f.write_str("0 s"),
            1_000_000_000.. => (n as f64 / 1e9, "s"),
            1_000_000.. => (n as f64 / 1e6, "ms"),
            1_000.. => (n as f64 / 1e3, "us"),
            _ => (n as f64, "ns"),
        };
        write!(f, "{} {unit}", number(value))
    }
}

impl std::str::FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = [
            ("s", 1e9),
            ("ms", 1e6),
            ("us", 1e3),
            ("ns", 1.0),
            ("min", 6e10),
        ];
        let ns = parse_quantity(text, "a duration such as \"100 ms\"", &units)?;
        Ok(Self((ns + 0.5) as u64))
    }
}

crate::schema_of!(Duration, "Duration", {
    "type": "string",
    "description": "A time with its unit.",
    "pattern": r"^\s*[+]?[0-9._]+\s*(ns|us|ms|s|min)\s*$",
    "examples": ["100 ms", "1.35 s"],
    "x-unit": "ns, us, ms, s, min",
});

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        deserialize_quantity(d, "a duration with its unit, such as \"100 ms\"")
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_trip_as_text() {
        for text in ["0 s", "100 ms", "1.35 s", "2000 s", "5 us", "250 ns"] {
            let d: Duration = text.parse().unwrap();
            assert_eq!(d.to_string(), text);
        }
    }

    #[test]
    fn a_duration_without_its_unit_is_refused() {
        let e = "100".parse::<Duration>().unwrap_err().to_string();
        assert!(e.contains("needs a unit") && e.contains("ms"), "{e}");
        assert!("-3 s".parse::<Duration>().is_err());
        assert!("3 kg".parse::<Duration>().is_err());
    }
}
