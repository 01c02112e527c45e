//! Answers of Prometheus, as text and as values.

use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Unix time in milliseconds.
    pub at_ms: i64,
    /// May be NaN or infinite.
    pub value: f64,
}

/// One set of labels, and its samples as they came.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Labels and their values.
    pub labels: BTreeMap<String, String>,
    /// Samples in the order of the answer.
    pub samples: Vec<Sample>,
}

/// A query's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// All series of the answer.
    pub series: Vec<Series>,
    /// Where there are some, parts may be missing.
    pub warnings: Vec<String>,
}

/// Reason why an answer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    #[error("the answer breaks off: {detail}")]
    Cut { detail: String },
    #[error("not an answer of Prometheus: {detail}")]
    Foreign { detail: String },
    #[error("{kind}: {text}")]
    Refused { kind: String, text: String },
}

#[derive(Deserialize)]
struct Body<'a> {
    status: Cow<'a, str>,
    #[serde(rename = "errorType", default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    error: Cow<'a, str>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(borrow, default)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data<'a> {
    #[serde(borrow)]
    Matrix(Vec<Ranged<'a>>),
    #[serde(borrow)]
    Vector(Vec<Instant<'a>>),
    #[serde(borrow)]
    Scalar(Value<'a>),
}

#[derive(Deserialize)]
struct Ranged<'a> {
    metric: BTreeMap<String, String>,
    #[serde(borrow, default)]
    values: Vec<Value<'a>>,
    #[serde(default)]
    histograms: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Instant<'a> {
    metric: BTreeMap<String, String>,
    #[serde(borrow)]
    value: Value<'a>,
}

/// Seconds since 1970, and the value as text, since JSON has no NaN.
#[derive(Deserialize)]
struct Value<'a>(f64, #[serde(borrow)] Cow<'a, str>);

impl Value<'_> {
    fn sample(&self) -> Result<Sample, AnswerFault> {
        let foreign = |detail: String| AnswerFault::Foreign { detail };
        let at_ms = (self.0 * 1_000.0).round();
        // Whole milliseconds are exact up to here, some 285,000 years.
        if !at_ms.is_finite() || at_ms.abs() > 9.0e15 {
            return Err(foreign(format!("{} is not a time", self.0)));
        }
        let value = match self.1.as_ref() {
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            text => text.parse().map_err(|_| foreign(format!("{text:?} is not a value")))?,
        };
        Ok(Sample { at_ms: at_ms as i64, value })
    }
}

impl Data<'_> {
    fn series(self) -> Result<Vec<Series>, AnswerFault> {
        match self {
            Self::Matrix(all) => all.into_iter().map(Ranged::series).collect(),
            Self::Vector(all) => {
                let one = |one: Instant<'_>| Ok(Series { labels: one.metric, samples: vec![one.value.sample()?] });
                all.into_iter().map(one).collect()
            }
            Self::Scalar(value) => Ok(vec![Series { labels: BTreeMap::new(), samples: vec![value.sample()?] }]),
        }
    }
}

impl Ranged<'_> {
    fn series(self) -> Result<Series, AnswerFault> {
        if !self.histograms.is_empty() {
            let detail = "the query returns histograms: expected numbers".to_owned();
            return Err(AnswerFault::Refused { kind: "bad_data".to_owned(), text: detail });
        }
        let samples = self.values.iter().map(Value::sample).collect::<Result<_, _>>()?;
        Ok(Series { labels: self.metric, samples })
    }
}

/// Reads the body of an answer.
///
/// # Errors
/// It breaks off, is something else, or says why the query is refused.
pub fn parse(body: &[u8]) -> Result<Answer, AnswerFault> {
    let read: Body<'_> = serde_json::from_slice(body).map_err(|fault| {
        let detail = fault.to_string();
        if fault.is_eof() { AnswerFault::Cut { detail } } else { AnswerFault::Foreign { detail } }
    })?;
    match (read.status.as_ref(), read.data) {
        ("success", Some(data)) => Ok(Answer { series: data.series()?, warnings: read.warnings }),
        ("success", None) => Err(AnswerFault::Foreign { detail: "it holds no data".to_owned() }),
        ("error", _) => Err(AnswerFault::Refused { kind: read.kind.into_owned(), text: read.error.into_owned() }),
        (status, _) => Err(AnswerFault::Foreign { detail: format!("its status is {status:?}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        parse(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn values_are_numbers_written_as_text_and_some_of_them_are_none() {
        let body = r#"{"status":"success","warnings":["one store is down"],"data":{"resultType":"matrix","result":[
            {"metric":{"namespace":"vision"},"values":[[1700000000,"1.5"],[1700000060.5,"NaN"],[1700000120,"+Inf"]]},
            {"metric":{},"values":[]}]}}"#;
        let answer = parse(body.as_bytes()).unwrap();
        assert_eq!(answer.warnings, ["one store is down"]);
        assert_eq!(answer.series[0].labels["namespace"], "vision");
        let samples = &answer.series[0].samples;
        assert_eq!(samples[0], Sample { at_ms: 1_700_000_000_000, value: 1.5 });
        assert_eq!(samples[1].at_ms, 1_700_000_060_500);
        assert!(samples[1].value.is_nan() && samples[2].value.is_infinite());
        assert_eq!(answer.series[1].samples, []);
    }

    #[test]
    fn the_answer_to_a_question_of_one_moment_is_read_too() {
        let body =
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"2"]}]}}"#;
        assert_eq!(parse(body.as_bytes()).unwrap().series[0].samples, [Sample { at_ms: 1_000, value: 2.0 }]);
        let body = r#"{"status":"success","data":{"resultType":"scalar","result":[1,"\u0032"]}}"#;
        assert_eq!(parse(body.as_bytes()).unwrap().series[0].samples, [Sample { at_ms: 1_000, value: 2.0 }]);
    }

    #[test]
    fn what_is_no_answer_says_why() {
        assert_eq!(
            refused(r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#),
            "bad_data: parse error"
        );
        assert!(
            refused(r#"{"status":"success","data":{"resultType":"matrix","resu"#).starts_with("the answer breaks off")
        );
        for body in [
            "<html>log in</html>",
            "[]",
            r#"{"status":"success"}"#,
            r#"{"status":"maybe"}"#,
            r#"{"status":"success","data":{"resultType":"string","result":[1,"a"]}}"#,
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"much"]}}"#,
            r#"{"status":"success","data":{"resultType":"scalar","result":[1e300,"1"]}}"#,
        ] {
            assert!(refused(body).starts_with("not an answer of Prometheus: "), "{body}: {}", refused(body));
        }
        let histogram =
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1,{}]]}]}}"#;
        assert!(refused(histogram).contains("the query returns histograms: expected numbers"));
    }
}
