//! The nodes that the scheduler offers for preemption, with their victims.
//!
//! That is most of what the extender reads: 5,000 nodes with 64 victims each are 15 MB. The body as kube-scheduler writes it is read
//! byte by byte, straight to numbers; any other body goes through serde, which reads all that is JSON.

use super::wire::{MetaPod, MetaVictims, PreemptionArgs, Text};
use crate::cluster::slim::Pod;
use crate::view::facts::Uid;
use std::borrow::Cow;
use std::ops::Range;

/// Offered nodes with their victims.
#[derive(Debug)]
pub struct Offer<'a> {
    pub pod: Pod,
    pub nodes: Vec<OfferedNode<'a>>,
    /// The victims of all nodes.
    pub uids: Vec<Uid>,
    /// UIDs that are not written as [`Uid`] writes them, by their places.
    odd: Vec<(usize, Cow<'a, str>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedNode<'a> {
    pub name: Cow<'a, str>,
    /// Places of its victims among the UIDs.
    pub victims: Range<usize>,
    pub violations: i64,
}

impl<'a> Offer<'a> {
    /// # Errors
    /// It is no such body.
    pub fn read(body: &'a [u8]) -> serde_json::Result<Self> {
        Self::as_written_by_go(body).map_or_else(|| Self::as_any_json(body), Ok)
    }

    /// The victims of a node, as they were offered.
    #[must_use]
    pub fn victims(&self, node: &OfferedNode<'a>) -> MetaVictims<'_> {
        let text = |place: usize| match self.odd.binary_search_by_key(&place, |(of, _)| *of) {
            Ok(at) => Cow::Borrowed(self.odd[at].1.as_ref()),
            Err(_) => Cow::Owned(self.uids[place].to_string()),
        };
        let pods = node.victims.clone().map(|place| Some(MetaPod { uid: Text(text(place)) }));
        MetaVictims { pods: Some(pods.collect()), violations: node.violations }
    }

    const fn of(pod: Pod) -> Self {
        Self { pod, nodes: Vec::new(), uids: Vec::new(), odd: Vec::new() }
    }

    fn push(&mut self, uid: Cow<'a, str>) {
        let read = uid.as_bytes().first_chunk().filter(|_| uid.len() == 36).and_then(canonical);
        self.uids.push(read.unwrap_or_else(|| Uid::of(&uid)));
        if read.is_none() {
            self.odd.push((self.uids.len() - 1, uid));
        }
    }

    fn as_any_json(body: &'a [u8]) -> serde_json::Result<Self> {
        let PreemptionArgs { pod, node_name_to_victims, node_name_to_meta_victims } = serde_json::from_slice(body)?;
        let mut offer = Self::of(pod);
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
        let from = self.uids.len();
        uids.for_each(|uid| self.push(uid.0));
        self.nodes.push(OfferedNode { name: name.0, victims: from..self.uids.len(), violations });
    }

    /// The body as `json.Marshal` writes it, in the short form. None where anything differs.
    pub(super) fn as_written_by_go(body: &'a [u8]) -> Option<Self> {
        let rest = body.strip_prefix(br#"{"Pod":"#)?;
        let mut pods = serde_json::Deserializer::from_slice(rest).into_iter::<Pod>();
        let mut offer = Self::of(pods.next()?.ok()?);
        let mut scan = Scan(rest.get(pods.byte_offset()..)?);
        scan.skip(br#","NodeNameToVictims":null,"NodeNameToMetaVictims":{"#)?;
        if scan.skip(b"}").is_none() {
            loop {
                scan.node(&mut offer)?;
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
    fn node(&mut self, offer: &mut Offer<'a>) -> Option<()> {
        let (name, from) = (self.text()?, offer.uids.len());
        self.skip(br#":{"Pods":["#)?;
        if self.skip(b"]").is_none() {
            loop {
                self.skip(br#"{"UID":""#)?;
                match self.0.first_chunk().and_then(canonical) {
                    Some(uid) if self.0.get(36) == Some(&b'"') => {
                        offer.uids.push(uid);
                        self.0 = &self.0[37..];
                    }
                    _ => return None,
                }
                self.skip(b"}")?;
                if self.skip(b",").is_none() {
                    break;
                }
            }
            self.skip(b"]")?;
        }
        self.skip(br#","NumPDBViolations":"#)?;
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.0[..digits]).ok()?;
        // JSON has no number that begins with a zero and goes on.
        let violations = number.parse().ok().filter(|_| digits == 1 || !number.starts_with('0'))?;
        self.0 = &self.0[digits..];
        self.skip(b"}")?;
        offer.nodes.push(OfferedNode { name: Cow::Borrowed(name), victims: from..offer.uids.len(), violations });
        Some(())
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

    #[test]
    fn both_ways_to_read_a_body_say_the_same_and_what_differs_in_a_byte_is_no_less_right() {
        let body = include_bytes!("../../fixtures/extender/preempt-meta.json").trim_ascii();
        let fast = Offer::as_written_by_go(body).expect("the fixture is as Go writes it");
        let slow = Offer::as_any_json(body).unwrap();
        assert_eq!((&fast.nodes, &fast.uids), (&slow.nodes, &slow.uids));
        for place in 0..body.len() {
            for byte in [b'"', b'{', b'}', b'0', b',', b'\\', b' ', 0xff] {
                let mut other = body.to_vec();
                other[place] = byte;
                if let Some(fast) = Offer::as_written_by_go(&other) {
                    let slow = Offer::as_any_json(&other).expect("what is read fast is JSON");
                    assert_eq!((&fast.nodes, &fast.uids), (&slow.nodes, &slow.uids));
                }
            }
            assert!(Offer::read(&body[..place]).is_err(), "cut at {place}");
        }
    }
}
