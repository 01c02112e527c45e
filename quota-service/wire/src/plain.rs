//! Faults of JSON in the words of a user: those of the parser name types of the program.

const NUMBERS: [&str; 2] = ["f64", "f32"];
/// Whole numbers of the program, with the least and the largest.
const WHOLE_NUMBERS: [(&str, i128, i128); 9] = [
    ("u8", 0, u8::MAX as i128),
    ("u16", 0, u16::MAX as i128),
    ("u32", 0, u32::MAX as i128),
    ("u64", 0, u64::MAX as i128),
    ("usize", 0, usize::MAX as i128),
    ("i8", i8::MIN as i128, i8::MAX as i128),
    ("i16", i16::MIN as i128, i16::MAX as i128),
    ("i32", i32::MIN as i128, i32::MAX as i128),
    ("i64", i64::MIN as i128, i64::MAX as i128),
];

/// Range of a whole number, as a document states it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// None where the type alone limits it.
    pub least: Option<i128>,
    /// None where the type alone limits it.
    pub most: Option<i128>,
}

/// The fault of a parser at a place with a range, plainly; other texts stay as they are. `required` gives the required fields of an
/// object by its name.
pub fn fault(fault: &str, range: Range, required: &dyn Fn(&str) -> Vec<&'static str>) -> String {
    let is_place = |place: &str| place.split(" column ").all(|number| number.parse::<u64>().is_ok());
    let text = fault.rsplit_once(" at line ").filter(|(_, place)| is_place(place)).map_or(fault, |(text, _)| text);
    let parts = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.split_once(", expected "));
    if let Some((found, expected)) = parts("invalid type: ").or_else(|| parts("invalid value: ")) {
        return type_fault(found, expected, range, required);
    }
    match parts("unknown variant ") {
        Some((found, choices)) => format!("{:?} is not known; write {choices}", found.trim_matches('`')),
        None => text_fault(fault),
    }
}

/// The fault of a text that is no JSON, or has a field twice.
fn text_fault(fault: &str) -> String {
    let parts = |prefix: &str| fault.strip_prefix(prefix).and_then(|rest| rest.split_once(" at "));
    if let Some((field, place)) = parts("duplicate field ") {
        return format!("{field} is there twice, again at {place}: leave one of them");
    }
    match parts("EOF while parsing ") {
        Some((_, "line 1 column 0")) => "the body is empty: write it in JSON".to_owned(),
        Some((_, place)) => format!("the JSON ends at {place} before it is whole: send all of it"),
        None => fault.to_owned(),
    }
}

fn type_fault(found: &str, expected: &str, range: Range, required: &dyn Fn(&str) -> Vec<&'static str>) -> String {
    let is_number = NUMBERS.contains(&expected) || whole_number(expected).is_some();
    if let (true, Some((_, least, most))) = (found.starts_with("integer "), whole_number(expected)) {
        // The type holds more numbers than the field takes.
        let (least, most) = (range.least.unwrap_or(least), range.most.unwrap_or(most));
        return format!("it is {}; write a whole number from {least} to {most}", value(found));
    }
    let Some(text) = found.strip_prefix("string ") else {
        return format!("it is {}; write {}", value(found), wanted(expected, required));
    };
    match text.trim_matches('"').parse::<f64>() {
        Ok(_) if is_number => format!("{text} is text; write the number {}", text.trim_matches('"')),
        _ => format!("{text} is text; write {}", wanted(expected, required)),
    }
}

fn whole_number(expected: &str) -> Option<(&'static str, i128, i128)> {
    WHOLE_NUMBERS.into_iter().find(|(name, ..)| *name == expected)
}

/// A found value: the parser writes ``integer `5` ``.
fn value(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        other => other.split('`').nth(1).unwrap_or(other).to_owned(),
    }
}

fn wanted(expected: &str, required: &dyn Fn(&str) -> Vec<&'static str>) -> String {
    match expected {
        of if NUMBERS.contains(&of) => "a number".to_owned(),
        of if whole_number(of).is_some() => "a whole number".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "a boolean" => "true or false".to_owned(),
        other => match other.strip_prefix("struct ").map(required) {
            Some(fields) if fields.is_empty() => "an object".to_owned(),
            Some(fields) => format!("an object with `{}`", fields.join("`, `")),
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_parser_says_what_to_write() {
        for (fault, plain) in [
            (
                "invalid type: null, expected struct UsageBatch at line 1 column 4",
                "it is null; write an object with `rows`",
            ),
            ("invalid type: string \"5\", expected f64 at line 1 column 9", "\"5\" is text; write the number 5"),
            ("invalid type: string \"1k\", expected f64", "\"1k\" is text; write a number"),
            (
                "invalid type: string \"look at line 3\", expected u8",
                "\"look at line 3\" is text; write a whole number",
            ),
            ("invalid type: integer `5`, expected a string", "it is 5; write a text in quotes"),
            ("invalid value: integer `-1`, expected u32", "it is -1; write a whole number from 0 to 4294967295"),
            (
                "invalid value: integer `1099511627776`, expected u32",
                "it is 1099511627776; write a whole number from 0 to 4294967295",
            ),
            ("invalid type: floating point `1.5`, expected u32", "it is 1.5; write a whole number"),
            ("unknown variant `HP`, expected `hp` or `spot`", "\"HP\" is not known; write `hp` or `spot`"),
            ("expected value at line 1 column 1", "expected value at line 1 column 1"),
            ("EOF while parsing a value at line 1 column 0", "the body is empty: write it in JSON"),
            (
                "EOF while parsing an object at line 3 column 8",
                "the JSON ends at line 3 column 8 before it is whole: send all of it",
            ),
            (
                "duplicate field `cluster` at line 1 column 23",
                "`cluster` is there twice, again at line 1 column 23: leave one of them",
            ),
        ] {
            let required = |name: &str| if name == "UsageBatch" { vec!["rows"] } else { Vec::new() };
            assert_eq!(super::fault(fault, Range::default(), &required), plain);
        }
    }
}
