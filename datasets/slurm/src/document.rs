//! A document of Slurm, read record by record: the whole of it is never in memory.

use crate::error::RecordsError;
use crate::form::{Form, Meta, Reported};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::Read;

/// Document of one command.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Key of the list of records.
    pub list: &'static str,
    /// Command that prints it.
    pub command: &'static str,
    /// Key of a record's name, for faults.
    pub named_by: &'static str,
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Number in the list, from one.
    pub number: u64,
    /// Name of the job or node, where it can be read.
    pub name: String,
    /// Field and cause.
    pub fault: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, name, fault } = self;
        write!(f, "record {number}{}{name}: {fault}", if name.is_empty() { "" } else { ", " })
    }
}

/// Reads the records of a document and hands each to `sink`, which may refuse it with a fault.
///
/// Unreadable records are collected. The form is known at the end, where `meta` may stand: nothing may be used before.
///
/// # Errors
/// It is not read, no JSON, of another command or an unknown form, or Slurm reports an error in it.
pub fn read<T: DeserializeOwned>(
    place: &str,
    kind: Kind,
    from: impl Read,
    sink: &mut dyn FnMut(T) -> Result<(), String>,
) -> Result<(Form, Vec<Skipped>), RecordsError> {
    let mut skipped = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_reader(from);
    let seed = Document { kind, sink, skipped: &mut skipped, of: std::marker::PhantomData };
    let read = seed.deserialize(&mut deserializer).and_then(|parts| deserializer.end().map(|()| parts));
    let parts = read.map_err(|fault| match fault.classify() {
        serde_json::error::Category::Io => RecordsError::Io { place: place.to_owned(), source: fault.into() },
        _ => RecordsError::Json { place: place.to_owned(), line: fault.line(), detail: fault.to_string() },
    })?;
    let place = || place.to_owned();
    if let Some(reported) = parts.errors.iter().find(|one| !one.is_nothing_found()) {
        return Err(RecordsError::Reported { place: place(), detail: reported.to_string() });
    }
    let is_empty = !parts.errors.is_empty();
    let form = Form::of(&parts.meta.unwrap_or_default());
    let form = form.map_err(|fault| RecordsError::Form { place: place(), fault })?;
    if !parts.has_list && !is_empty {
        return Err(RecordsError::Other { place: place(), list: kind.list, command: kind.command });
    }
    Ok((form, skipped))
}

/// Parts of a document beside its records.
#[derive(Default)]
struct Parts {
    meta: Option<Meta>,
    errors: Vec<Reported>,
    has_list: bool,
}

struct Document<'a, T> {
    kind: Kind,
    sink: &'a mut dyn FnMut(T) -> Result<(), String>,
    skipped: &'a mut Vec<Skipped>,
    of: std::marker::PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Document<'_, T> {
    type Value = Parts;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parts, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Document<'_, T> {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with meta and {}", self.kind.list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
        let mut parts = Parts::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "meta" => parts.meta = map.next_value()?,
                "errors" => parts.errors = map.next_value::<Option<Vec<Reported>>>()?.unwrap_or_default(),
                key if key == self.kind.list => {
                    parts.has_list = true;
                    map.next_value_seed(Records {
                        kind: self.kind,
                        sink: self.sink,
                        skipped: self.skipped,
                        of: self.of,
                    })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(parts)
    }
}

struct Records<'a, T> {
    kind: Kind,
    sink: &'a mut dyn FnMut(T) -> Result<(), String>,
    skipped: &'a mut Vec<Skipped>,
    of: std::marker::PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Records<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Records<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.kind.list)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(raw) = list.next_element::<Box<RawValue>>()? {
            number += 1;
            let read = serde_json::from_str::<T>(raw.get()).map_err(|_| fault_of::<T>(raw.get()));
            if let Err(fault) = read.and_then(&mut *self.sink) {
                self.skipped.push(Skipped { number, name: name_of(self.kind, raw.get()), fault });
            }
        }
        Ok(())
    }
}

/// Field and cause: read again, since keeping the path costs a good record, too.
fn fault_of<T: DeserializeOwned>(record: &str) -> String {
    match serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(record)) {
        Ok(_) => "it cannot be read".to_owned(),
        Err(fault) => format!("{}: {}", fault.path(), fault.inner()),
    }
}

fn name_of(kind: Kind, record: &str) -> String {
    let name = serde_json::from_str::<serde_json::Value>(record).ok();
    match name.as_ref().map(|record| &record[kind.named_by]) {
        Some(serde_json::Value::String(name)) => name.clone(),
        Some(serde_json::Value::Number(id)) => format!("job {id}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    const KIND: Kind = Kind { list: "jobs", command: "sacct --json", named_by: "job_id" };
    const META: &str = r#""meta":{"plugin":{"data_parser":"data_parser/v0.0.41"}}"#;

    #[derive(Deserialize)]
    struct Record {
        job_id: u32,
        time: Time,
    }
    #[derive(Deserialize)]
    struct Time {
        start: u64,
    }

    fn run(text: &str) -> Result<(Vec<u64>, Vec<String>), String> {
        let mut starts = Vec::new();
        let mut sink = |record: Record| {
            starts.push(record.time.start);
            if record.job_id == 9 { Err("refused".to_owned()) } else { Ok(()) }
        };
        let (_, skipped) = read("a.json", KIND, text.as_bytes(), &mut sink).map_err(|fault| fault.to_string())?;
        Ok((starts, skipped.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn records_come_before_or_after_meta_and_a_bad_one_is_named_by_number_job_and_field() {
        let jobs = r#""jobs":[{"job_id":7,"time":{"start":1}},{"job_id":8,"time":{"start":"x"}},{"job_id":9,"time":{"start":3}}]"#;
        for text in [format!("{{{META},{jobs}}}"), format!("{{{jobs},\"warnings\":[],{META},\"errors\":[]}}")] {
            let (starts, skipped) = run(&text).unwrap();
            assert_eq!(starts, [1, 3]);
            assert_eq!(skipped.len(), 2);
            assert!(skipped[0].starts_with("record 2, job 8: time.start: invalid type"), "{}", skipped[0]);
            assert_eq!(skipped[1], "record 3, job 9: refused");
        }
    }

    #[test]
    fn a_document_that_is_cut_off_of_another_command_or_has_an_error_is_refused() {
        let cut = run(&format!("{{{META},\"jobs\":[{{\"job_id\":7,")).unwrap_err();
        assert!(cut.starts_with("a.json, line 1: EOF"), "{cut}");
        let other = run(&format!("{{{META},\"nodes\":[]}}")).unwrap_err();
        assert_eq!(other, "a.json: no list of jobs: expected the output of sacct --json");
        let error = r#""errors":[{"description":"Unable to query","error":"Connection refused","error_number":7000}]"#;
        let error = run(&format!("{{{META},\"jobs\":[],{error}}}")).unwrap_err();
        assert!(error.contains("Unable to query: Connection refused (error 7000)"), "{error}");
        let none =
            r#""errors":[{"description":"Nothing found with query","error":"Nothing found","error_number":9003}]"#;
        assert_eq!(
            run(&format!("{{{META},{none}}}")).unwrap(),
            (vec![], vec![]),
            "22.05 calls an empty answer an error"
        );
        assert!(run("JobID|State\n1|RUNNING\n").unwrap_err().contains("expected the whole output of --json"));
    }
}
