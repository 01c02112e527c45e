//! Refuses a list in place of an object: serde's derived code reads a list as the fields of a struct in their order, without names.

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::fmt::Formatter;

/// Reads a JSON document that is stored or written by hand.
///
/// ```
/// let fault = wire::from_json::<wire::UsageBatch>("[[]]").unwrap_err();
/// assert!(fault.to_string().starts_with("found a list, expected an object"));
/// ```
///
/// # Errors
/// It is not JSON, has other fields, or has a list in place of an object.
pub fn from_json<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(Strict(&mut reader))?;
    reader.end()?;
    Ok(read)
}

/// A deserializer, or a part of one, that refuses a list in place of a struct.
pub struct Strict<D>(pub D);

struct Seen<V> {
    visitor: V,
    /// An object with named fields is expected.
    fields: bool,
}

fn any<V>(visitor: V) -> Seen<V> {
    Seen { visitor, fields: false }
}

macro_rules! forward {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => { $(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* any(visitor))
        }
    )* };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    forward! {
        deserialize_any(); deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64();
        deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_bytes(); deserialize_byte_buf(); deserialize_option(); deserialize_unit(); deserialize_seq();
        deserialize_map(); deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str); deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize); deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Seen { visitor, fields: true })
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($kind:ty);)*) => { $(
        fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )* };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Seen<V> {
    type Value = V::Value;

    fn expecting(&self, text: &mut Formatter<'_>) -> std::fmt::Result {
        self.visitor.expecting(text)
    }

    visit! {
        visit_bool(bool); visit_i8(i8); visit_i16(i16); visit_i32(i32); visit_i64(i64); visit_i128(i128); visit_u8(u8);
        visit_u16(u16); visit_u32(u32); visit_u64(u64); visit_u128(u128); visit_f32(f32); visit_f64(f64);
        visit_char(char); visit_str(&str); visit_borrowed_str(&'de str); visit_string(String); visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]); visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inside: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Strict(inside))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inside: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Strict(inside))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if self.fields {
            return Err(A::Error::custom("found a list, expected an object: write its fields by their names"));
        }
        self.visitor.visit_seq(Strict(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Strict(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Strict(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inside: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(inside))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Strict(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(Strict(seed)).map(|(value, variant)| (value, Strict(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Seen { visitor, fields: true })
    }
}

#[cfg(test)]
mod tests {
    use super::from_json;
    use crate::{NodeBody, PolicyBody, SettingsBody, SnapshotRecord, TopologyBody};

    fn refused<T: serde::de::DeserializeOwned>(text: &str) {
        let fault = from_json::<T>(text).err().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(fault.starts_with("found a list, expected an object"), "{text}: {fault}");
    }

    #[test]
    fn a_list_is_no_object_however_deep_it_stands() {
        refused::<TopologyBody>(r#"["a100-8"]"#);
        refused::<TopologyBody>(r#"{"numa_nodes": [[0, 0, [0, 1], "0-3"]]}"#);
        refused::<NodeBody>(r#"{"gpu_model": "A100", "gpus": 8, "topology": ["a100-8"]}"#);
        refused::<SettingsBody>(r#"{"policy_parts": ["mine"]}"#);
        refused::<PolicyBody>(r#"{"name": "mine", "reservations": [1, 0]}"#);
        refused::<SnapshotRecord>("[]");
    }

    #[test]
    fn lists_of_objects_and_objects_are_read_as_before() {
        let text = r#"{"numa_nodes": [{"numa_node": 0, "socket": 0, "gpus": [0, 1]}], "nvlink_islands": [[0, 1]]}"#;
        assert_eq!(from_json::<TopologyBody>(text).unwrap(), serde_json::from_str(text).unwrap());
        assert!(from_json::<TopologyBody>("{} {}").is_err(), "what follows a document is refused");
    }
}
