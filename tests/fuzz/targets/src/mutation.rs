//! Changes that a fuzzer without eyes would rarely make: whole values of JSON, lines and fields of text.

use serde_json::Value;

/// Numbers that follow from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % count.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Values at which code goes wrong.
const TEXTS: [&str; 24] = [
    "",
    "0",
    "1",
    "-1",
    "0.5",
    "64",
    "65",
    "1000",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e308",
    "1e-308",
    "NaN",
    "inf",
    "*",
    "/",
    "\"",
    "\u{7f}",
    "é",
    "9999-12-31T23:59:59-01:00",
];

/// The same bytes but for a few changes that follow from the seed.
#[must_use]
pub fn mutate(data: &[u8], seed: u64) -> Vec<u8> {
    let mut draw = Draw(seed);
    let mut changed = data.to_vec();
    for _ in 0..=draw.below(3) {
        let head = changed.iter().position(|byte| *byte == b'\n').filter(|end| *end < 24).map_or(0, |end| end + 1);
        let json = serde_json::from_slice(&changed[head..]).or_else(|_| serde_json::from_slice(&changed));
        changed = match json {
            Ok(document) if draw.below(8) > 0 => {
                let head = if serde_json::from_slice::<Value>(&changed).is_ok() { 0 } else { head };
                [&changed[..head], of_json(document, &mut draw).to_string().as_bytes()].concat()
            }
            _ if draw.below(2) == 0 => of_bytes(changed, &mut draw),
            _ => of_fields(&changed, &mut draw),
        };
    }
    changed
}

/// Changes one value of a document.
fn of_json(mut document: Value, draw: &mut Draw) -> Value {
    let count = size(&document);
    let copy = nth(&mut document, &mut draw.below(count)).map(|value| value.clone()).unwrap_or_default();
    let Some(place) = nth(&mut document, &mut draw.below(count)) else { return document };
    let text = *draw.of(&TEXTS);
    match (place, draw.below(6)) {
        (Value::Array(items), choice @ 0..=3) if !items.is_empty() => {
            let (one, other) = (draw.below(items.len()), draw.below(items.len()));
            match choice {
                0 => drop(items.remove(one)),
                1 => items.insert(other, items[one].clone()),
                2 => items.swap(one, other),
                _ => items.push(copy),
            }
        }
        (Value::Object(keys), 0 | 1) if !keys.is_empty() => {
            let key = keys.keys().nth(draw.below(keys.len())).cloned().unwrap_or_default();
            keys.remove(&key);
        }
        (Value::Number(number), choice @ 0..=3) => {
            let near = number.as_i64().unwrap_or(0);
            let by = *draw.of(&[-3_600, -60, -1, 1, 60, 3_600]);
            *number = match choice {
                0 | 1 => near.saturating_add(by).into(),
                2 => near.saturating_mul(2).into(),
                _ => text.parse().unwrap_or_else(|_| 0.into()),
            };
        }
        (Value::Bool(is), 0..=4) => *is = !*is,
        (Value::String(old), 0..=1) => text.clone_into(old),
        (place, 2..=4) => *place = copy,
        (place, _) => *place = serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
    document
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(keys) => keys.values().map(size).sum(),
        _ => 0,
    }
}

/// The value of a number, counted from the root.
fn nth<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, number)),
        Value::Object(keys) => keys.values_mut().find_map(|item| nth(item, number)),
        _ => None,
    }
}

fn of_bytes(mut bytes: Vec<u8>, draw: &mut Draw) -> Vec<u8> {
    let place = draw.below(bytes.len() + 1);
    match draw.below(4) {
        0 if place < bytes.len() => bytes[place] ^= 1 << draw.below(8),
        1 if place < bytes.len() => drop(bytes.remove(place)),
        2 => bytes.truncate(place),
        _ => bytes.insert(place, *draw.of(b"\n\r,:;\"' 0-\xff\x00T")),
    }
    bytes
}

/// Changes a line, or a field of one.
fn of_fields(bytes: &[u8], draw: &mut Draw) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let (one, other) = (draw.below(lines.len()), draw.below(lines.len()));
    match draw.below(6) {
        0 => drop(lines.remove(one)),
        1 => lines.insert(other, lines[one].clone()),
        2 => lines.swap(one, other),
        _ => {
            let between = *draw.of(&[',', ':', ';', ' ', '\t', '=']);
            let separator = between.to_string();
            let mut fields: Vec<&str> = lines[one].split(between).collect();
            let place = draw.below(fields.len());
            if draw.below(4) == 0 {
                fields.remove(place);
            } else {
                fields[place] = *draw.of(&TEXTS);
            }
            lines[one] = fields.join(&separator);
        }
    }
    lines.join("\n").into_bytes()
}
