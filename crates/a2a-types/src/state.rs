//! Where a task stands, and who speaks.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::{
    v03::new_name,
    wire::{
        Reading, WireValue,
        quick::{self, Quick, Unusual},
        text::cut,
    },
};

/// No name is longer, in bytes; of an unknown one this much is kept.
const MAX_NAME: usize = 1 << 10;

/// Reads the name of an enum's value, or its number.
fn read_name<'de, D: Deserializer<'de>>(
    deserializer: D,
    numbered: &'static [&'static str],
) -> Result<String, D::Error> {
    struct NameVisitor(&'static [&'static str]);

    impl Visitor<'_> for NameVisitor {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name or the number of an enum's value")
        }

        fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
            Ok(cut(name, MAX_NAME).to_owned())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            let known = usize::try_from(number).ok().and_then(|number| self.0.get(number));
            Ok(known.map_or_else(|| number.to_string(), |name| (*name).to_owned()))
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    deserializer.deserialize_any(NameVisitor(numbered))
}

macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident ($prefix:literal) {
            $($(#[$variant_meta:meta])* $variant:ident = $json:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
            /// A value this version does not know, kept as it came.
            Unknown(String),
        }

        impl $name {
            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $json,)*
                    Self::Unknown(name) => name,
                }
            }

            /// The value that has this name on the wire.
            pub fn from_wire_name(name: &str) -> Self {
                match name {
                    $($json => Self::$variant,)*
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_name(deserializer, &[$($json),*]).map(|name| Self::from_wire_name(&name))
            }
        }

        impl<'de> WireValue<'de> for $name {
            fn read<D: Deserializer<'de>>(
                deserializer: D,
                reading: &Reading,
            ) -> Result<Option<Self>, D::Error> {
                let mut name = read_name(deserializer, &[$($json),*])?;
                if reading.is_old() {
                    name = new_name(name, $prefix);
                }
                if name.is_empty() {
                    return Ok(None);
                }
                let value = Self::from_wire_name(&name);
                if matches!(value, Self::Unknown(_)) && !reading.is_request() {
                    // Agents that came from 0.3 may still spell it as there.
                    let renamed = Self::from_wire_name(&new_name(name, $prefix));
                    return Ok(Some(if matches!(renamed, Self::Unknown(_)) { value } else { renamed }));
                }
                Ok(Some(value))
            }

            fn fill(&mut self, quick: &mut Quick<'de>, _: &Reading) -> quick::Result<bool> {
                let name = quick.name()?;
                if name.is_empty() {
                    return Ok(false);
                }
                *self = Self::from_wire_name(cut(&name, MAX_NAME));
                // It may be the name of 0.3.
                if matches!(self, Self::Unknown(_)) { Err(Unusual) } else { Ok(true) }
            }
        }
    };
}

wire_enum! {
    /// Where a task stands.
    pub enum TaskState ("TASK_STATE_") {
        /// The agent did not say; never sent by us.
        #[default]
        Unspecified = "TASK_STATE_UNSPECIFIED",
        /// Accepted and not yet started.
        Submitted = "TASK_STATE_SUBMITTED",
        /// Being worked on.
        Working = "TASK_STATE_WORKING",
        /// Done.
        Completed = "TASK_STATE_COMPLETED",
        /// Ended with an error.
        Failed = "TASK_STATE_FAILED",
        /// Ended because somebody asked for that.
        Canceled = "TASK_STATE_CANCELED",
        /// Waits for another message of the user.
        InputRequired = "TASK_STATE_INPUT_REQUIRED",
        /// Declined by the agent.
        Rejected = "TASK_STATE_REJECTED",
        /// Waits for an authorization, usually given outside of A2A.
        AuthRequired = "TASK_STATE_AUTH_REQUIRED",
    }
}

wire_enum! {
    /// Who speaks in a message.
    pub enum Role ("ROLE_") {
        /// Nobody, which no message may say.
        #[default]
        Unspecified = "ROLE_UNSPECIFIED",
        /// The client.
        User = "ROLE_USER",
        /// The agent.
        Agent = "ROLE_AGENT",
    }
}

impl TaskState {
    /// Whether nothing can change any more.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Unspecified
            | Self::Submitted
            | Self::Working
            | Self::InputRequired
            | Self::AuthRequired
            | Self::Unknown(_) => false,
        }
    }

    /// Whether the task waits for somebody.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether there is something to tell: the task has ended or waits for somebody.
    pub fn is_settled(&self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }

    /// The state as people read it: `completed`, `input-required`.
    pub fn label(&self) -> String {
        let name = self.as_str();
        name.strip_prefix("TASK_STATE_").unwrap_or(name).to_lowercase().replace('_', "-")
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FromWire, Task, WireLimits};

    #[test]
    fn answers_may_spell_a_state_as_0_3_did() {
        let read = |state: &str, limits| {
            let task = format!(r#"{{"id":"t","contextId":"c","status":{{"state":"{state}"}}}}"#);
            Task::from_wire(&task, limits).map(|task| task.status.state)
        };
        assert_eq!(read("completed", WireLimits::Answer).unwrap(), TaskState::Completed);
        assert_eq!(read("input-required", WireLimits::Answer).unwrap(), TaskState::InputRequired);
        let own = TaskState::Unknown("resting".to_owned());
        assert_eq!(read("resting", WireLimits::Answer).unwrap(), own);
    }

    #[test]
    fn numbers_and_names_read_alike() {
        for (number, name) in
            [(0, "UNSPECIFIED"), (3, "COMPLETED"), (6, "INPUT_REQUIRED"), (8, "AUTH_REQUIRED")]
        {
            let by_name: TaskState =
                serde_json::from_str(&format!("\"TASK_STATE_{name}\"")).unwrap();
            let by_number: TaskState = serde_json::from_str(&number.to_string()).unwrap();
            assert_eq!(by_name, by_number);
            assert!(!matches!(by_name, TaskState::Unknown(_)), "{name}");
        }
        assert_eq!(serde_json::from_str::<Role>("2").unwrap(), Role::Agent);
    }

    #[test]
    fn unknown_states_survive_and_are_not_settled() {
        let state: TaskState = serde_json::from_str("\"TASK_STATE_PAUSED\"").unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), "\"TASK_STATE_PAUSED\"");
        assert_eq!((state.is_settled(), state.label().as_str()), (false, "paused"));
        assert_eq!(
            serde_json::from_str::<TaskState>("12").unwrap(),
            TaskState::Unknown("12".to_owned())
        );
        assert_eq!(
            serde_json::from_str::<TaskState>("-1").unwrap(),
            TaskState::Unknown("-1".to_owned())
        );
        serde_json::from_str::<TaskState>("{}").unwrap_err();
    }

    #[test]
    fn every_state_has_its_class_and_label() {
        let settled: Vec<(String, bool, bool)> = (0..9)
            .map(|number| serde_json::from_str::<TaskState>(&number.to_string()).unwrap())
            .map(|state| (state.label(), state.is_terminal(), state.is_settled()))
            .collect();
        let expected = [
            ("unspecified", false, false),
            ("submitted", false, false),
            ("working", false, false),
            ("completed", true, true),
            ("failed", true, true),
            ("canceled", true, true),
            ("input-required", false, true),
            ("rejected", true, true),
            ("auth-required", false, true),
        ];
        assert_eq!(
            settled,
            expected.map(|(label, terminal, all)| (label.to_owned(), terminal, all))
        );
    }
}
