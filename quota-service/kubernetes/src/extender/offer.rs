//! The nodes that the scheduler offers for preemption, with their victims.
//!
//! That is most of what the extender reads: 5,000 nodes with 64 victims each are 15 MB. The body as kube-scheduler writes it is only
//! scanned: of each node its name, where its victims stand, and their sum, which says whether they are all pods that are known there. Any
//! other body goes through serde, which reads all that is JSON.

use super::wire::{MetaPod, MetaVictims, PreemptionArgs, Text};
use crate::cluster::slim::Pod;
use crate::view::facts::Uid;
use std::borrow::Cow;

/// Bytes of a UID as the API writes it.
const UID_BYTES: usize = 36;
const BEFORE_UID: &[u8; 8] = br#"{"UID":""#;
const AFTER_UID: &[u8; 2] = br#""}"#;
/// Bytes from one victim to the next.
const STRIDE: usize = BEFORE_UID.len() + UID_BYTES + AFTER_UID.len() + 1;

/// A sum of UIDs: equal sums are of equal sets, but for a chance of 2^-64. UIDs are drawn by the API server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UidSum {
    count: usize,
    mixed: u64,
}

impl UidSum {
    const fn mixed(uid: Uid) -> u64 {
        let (high, low) = ((uid.0 >> 64) as u64, uid.0 as u64);
        let product = (high ^ 0x9e37_79b9_7f4a_7c15) as u128 * (low ^ 0xf39c_c060_5ced_c835) as u128;
        (product >> 64) as u64 ^ product as u64
    }

    pub const fn add(&mut self, uid: Uid) {
        self.count += 1;
        self.mixed = self.mixed.wrapping_add(Self::mixed(uid));
    }

    pub const fn remove(&mut self, uid: Uid) {
        self.count -= 1;
        self.mixed = self.mixed.wrapping_sub(Self::mixed(uid));
    }
}

/// Offered nodes with their victims.
#[derive(Debug)]
pub struct Offer<'a> {
    pub pod: Pod,
    pub nodes: Vec<OfferedNode<'a>>,
}

#[derive(Debug)]
pub struct OfferedNode<'a> {
    pub name: Cow<'a, str>,
    pub victims: Victims<'a>,
    pub sum: UidSum,
    pub violations: i64,
}

/// Victims of one node.
#[derive(Debug)]
pub enum Victims<'a> {
    /// As they stand in the body, each in as many bytes, a comma between them.
    Scanned(&'a [u8]),
    /// Text of each.
    Read(Vec<Cow<'a, str>>),
}

impl<'a> Victims<'a> {
    /// The text of each UID.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let (scanned, read) = match self {
            Self::Scanned(text) => (*text, &[][..]),
            Self::Read(texts) => (&[][..], texts.as_slice()),
        };
        let uid = |entry: &'a [u8]| {
            let uid = &entry[BEFORE_UID.len()..BEFORE_UID.len() + UID_BYTES];
            std::str::from_utf8(uid).expect("a UID that was scanned has digits, letters and dashes")
        };
        let scanned: &'a [u8] = scanned;
        scanned.chunks(STRIDE).map(uid).chain(read.iter().map(AsRef::as_ref))
    }

    pub fn uids(&self) -> impl Iterator<Item = Uid> {
        self.texts().map(uid_of)
    }
}

fn uid_of(text: &str) -> Uid {
    let read = text.as_bytes().first_chunk().filter(|_| text.len() == UID_BYTES).and_then(canonical);
    read.unwrap_or_else(|| Uid::of(text))
}

impl OfferedNode<'_> {
    /// The victims, as they were offered.
    #[must_use]
    pub fn meta_victims(&self) -> MetaVictims<'_> {
        let pods = self.victims.texts().map(|text| Some(MetaPod { uid: Text(Cow::Borrowed(text)) }));
        MetaVictims { pods: Some(pods.collect()), violations: self.violations }
    }
}

impl<'a> Offer<'a> {
    /// # Errors
    /// It is no such body.
    pub fn read(body: &'a [u8]) -> serde_json::Result<Self> {
        Self::as_written_by_go(body).map_or_else(|| Self::as_any_json(body), Ok)
    }

    fn as_any_json(body: &'a [u8]) -> serde_json::Result<Self> {
        let PreemptionArgs { pod, node_name_to_victims, node_name_to_meta_victims } = serde_json::from_slice(body)?;
        let mut offer = Self { pod, nodes: Vec::new() };
        // One of them is null. If both came, the short form would be meant for us.
        if let Some(nodes) = node_name_to_meta_victims {
            for (name, victims) in nodes {
                let Some(MetaVictims { pods, violations }) = victims else { continue };
                let uids = pods.unwrap_or_default().into_iter().flatten().map(|pod| pod.uid);
                offer.add(name, uids, violations);
            }
        } else {
            for (name, victims) in node_name_to_victims.unwrap_or_default() {
                let Some(victims) = victims else { continue };
                let violations = victims.violations;
                offer.add(name, victims.uids(), violations);
            }
        }
        Ok(offer)
    }

    fn add(&mut self, name: Text<'a>, uids: impl Iterator<Item = Text<'a>>, violations: i64) {
        let texts: Vec<Cow<'a, str>> = uids.map(|uid| uid.0).collect();
        let mut sum = UidSum::default();
        for text in &texts {
            sum.add(uid_of(text));
        }
        self.nodes.push(OfferedNode { name: name.0, victims: Victims::Read(texts), sum, violations });
    }

    /// The body as `json.Marshal` writes it, in the short form. None where anything differs.
    pub(super) fn as_written_by_go(body: &'a [u8]) -> Option<Self> {
        let rest = body.strip_prefix(br#"{"Pod":"#)?;
        let mut pods = serde_json::Deserializer::from_slice(rest).into_iter::<Pod>();
        let mut offer = Self { pod: pods.next()?.ok()?, nodes: Vec::new() };
        let mut scan = Scan(rest.get(pods.byte_offset()..)?);
        scan.skip(br#","NodeNameToVictims":null,"NodeNameToMetaVictims":{"#)?;
        if scan.skip(b"}").is_none() {
            loop {
                offer.nodes.push(scan.node()?);
                if scan.skip(b",").is_none() {
                    break;
                }
            }
            scan.skip(b"}")?;
        }
        scan.skip(b"}")?;
        // Names that come twice would be two nodes; Go writes them in order.
        let is_rising = offer.nodes.windows(2).all(|pair| pair[0].name < pair[1].name);
        (scan.0.trim_ascii().is_empty() && is_rising).then_some(offer)
    }
}

/// Unread rest of the body.
struct Scan<'a>(&'a [u8]);

impl<'a> Scan<'a> {
    fn skip(&mut self, prefix: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(prefix)?;
        Some(())
    }

    /// Text without anything escaped.
    fn text(&mut self) -> Option<&'a str> {
        self.skip(b"\"")?;
        let end = self.0.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        let text = std::str::from_utf8(&self.0[..end]).ok()?;
        self.0 = &self.0[end..];
        self.skip(b"\"")?;
        Some(text)
    }

    /// `"NAME":{"Pods":[{"UID":"…"},…],"NumPDBViolations":0}`
    fn node(&mut self) -> Option<OfferedNode<'a>> {
        let name = self.text()?;
        self.skip(br#":{"Pods":["#)?;
        let (victims, sum) = self.victims()?;
        self.skip(br#"],"NumPDBViolations":"#)?;
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.0[..digits]).ok()?;
        // JSON has no number that begins with a zero and goes on.
        let violations = number.parse().ok().filter(|_| digits == 1 || !number.starts_with('0'))?;
        self.0 = &self.0[digits..];
        self.skip(b"}")?;
        Some(OfferedNode { name: Cow::Borrowed(name), victims: Victims::Scanned(victims), sum, violations })
    }

    /// Victims up to the end of their list.
    fn victims(&mut self) -> Option<(&'a [u8], UidSum)> {
        let (all, mut sum) = (self.0, UidSum::default());
        if all.first() == Some(&b']') {
            return Some((&all[..0], sum));
        }
        let mut at = 0;
        loop {
            let entry: &[u8; STRIDE] = all.get(at..)?.first_chunk()?;
            let (before, uid) = entry.split_first_chunk::<{ BEFORE_UID.len() }>()?;
            let (uid, after) = uid.split_first_chunk::<UID_BYTES>()?;
            if before != BEFORE_UID || after[..AFTER_UID.len()] != *AFTER_UID {
                return None;
            }
            sum.add(canonical(uid)?);
            match after[AFTER_UID.len()] {
                b',' => at += STRIDE,
                b']' => {
                    let end = at + STRIDE - 1;
                    self.0 = &all[end..];
                    return Some((&all[..end], sum));
                }
                _ => return None,
            }
        }
    }
}

/// A UUID in lower case, as [`Uid`] writes it; none for any other text.
fn canonical(text: &[u8; 36]) -> Option<Uid> {
    if [8, 13, 18, 23].iter().any(|dash| text[*dash] != b'-') {
        return None;
    }
    let eight = |a: usize, b: usize| {
        let mut digits = [0; 8];
        digits[..4].copy_from_slice(&text[a..a + 4]);
        digits[4..].copy_from_slice(&text[b..b + 4]);
        eight_digits(digits)
    };
    let parts = [eight(0, 4), eight(9, 14), eight(19, 24), eight(28, 32)];
    parts.into_iter().try_fold(0_u128, |value, part| Some(value << 32 | u128::from(part?))).map(Uid)
}

/// Eight digits at once, each in a byte of its own.
fn eight_digits(digits: [u8; 8]) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let text = u64::from_be_bytes(digits);
    if text & TOPS != 0 {
        return None;
    }
    // Of each byte below 0x80: whether it is at least so much stands in its top bit.
    let at_least = |least: u8| (text + ONES * u64::from(0x80 - least)) & TOPS;
    let number = at_least(b'0') & !at_least(b'9' + 1);
    let letter = at_least(b'a') & !at_least(b'f' + 1);
    if number | letter != TOPS {
        return None;
    }
    // 'a' is 0x61: its lower half and nine are ten.
    let mut halves = (text & (ONES * 0x0f)) + (letter >> 7) * 9;
    halves = (halves | halves >> 4) & 0x00ff_00ff_00ff_00ff;
    halves = (halves | halves >> 8) & 0x0000_ffff_0000_ffff;
    halves = (halves | halves >> 16) & 0xffff_ffff;
    Some(halves as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_in_lower_case_is_read_as_it_is_written_and_nothing_else_is() {
        let text = "0123abcd-4567-89ef-fedc-ba9876543210";
        let read = |text: &str| canonical(text.as_bytes().first_chunk().unwrap());
        assert_eq!(read(text), Some(Uid::of(text)));
        assert_eq!(read(text).unwrap().to_string(), text);
        for place in 0..36 {
            for byte in (0..128_u8).map(char::from) {
                let mut other = text.to_owned();
                other.replace_range(place..=place, &byte.to_string());
                let is_written_so = Uid::of(&other).to_string() == other;
                assert_eq!(read(&other).is_some(), is_written_so, "{other:?}");
                assert!(read(&other).is_none_or(|uid| uid == Uid::of(&other)), "{other:?}");
            }
        }
    }

    type Summary<'a> = (&'a str, Vec<&'a str>, UidSum, i64);

    /// All that an offer says.
    fn summary<'a>(offer: &'a Offer<'_>) -> Vec<Summary<'a>> {
        let one = |node: &'a OfferedNode<'_>| (&*node.name, node.victims.texts().collect(), node.sum, node.violations);
        offer.nodes.iter().map(one).collect()
    }

    #[test]
    fn a_sum_of_uids_is_that_of_their_set() {
        let sum = |uids: &[u128]| {
            let mut sum = UidSum::default();
            for uid in uids {
                sum.add(Uid(*uid));
            }
            sum
        };
        assert_eq!(sum(&[1, 2, 3]), sum(&[3, 1, 2]));
        for other in [&[1, 2][..], &[1, 2, 4], &[2, 2, 2], &[1, 1, 4], &[0, 2, 4], &[]] {
            assert_ne!(sum(&[1, 2, 3]), sum(other), "{other:?}");
        }
        let mut less = sum(&[1, 2, 3]);
        less.remove(Uid(2));
        assert_eq!(less, sum(&[1, 3]));
    }

    #[test]
    fn both_ways_to_read_a_body_say_the_same_and_what_differs_in_a_byte_is_no_less_right() {
        let body = include_bytes!("../../fixtures/extender/preempt-meta.json").trim_ascii();
        let fast = Offer::as_written_by_go(body).expect("the fixture is as Go writes it");
        let slow = Offer::as_any_json(body).unwrap();
        assert_eq!(summary(&fast), summary(&slow));
        for place in 0..body.len() {
            for byte in [b'"', b'{', b'}', b'0', b',', b'\\', b' ', 0xff] {
                let mut other = body.to_vec();
                other[place] = byte;
                if let Some(fast) = Offer::as_written_by_go(&other) {
                    let slow = Offer::as_any_json(&other).expect("what is read fast is JSON");
                    assert_eq!(summary(&fast), summary(&slow));
                }
            }
            assert!(Offer::read(&body[..place]).is_err(), "cut at {place}");
        }
    }
}
