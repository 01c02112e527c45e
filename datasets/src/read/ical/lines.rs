//! Content lines: unfolded, split into name, parameters and value, with the number of their first line.

use super::{EventFault, Fault};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// As an editor counts.
    pub number: u64,
    /// In capitals.
    pub name: String,
    pub value: String,
}

/// The lines of a file, those that go on after a line end and a space put together again.
pub fn content_lines(text: &str) -> impl Iterator<Item = Result<Line, Fault>> {
    let mut unfolded: Vec<(u64, String)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        match (line.strip_prefix([' ', '\t']), unfolded.last_mut()) {
            (Some(more), Some((_, last))) => last.push_str(more),
            _ => unfolded.push((number, line.to_owned())),
        }
    }
    unfolded.into_iter().filter(|(_, line)| !line.trim().is_empty()).map(|(number, line)| split(number, &line))
}

/// `NAME;PARAMETER=X;OTHER="a:b":VALUE`: the value begins after the first colon outside of quotes. What the parameters say
/// shows in the form of the values that matter here.
fn split(number: u64, line: &str) -> Result<Line, Fault> {
    let mut quoted = false;
    let colon = line.char_indices().find(|(_, letter)| {
        quoted ^= *letter == '"';
        *letter == ':' && !quoted
    });
    let fault = || (number, EventFault::NoLine { text: line.chars().take(40).collect() });
    let (place, _) = colon.ok_or_else(fault)?;
    let name = line[..place].split(';').next().unwrap_or_default().trim().to_ascii_uppercase();
    if name.is_empty() {
        return Err(fault());
    }
    Ok(Line { number, name, value: line[place + 1..].trim().to_owned() })
}

/// Text with its escapes undone: `\n`, `\,`, `\;`, `\\`.
pub fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n' | 'N') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            other => plain.push(other),
        }
    }
    plain
}
