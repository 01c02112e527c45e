//! Numbers and texts in the shapes that the forms write them in.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// `INFINITE` of 32 bits, which some fields print as a plain number.
const INFINITE_32: u64 = 0xffff_ffff;
/// `NO_VAL` of 32 bits: sacct of 24.11 writes it as the start of a job that never started.
const NO_VAL_32: u64 = 0xffff_fffe;
/// The same of 64 bits.
const INFINITE_64: u64 = u64::MAX;
const NO_VAL_64: u64 = u64::MAX - 1;

/// A number, where there is one: plain, null, or `{"set", "infinite", "number"}`. Zero is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Number(pub Option<u64>);

impl Number {
    const fn of(value: u64) -> Self {
        match value {
            INFINITE_32 | NO_VAL_32 | INFINITE_64 | NO_VAL_64 => Self(None),
            value => Self(Some(value)),
        }
    }

    /// The number, where it is not zero: ids and times, which begin at one.
    pub const fn nonzero(self) -> Option<u64> {
        match self.0 {
            Some(0) => None,
            found => found,
        }
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, null, or an object with set, infinite and number")
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_none<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number::of(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Number, E> {
        u64::try_from(value).map(Number::of).map_err(|_| E::custom(format_args!("{value} is negative")))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Number, E> {
        if value >= 0.0 && value.fract() == 0.0 && value < 9e15 {
            return Ok(Number::of(value as u64));
        }
        Err(E::custom(format_args!("{value} is not a whole number")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
        let (mut is_set, mut number) = (false, Number(None));
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match key.as_ref() {
                "set" => is_set = map.next_value()?,
                "number" => number = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(if is_set { number } else { Number(None) })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// Words: a list of texts, one text (with or without commas), or null.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub Vec<String>);

/// Texts that many records share, each once.
#[derive(Debug, Clone, Default)]
pub struct Texts(BTreeSet<Arc<str>>);

impl Texts {
    /// The shared text; none is the empty one.
    pub fn shared(&mut self, text: Option<&str>) -> Arc<str> {
        let text = text.unwrap_or_default();
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(new.clone());
        new
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_unit<E>(self) -> Result<Words, E> {
        Ok(Words::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<Words, E> {
        Ok(Words(text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        Ok(Words(words))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<Option<u64>, String> {
        serde_json::from_str::<Number>(text).map(|number| number.0).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_number_is_read_in_every_shape_and_slurms_own_words_for_none_are_none() {
        let known = ["7", "0", r#"{"set":true,"infinite":false,"number":7}"#, "7.0"];
        assert_eq!(known.map(|text| number(text).unwrap()), [Some(7), Some(0), Some(7), Some(7)]);
        let none = [
            "null",
            "4294967294",
            "4294967295",
            "18446744073709551614",
            r#"{"set":false,"infinite":false,"number":0}"#,
            r#"{"set":false,"infinite":true,"number":0}"#,
            r#"{"set":true,"infinite":false,"number":4294967294}"#,
        ];
        assert!(none.iter().all(|text| number(text).unwrap().is_none()));
        assert!(number("-1").unwrap_err().contains("-1 is negative"));
        assert!(number("0.5").is_err() && number("\"7\"").is_err());
    }

    #[test]
    fn words_are_a_list_or_a_text() {
        let words = |text: &str| serde_json::from_str::<Words>(text).unwrap().0;
        assert_eq!(words(r#"["RUNNING","CONFIGURING"]"#), ["RUNNING", "CONFIGURING"]);
        assert_eq!(words(r#""RUNNING""#), ["RUNNING"]);
        assert_eq!(words(r#""a,b""#), ["a", "b"]);
        assert!(words("null").is_empty() && words("\"\"").is_empty());
    }
}
