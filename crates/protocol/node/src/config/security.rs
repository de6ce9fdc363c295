//! `link.security`: protection of frames.

use std::fmt;
use std::path::PathBuf;

use airlane_secure::PublicKey;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, de};

/// How frames are protected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("examples" = [{
    "private-key": "/etc/airlane/left.key",
    "peer-key": "TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=",
}]))]
pub enum Security {
    /// Encrypted and authenticated with static keys.
    Keys(Keys),
    /// A keyword.
    Word(NoSecurity),
}

impl<'de> Deserialize<'de> for Security {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Security;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "{ private-key = \"FILE\", peer-key = \"KEY\" }, with keys of `airlane keygen`, \
                     or \"none\"",
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Security, E> {
                match text {
                    "none" => Ok(Security::Word(NoSecurity::None)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Security, A::Error> {
                Keys::deserialize(MapAccessDeserializer::new(map)).map(Security::Keys)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The keys of this end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The file with the private key of this end, as `airlane keygen` writes it. Source: RFC 7748.
    #[schemars(example = &"/etc/airlane/left.key")]
    pub private_key: PathBuf,
    /// The public key of the other end. Source: RFC 7748. Left out: several peers have theirs under `peers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_key: Option<PublicKey>,
    /// The file with a pre-shared key of both ends, as `airlane keygen --preshared` writes it: recorded
    /// traffic then stays confidential even if X25519 is broken later. Source: The Noise Protocol Framework,
    /// revision 34, section
    /// 9. Left out: there is none, or it is under `peers`.
    #[schemars(example = &"/etc/airlane/left-right.psk")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preshared_key: Option<PathBuf>,
}

/// The keyword for no protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoSecurity {
    /// No encryption and no authentication.
    None,
}
