//! Identifiers, each its own type so that none is taken for another.

use std::{borrow::Borrow, fmt};

use serde::{Deserialize, Deserializer, Serialize};

use crate::wire::{
    Blank, Reading, WireItem, WireValue,
    quick::{self, Quick},
    text::read_short,
};

macro_rules! wire_id {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an identifier.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The identifier as owned text.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl<'de> WireValue<'de> for $name {
            fn read<D: Deserializer<'de>>(
                deserializer: D,
                reading: &Reading,
            ) -> Result<Option<Self>, D::Error> {
                Ok(<String as WireValue>::read(deserializer, reading)?.map(Self))
            }

            fn fill(&mut self, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
                self.0.fill(quick, reading)
            }

            fn fill_option(
                place: &mut Option<Self>,
                quick: &mut Quick<'de>,
                reading: &Reading,
            ) -> quick::Result<()> {
                *place = Some(Self(quick.short(reading)?)).filter(|id| !id.0.is_empty());
                Ok(())
            }
        }

        impl Blank for $name {
            fn blank() -> Self {
                Self(String::new())
            }
        }

        impl<'de> WireItem<'de> for $name {
            fn read_item<D: Deserializer<'de>>(
                deserializer: D,
                reading: &Reading,
            ) -> Result<Self, D::Error> {
                read_short(deserializer, reading).map(Self)
            }
        }
    )*};
}

wire_id! {
    /// Identifies a task; made by the agent.
    TaskId;
    /// Identifies a context, the thread that groups tasks and messages.
    ContextId;
    /// Identifies a message; made by whoever sends it.
    MessageId;
    /// Identifies an artifact within its task.
    ArtifactId;
    /// Identifies a push configuration within its task.
    PushConfigId;
}
