//! The senders of a dumbbell: how many, or each one's access link.

use crate::quantity::{RateText, TimeText};
use schemars::JsonSchema;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of senders, or a table for each one's access link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SendersForm {
    /// Behind plain veths.
    Count(u32),
    /// Each with a separate link.
    Links(Vec<AccessForm>),
}

/// A sender's own link, the same in both directions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessForm {
    /// The rate of a store-and-forward wire; without one the link is a plain veth, which takes no time.
    #[serde(default)]
    pub rate: Option<RateText>,
    /// The propagation delay, one way.
    #[serde(default)]
    pub delay: TimeText,
    /// The queue in front of the wire, towards the router.
    #[serde(default)]
    pub queue: Option<String>,
}

impl<'de> Deserialize<'de> for SendersForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = SendersForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of senders, or a table for each")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<SendersForm, E> {
                Ok(SendersForm::Count(u32::try_from(count).unwrap_or(u32::MAX)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SendersForm, A::Error> {
                let mut links: Vec<AccessForm> = Vec::new();
                while let Some(link) = list.next_element()? {
                    links.push(link);
                }
                Ok(SendersForm::Links(links))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
