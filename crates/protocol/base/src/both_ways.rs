//! A value of a duplex link that may differ between its two directions.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::schema::both_ways;
use crate::{Duration, QueueLimit, Rate};

/// A value for both directions, or one for each. In files: `x = "..."`, or `x.down` and `x.up`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BothWays<T> {
    /// From the first end to the second.
    pub down: T,
    /// From the second end to the first.
    pub up: T,
}

impl<T: Copy> BothWays<T> {
    /// The same value in both directions.
    pub const fn same(value: T) -> Self {
        Self {
            down: value,
            up: value,
        }
    }
}

impl<T> BothWays<T> {
    /// The value of one direction.
    pub const fn of(&self, down: bool) -> &T {
        if down { &self.down } else { &self.up }
    }

    /// Mutable access to the value of one direction.
    pub const fn of_mut(&mut self, down: bool) -> &mut T {
        if down { &mut self.down } else { &mut self.up }
    }

    /// Both values, down first.
    pub const fn each(&self) -> [&T; 2] {
        [&self.down, &self.up]
    }

    /// References to both values.
    pub const fn as_ref(&self) -> BothWays<&T> {
        BothWays {
            down: &self.down,
            up: &self.up,
        }
    }

    /// Applies `make` to both values, down first.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> BothWays<U> {
        BothWays {
            down: make(self.down),
            up: make(self.up),
        }
    }
}

impl<T: Clone> From<T> for BothWays<T> {
    fn from(value: T) -> Self {
        Self {
            down: value.clone(),
            up: value,
        }
    }
}

/// As in a file: one value if the directions agree.
impl<T: fmt::Display + PartialEq> fmt::Display for BothWays<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.down == self.up {
            return self.down.fmt(f);
        }
        write!(f, "{} down, {} up", self.down, self.up)
    }
}

impl<T: Serialize + PartialEq> Serialize for BothWays<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.down == self.up {
            return self.down.serialize(s);
        }
        let mut map = s.serialize_map(Some(2))?;
        map.serialize_entry("down", &self.down)?;
        map.serialize_entry("up", &self.up)?;
        map.end()
    }
}

/// A type that files write once for both directions, or once for each.
pub trait Directed: Sized {
    /// The schema name of a pair.
    fn pair_name() -> Cow<'static, str>;
    /// The schema of a pair.
    fn pair_schema(generator: &mut SchemaGenerator) -> Schema;
    /// Reads a pair.
    ///
    /// # Errors
    /// If the input is neither one value nor one for each direction.
    fn read_pair<'de, D: Deserializer<'de>>(d: D) -> Result<BothWays<Self>, D::Error>;
}

impl<T: Directed> JsonSchema for BothWays<T> {
    fn schema_name() -> Cow<'static, str> {
        T::pair_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::pair_schema(generator)
    }
}

impl<'de, T: Directed> Deserialize<'de> for BothWays<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        T::read_pair(d)
    }
}

macro_rules! texts {
    ($($type:ident: $example:literal),+) => {
        $(
            impl Directed for $type {
                fn pair_name() -> Cow<'static, str> {
                    format!("BothWays_{}", Self::schema_name()).into()
                }

                fn pair_schema(generator: &mut SchemaGenerator) -> Schema {
                    both_ways(&generator.subschema_for::<Self>())
                }

                fn read_pair<'de, D: Deserializer<'de>>(d: D) -> Result<BothWays<Self>, D::Error> {
                    d.deserialize_any(Either($example, PhantomData))
                }
            }
        )+
    };
}

texts!(Duration: "25 ms", QueueLimit: "100 packets", Rate: "20 Mbit/s");

/// Visits one string, or a table with a string for each direction.
struct Either<T>(&'static str, PhantomData<T>);

impl<'de, T> Visitor<'de> for Either<T>
where
    T: Deserialize<'de> + FromStr<Err: fmt::Display> + Copy,
{
    type Value = BothWays<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(example, _) = self;
        write!(
            f,
            "a text with its unit, such as \"{example}\", or one for each of `down` and `up`"
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(BothWays::same).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut down, mut up) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "down" => down = Some(map.next_value()?),
                "up" => up = Some(map.next_value()?),
                _ => return Err(A::Error::unknown_field(&key, &["down", "up"])),
            }
        }
        Ok(BothWays {
            down: down.ok_or_else(|| A::Error::missing_field("down"))?,
            up: up.ok_or_else(|| A::Error::missing_field("up"))?,
        })
    }
}
