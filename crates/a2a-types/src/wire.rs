//! How objects read and write their members: two macros, and the rules they follow.
//!
//! The reading and writing code is generated rather than derived for three reasons: unknown members must survive
//! without serde's `flatten` (which buffers whole subtrees), `null`, `""` and `[]` must read as absent, and an error
//! must say where it happened (`` `status.message.parts[2].raw`: … ``).

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use quick::{Quick, Unusual};

pub(crate) mod json;
pub(crate) mod kind;
pub(crate) mod quick;
pub(crate) mod reading;
pub(crate) mod text;
mod value;

pub(crate) use kind::Kind;
pub(crate) use reading::{Dialect, Reading};
pub(crate) use value::{Blank, WireItem, WireValue};

/// The name of a member, borrowed from the input where that is possible.
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

/// Reads the name of a member, or as much of it as is kept.
pub(crate) struct KeySeed<'r>(pub(crate) &'r Reading);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Key<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key<'de>, D::Error> {
        struct KeyVisitor<'r>(&'r Reading);
        impl<'de> Visitor<'de> for KeyVisitor<'_> {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text::cut(name, self.0.max_string()))))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text::cut(name, self.0.max_string()).to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor(self.0))
    }
}

/// Reads a value by the rules of a kind; `None` where the value says "absent".
struct MemberSeed<'r, K, T>(&'r Reading, PhantomData<(K, T)>);

impl<'de, K: Kind<'de, T>, T> DeserializeSeed<'de> for MemberSeed<'_, K, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, K: Kind<'de, T>, T> Visitor<'de> for MemberSeed<'_, K, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        K::read(deserializer, self.0)
    }
}

/// Reads an entry of a list or a map.
pub(crate) struct ItemSeed<'r, T>(&'r Reading, PhantomData<T>);

impl<'r, T> ItemSeed<'r, T> {
    pub(crate) fn new(reading: &'r Reading) -> Self {
        Self(reading, PhantomData)
    }
}

impl<'de, T: WireItem<'de>> DeserializeSeed<'de> for ItemSeed<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read_item(deserializer, self.0)
    }
}

/// Where the value of a member waits until its object is complete.
#[derive(Debug)]
pub(crate) enum Slot<T> {
    /// The member was not seen.
    Unseen,
    /// The member was seen and says "absent".
    Absent,
    /// The member has a value.
    Present(T),
}

/// Reads the value of the member `name` into its slot.
pub(crate) fn read_member<'de, K, T, A>(
    slot: &mut Slot<T>,
    name: &'static str,
    map: &mut A,
    reading: &Reading,
) -> Result<(), A::Error>
where
    K: Kind<'de, T>,
    A: MapAccess<'de>,
{
    if !matches!(slot, Slot::Unseen) {
        return Err(at(name, "given twice"));
    }
    let value = map
        .next_value_seed(MemberSeed::<K, T>(reading, PhantomData))
        .map_err(|error| at(name, error))?;
    *slot = value.map_or(Slot::Absent, Slot::Present);
    Ok(())
}

/// Turns a slot into the value of its field.
pub(crate) fn finish_member<'de, K: Kind<'de, T>, T, E: de::Error>(
    slot: Slot<T>,
    name: &'static str,
) -> Result<T, E> {
    match slot {
        Slot::Present(value) => Ok(value),
        Slot::Unseen | Slot::Absent => K::absent().ok_or_else(|| at(name, "required but missing")),
    }
}

/// Whether a member of an object that is filled was seen.
pub(crate) struct Member<K, T> {
    is_seen: bool,
    kind: PhantomData<(K, T)>,
}

impl<K, T> Member<K, T> {
    pub(crate) fn new() -> Self {
        Self { is_seen: false, kind: PhantomData }
    }

    /// Fills the field of the member.
    pub(crate) fn fill<'de>(
        &mut self,
        place: &mut T,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()>
    where
        K: Kind<'de, T>,
    {
        if std::mem::replace(&mut self.is_seen, true) {
            return Err(Unusual);
        }
        if (quick.null() || !K::fill(place, quick, reading)?) && K::IS_REQUIRED {
            return Err(Unusual);
        }
        Ok(())
    }

    /// Checks that the member is there, if it must be.
    pub(crate) fn finish<'de>(&self) -> quick::Result<()>
    where
        K: Kind<'de, T>,
    {
        if K::IS_REQUIRED && !self.is_seen { Err(Unusual) } else { Ok(()) }
    }
}

/// How much of a wrong text is shown, in bytes.
pub(crate) const MAX_SHOWN: usize = 100;

/// An error with the place where it happened in front: `` `place`: error ``. Places grow outwards.
pub(crate) fn at<E: de::Error>(place: &str, error: impl fmt::Display) -> E {
    let inner = error.to_string();
    E::custom(match inner.strip_prefix('`') {
        Some(rest) if rest.starts_with('[') => format!("`{place}{rest}"),
        Some(rest) => format!("`{place}.{rest}"),
        None => format!("`{place}`: {inner}"),
    })
}

/// The error of text where something else belongs. The parser's own would hold all of it, so whoever expects no text asks
/// for anything and says this.
pub(crate) fn not_text<E: de::Error>(text: &str, expected: &dyn de::Expected) -> E {
    E::invalid_type(de::Unexpected::Str(text::cut(text, MAX_SHOWN)), expected)
}

/// Defines an object: the struct, how it reads and how it writes.
///
/// `field: Type = Kind("name" | "alias")` where the kind is one of [`kind`]; `keeps extra` adds a map of the members
/// that nobody knows, `counts omitted` what an answer held beyond what is kept (such an object says itself what becomes of
/// lists of it that find no room).
macro_rules! wire_object {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(keeps $extra:ident)? $(counts $omitted:ident)? {
            $(
                $(#[$field_meta:meta])*
                $field:ident: $type:ty = $kind:ident($json:literal $(| $alias:literal)*),
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $(
                $(#[$field_meta])*
                pub $field: $type,
            )*
            $(
                /// Members this version does not know, kept as they came.
                pub $extra: $crate::JsonObject,
            )?
            $(
                /// What it held beyond what is kept of an answer; not written.
                pub $omitted: $crate::Omitted,
            )?
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <Self as $crate::wire::WireItem>::read_item(deserializer, &$crate::wire::Reading::whole())
            }
        }

        impl $name {
            /// Reads the object.
            fn read_object<'de, D: serde::Deserializer<'de>>(
                deserializer: D,
                reading: &$crate::wire::Reading,
            ) -> Result<Self, D::Error> {
                // Filled in place: the parser would move what is returned once more for each layer.
                struct ObjectVisitor<'r>(&'r $crate::wire::Reading, &'r mut Option<$name>);

                impl<'de> serde::de::Visitor<'de> for ObjectVisitor<'_> {
                    type Value = ();

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the object ", stringify!($name)))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                        Err($crate::wire::not_text(text, &self))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                        let Self(reading, object) = self;
                        $(let mut $field: $crate::wire::Slot<$type> = $crate::wire::Slot::Unseen;)*
                        $(let mut $extra = $crate::JsonObject::new();)?
                        $(let $omitted = reading.replace_omitted($crate::Omitted::default());)?
                        while let Some($crate::wire::Key(key)) = map.next_key_seed($crate::wire::KeySeed(reading))? {
                            match &*key {
                                $(
                                    $json $(| $alias)* => $crate::wire::read_member::<
                                        $crate::wire::kind::$kind,
                                        $type,
                                        A,
                                    >(&mut $field, $json, &mut map, reading)?,
                                )*
                                _ => wire_object!(@unknown $name map key reading $($extra)?),
                            }
                        }
                        *object = Some($name {
                            $(
                                $field: $crate::wire::finish_member::<
                                    $crate::wire::kind::$kind,
                                    $type,
                                    A::Error,
                                >($field, $json)?,
                            )*
                            $($extra,)?
                            $($omitted: reading.replace_omitted($omitted),)?
                        });
                        Ok(())
                    }
                }

                let mut object = None;
                deserializer.deserialize_any(ObjectVisitor(reading, &mut object))?;
                object.ok_or_else($crate::wire::nothing)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;

                let mut map = serializer.serialize_map(None)?;
                $(
                    if <$crate::wire::kind::$kind as $crate::wire::Kind<'_, $type>>::is_written(&self.$field) {
                        map.serialize_entry($json, &self.$field)?;
                    }
                )*
                $(
                    for (name, value) in &self.$extra {
                        map.serialize_entry(name, value)?;
                    }
                )?
                map.end()
            }
        }

        impl<'de> $crate::wire::WireValue<'de> for $name {
            fn read<D: serde::Deserializer<'de>>(
                deserializer: D,
                reading: &$crate::wire::Reading,
            ) -> Result<Option<Self>, D::Error> {
                Self::read_object(deserializer, reading).map(Some)
            }

            wire_object!(@fill $($extra)?);
        }

        wire_object! {
            @quick $name [$($extra)?] [$($omitted)?] {
                $($field: $type = $kind($json $(| $alias)*),)*
            }
        }

        wire_object!(@item $name $($omitted)?);
    };
    // What keeps unknown members is what answers and events are made of, which are read the quick way.
    (@fill) => {};
    (@fill $extra:ident) => {
        fn fill(
            &mut self,
            quick: &mut $crate::wire::quick::Quick<'de>,
            reading: &$crate::wire::Reading,
        ) -> $crate::wire::quick::Result<bool> {
            self.fill_object(quick, reading).map(|()| true)
        }

        fn fill_option(
            place: &mut Option<Self>,
            quick: &mut $crate::wire::quick::Quick<'de>,
            reading: &$crate::wire::Reading,
        ) -> $crate::wire::quick::Result<()> {
            place.insert($crate::wire::Blank::blank()).fill_object(quick, reading)
        }
    };
    (@quick $name:ident [] [] $fields:tt) => {};
    (@quick $name:ident [$extra:ident] [$($omitted:ident)?] {
        $($field:ident: $type:ty = $kind:ident($json:literal $(| $alias:literal)*),)*
    }) => {
        impl $crate::wire::Blank for $name {
            fn blank() -> Self {
                Self {
                    $($field: $crate::wire::Blank::blank(),)*
                    $extra: $crate::JsonObject::new(),
                    $($omitted: $crate::Omitted::default(),)?
                }
            }
        }

        impl $name {
            /// Reads the object with the quick parser, into a blank one.
            pub(crate) fn fill_object(
                &mut self,
                quick: &mut $crate::wire::quick::Quick<'_>,
                reading: &$crate::wire::Reading,
            ) -> $crate::wire::quick::Result<()> {
                $(let $field = $crate::wire::Member::<$crate::wire::kind::$kind, $type>::new();)*
                $(let mut $field = $field;)*
                $(let $omitted = reading.replace_omitted($crate::Omitted::default());)?
                quick.open(b'{')?;
                loop {
                    let key = quick.next_key()?;
                    match key {
                        "" => break,
                        $($json $(| $alias)* => $field.fill(&mut self.$field, quick, reading)?,)*
                        _ => $crate::wire::json::fill_into(&mut self.$extra, key, quick, reading)?,
                    }
                }
                $($field.finish()?;)*
                $(self.$omitted = reading.replace_omitted($omitted);)?
                Ok(())
            }
        }
    };
    (@item $name:ident $omitted:ident) => {};
    (@item $name:ident) => {
        impl<'de> $crate::wire::WireItem<'de> for $name {
            fn read_item<D: serde::Deserializer<'de>>(
                deserializer: D,
                reading: &$crate::wire::Reading,
            ) -> Result<Self, D::Error> {
                Self::read_object(deserializer, reading)
            }
        }
    };
    (@unknown $name:ident $map:ident $key:ident $reading:ident $extra:ident) => {
        if !$crate::wire::skip_old(stringify!($name), &$key, &mut $map, $reading)? {
            $crate::wire::json::read_into(&mut $extra, &$key, &mut $map, $reading)?;
        }
    };
    (@unknown $name:ident $map:ident $key:ident $reading:ident) => {{
        $map.next_value::<serde::de::IgnoredAny>()?;
    }};
}

/// Defines an object that holds exactly one of several members, as an enum.
///
/// `else Variant` keeps an object with none of them as it came; without it that is an error.
macro_rules! wire_oneof {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident($type:ty) = $json:literal $(| $alias:literal)*,
            )*
        }
        $(else $unknown:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$variant_meta])*
                $variant($type),
            )*
            $(
                /// None of those this version knows; the members as they came.
                $unknown($crate::JsonObject),
            )?
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <Self as $crate::wire::WireItem>::read_item(deserializer, &$crate::wire::Reading::whole())
            }
        }

        impl<'de> $crate::wire::WireItem<'de> for $name {
            fn read_item<D: serde::Deserializer<'de>>(
                deserializer: D,
                reading: &$crate::wire::Reading,
            ) -> Result<Self, D::Error> {
                struct OneofVisitor<'r>(&'r $crate::wire::Reading, &'r mut Option<$name>);

                impl<'de> serde::de::Visitor<'de> for OneofVisitor<'_> {
                    type Value = ();

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the object ", stringify!($name)))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                        Err($crate::wire::not_text(text, &self))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                        let Self(reading, object) = self;
                        let mut found: Option<&'static str> = None;
                        wire_oneof!(@unknown_init unknown $($unknown)?);
                        while let Some($crate::wire::Key(key)) = map.next_key_seed($crate::wire::KeySeed(reading))? {
                            match &*key {
                                $(
                                    $json $(| $alias)* => {
                                        let mut slot: $crate::wire::Slot<$type> = $crate::wire::Slot::Unseen;
                                        $crate::wire::read_member::<$crate::wire::kind::Required, $type, A>(
                                            &mut slot, $json, &mut map, reading,
                                        )?;
                                        if let $crate::wire::Slot::Present(value) = slot {
                                            if let Some(other) = found.replace($json) {
                                                return Err($crate::wire::two_members(other, $json));
                                            }
                                            *object = Some($name::$variant(value));
                                        }
                                    }
                                )*
                                _ => wire_oneof!(@unknown map key reading unknown $($unknown)?),
                            }
                        }
                        if found.is_none() {
                            let none: Result<$name, A::Error> =
                                wire_oneof!(@none unknown $name [$($json)*] $($unknown)?);
                            *object = Some(none?);
                        }
                        Ok(())
                    }
                }

                let mut object = None;
                deserializer.deserialize_any(OneofVisitor(reading, &mut object))?;
                object.ok_or_else($crate::wire::nothing)
            }

            wire_oneof! { @fill { $($variant($type) = $json $(| $alias)*,)* } $($unknown)? }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;

                match self {
                    $(
                        Self::$variant(value) => {
                            let mut map = serializer.serialize_map(Some(1))?;
                            map.serialize_entry($json, value)?;
                            map.end()
                        }
                    )*
                    $(Self::$unknown(members) => serde::Serialize::serialize(members, serializer),)?
                }
            }
        }

        impl<'de> $crate::wire::WireValue<'de> for $name {
            fn read<D: serde::Deserializer<'de>>(
                deserializer: D,
                reading: &$crate::wire::Reading,
            ) -> Result<Option<Self>, D::Error> {
                <Self as $crate::wire::WireItem>::read_item(deserializer, reading).map(Some)
            }
        }

        $(
            impl From<$type> for $name {
                fn from(value: $type) -> Self {
                    Self::$variant(value)
                }
            }
        )*
    };
    // What says who has sent what is read the quick way.
    (@fill { $($variant:ident($type:ty) = $json:literal $(| $alias:literal)*,)* } $unknown:ident) => {};
    (@fill { $($variant:ident($type:ty) = $json:literal $(| $alias:literal)*,)* }) => {
        fn fill_item(
            place: &mut Option<Self>,
            quick: &mut $crate::wire::quick::Quick<'de>,
            reading: &$crate::wire::Reading,
        ) -> $crate::wire::quick::Result<()> {
            use $crate::wire::quick::Unusual;

            quick.open(b'{')?;
            loop {
                let key = quick.next_key()?;
                match key {
                    "" => break,
                    $($json $(| $alias)* => {
                        if quick.null() {
                            continue;
                        }
                        if place.is_some() {
                            return Err(Unusual);
                        }
                        let blank = <$type as $crate::wire::Blank>::blank();
                        let Self::$variant(object) = place.insert(Self::$variant(blank)) else {
                            return Err(Unusual);
                        };
                        object.fill_object(quick, reading)?;
                    })*
                    _ => quick.skip()?,
                }
            }
            if place.is_some() { Ok(()) } else { Err(Unusual) }
        }
    };
    (@unknown_init $members:ident $unknown:ident) => {
        let mut $members = $crate::JsonObject::new();
    };
    (@unknown_init $members:ident) => {};
    (@unknown $map:ident $key:ident $reading:ident $members:ident $unknown:ident) => {
        $crate::wire::json::read_into(&mut $members, &$key, &mut $map, $reading)?
    };
    (@unknown $map:ident $key:ident $reading:ident $members:ident) => {{
        $map.next_value::<serde::de::IgnoredAny>()?;
    }};
    (@none $members:ident $name:ident [$($json:literal)*] $unknown:ident) => {
        Ok($name::$unknown($members))
    };
    (@none $members:ident $name:ident [$($json:literal)*]) => {
        Err($crate::wire::no_member(&[$($json),*]))
    };
}

/// Passes over a member of 0.3 that no object of 1.0 has; whether it was one.
pub(crate) fn skip_old<'de, A: MapAccess<'de>>(
    object: &str,
    key: &str,
    map: &mut A,
    reading: &Reading,
) -> Result<bool, A::Error> {
    match (reading.is_old(), key, object) {
        (true, "kind", _) => {
            map.next_value::<IgnoredAny>()?;
        }
        (true, "final", "TaskStatusUpdateEvent") => {
            if map.next_value::<&'de RawValue>()?.get() == "true" {
                reading.set_final();
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The error of an object that was passed over. No parser does that: it reads what is there or says why not.
pub(crate) fn nothing<E: de::Error>() -> E {
    E::custom("nothing was read")
}

pub(crate) use wire_object;
pub(crate) use wire_oneof;

/// The error of an object that has two members where only one may be.
pub(crate) fn two_members<E: de::Error>(one: &str, other: &str) -> E {
    E::custom(format_args!("only one of `{one}` and `{other}` may be given"))
}

/// The error of an object that has none of the members of which it needs one.
pub(crate) fn no_member<E: de::Error>(names: &[&str]) -> E {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    E::custom(format_args!("exactly one of {} is needed", names.join(", ")))
}

#[cfg(test)]
mod tests;
