//! Windows as an iCalendar file (RFC 5545). Each window is an event in UTC: a reader needs no rule and no time zone.

use vocab::{PoolId, ReservedWindow, UnixSeconds};

/// Octets of a line (RFC 5545, section 3.1).
const LINE: usize = 75;

/// A window, and the number of its reservation.
pub type Numbered = (u64, ReservedWindow);

/// The calendar of a pool's windows, as it is at `now`.
#[must_use]
pub fn calendar(pool: &PoolId, windows: &[Numbered], now: UnixSeconds) -> String {
    let mut text = String::new();
    let mut line = |content: &str| fold(&mut text, content);
    line("BEGIN:VCALENDAR");
    line("VERSION:2.0");
    line("PRODID:-//Headroom//Reservations//EN");
    line("CALSCALE:GREGORIAN");
    line("METHOD:PUBLISH");
    line(&format!("X-WR-CALNAME:{}", escaped(&format!("Reserved GPUs of {pool}"))));
    for (id, window) in windows {
        let ReservedWindow { from, to, organization, gpus } = window;
        line("BEGIN:VEVENT");
        line(&format!("UID:{}", escaped(&format!("{id}-{}@{pool}", stamp(*from)))));
        line(&format!("DTSTAMP:{}", stamp(now)));
        line(&format!("DTSTART:{}", stamp(*from)));
        line(&format!("DTEND:{}", stamp(*to)));
        line(&format!("SUMMARY:{}", escaped(&format!("{} of {pool} for {organization}", vocab::gpus(gpus.as_gpus())))));
        line(&format!("DESCRIPTION:{}", escaped(&format!("Reservation {id} of Headroom"))));
        line("TRANSP:OPAQUE");
        line("END:VEVENT");
    }
    line("END:VCALENDAR");
    text
}

/// `2026-03-02T09:00:00Z` as `20260302T090000Z`.
fn stamp(at: UnixSeconds) -> String {
    at.to_string().chars().filter(|one| !matches!(one, '-' | ':')).collect()
}

/// Text (RFC 5545, section 3.3.11).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '\\' | ';' | ',' => escaped.extend(['\\', one]),
            '\n' => escaped.push_str("\\n"),
            one if one.is_control() => {}
            one => escaped.push(one),
        }
    }
    escaped
}

/// A line, folded at its octets and never within a character.
fn fold(text: &mut String, content: &str) {
    let mut octets = 0;
    for one in content.chars() {
        if octets + one.len_utf8() > LINE {
            text.push_str("\r\n ");
            octets = 1;
        }
        text.push(one);
        octets += one.len_utf8();
    }
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{MilliGpus, Organization};

    #[test]
    fn one_gpu_is_singular() {
        let organization = Organization::parse("lab").unwrap();
        let (from, to) = (UnixSeconds::new(1_772_442_000), UnixSeconds::new(1_772_445_600));
        let window = ReservedWindow { from, to, organization, gpus: MilliGpus::from_gpus(1) };
        let text = calendar(&PoolId::parse("earth:V100").unwrap(), &[(3, window)], from);
        assert!(text.contains("SUMMARY:1 GPU of earth:V100 for lab\r\n"), "{text}");
    }

    #[test]
    fn names_are_escaped_and_long_lines_are_folded_between_characters() {
        let organization = Organization::parse(&format!("a,b;c\\{}", "ä".repeat(40))).unwrap();
        let (from, to) = (UnixSeconds::new(1_772_442_000), UnixSeconds::new(1_772_445_600));
        let window = ReservedWindow { from, to, organization, gpus: MilliGpus::from_gpus(8) };
        let text = calendar(&PoolId::parse("earth:V100").unwrap(), &[(3, window)], from);
        assert!(text.split("\r\n").all(|line| line.len() <= LINE), "{text}");
        let unfolded = text.replace("\r\n ", "");
        assert!(unfolded.contains("SUMMARY:8 GPUs of earth:V100 for a\\,b\\;c\\\\ä"), "{unfolded}");
        assert!(unfolded.contains("DTSTART:20260302T090000Z\r\nDTEND:20260302T100000Z\r\n"), "{unfolded}");
        assert!(text.ends_with("END:VCALENDAR\r\n"));
    }
}
