//! Validity and version of certificates: the only fields that are read here. rustls checks the certificate.

use std::ops::RangeInclusive;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

const UTC_TIME: u8 = 0x17;
const EXPLICIT_VERSION: u8 = 0xa0;

/// The time within which all certificates of a PEM file are valid, that of the service and those behind it, in seconds since 1970: clients refuse a chain of which
/// one is not. `None` where one cannot be read, or there is none.
#[must_use]
pub fn valid(pem: &[u8]) -> Option<RangeInclusive<i64>> {
    let mut all: Option<RangeInclusive<i64>> = None;
    for one in CertificateDer::pem_slice_iter(pem) {
        let der = one.ok()?;
        let [from, until] =
            validity(&der)?.map(|(tag, text)| Some(command_line::instant(&in_words(tag, text)?).ok()?.get()));
        let (from, until) = (from?, until?);
        all = Some(all.map_or(from..=until, |all| from.max(*all.start())..=until.min(*all.end())));
    }
    all
}

/// A time in seconds since 1970 as RFC 3339.
#[must_use]
pub fn moment(seconds: i64) -> String {
    let epoch = command_line::instant("1970-01-01T00:00:00Z");
    epoch.map_or_else(|_| format!("{seconds} s after 1970"), |epoch| epoch.plus_s(seconds).to_string())
}

/// As RFC 3339.
fn in_words(tag: u8, text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    // Two digits of the year mean 1950 to 2049 (RFC 5280).
    let text = match (tag, text.get(..2)) {
        (UTC_TIME, Some(year)) if year >= "50" => format!("19{text}"),
        (UTC_TIME, _) => format!("20{text}"),
        _ => text.to_owned(),
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    Some(format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// Whether a certificate is of X.509 version 1, which states no version (RFC 5280 §4.1) and has no names of hosts: rustls refuses it.
#[must_use]
pub fn is_of_version_1(der: &[u8]) -> bool {
    let first =
        element(der).and_then(|(_, certificate, _)| element(certificate)).and_then(|(_, fields, _)| element(fields));
    first.is_some_and(|(tag, ..)| tag != EXPLICIT_VERSION)
}

/// The two times of the validity, which follows version, serial number, signature and issuer (RFC 5280 §4.1).
fn validity(der: &[u8]) -> Option<[(u8, &[u8]); 2]> {
    let (_, certificate, _) = element(der)?;
    let (_, mut fields, _) = element(certificate)?;
    let (tag, _, after) = element(fields)?;
    if tag == EXPLICIT_VERSION {
        fields = after;
    }
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (_, validity, _) = element(fields)?;
    let (first, from, rest) = element(validity)?;
    let (second, until, _) = element(rest)?;
    Some([(first, from), (second, until)])
}

/// The tag of the first element, what it holds, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(first) {
        short @ 0..=0x7f => (short, rest),
        long @ 0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80)?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (holds, rest) = rest.split_at_checked(length)?;
    Some((tag, holds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_or_no_certificate_has_no_end() {
        assert_eq!(valid(b"-----BEGIN CERTIFICATE-----\nMAMCAQA=\n-----END CERTIFICATE-----\n"), None);
        assert_eq!(valid(b"nothing"), None);
        assert_eq!(element(&[0x30, 0x82, 0x01]), None);
        assert_eq!(element(&[0x30, 0x05, 0x01]), None);
    }

    #[test]
    fn a_chain_is_valid_while_all_of_it_is() {
        let pem = |from: i32, until: i32| {
            let mut one = rcgen::CertificateParams::new(vec![]).unwrap();
            (one.not_before, one.not_after) = (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
            one.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
        };
        let of = |pem: &str| valid(pem.as_bytes()).unwrap().into_inner();
        let at = |text: &str| command_line::instant(text).unwrap().get();
        let chain = pem(2020, 2060) + &pem(2024, 2041);
        assert_eq!(of(&chain), (at("2024-01-01T00:00:00Z"), at("2041-01-01T00:00:00Z")));
        assert_eq!(of(&pem(1990, 2060)), (at("1990-01-01T00:00:00Z"), at("2060-01-01T00:00:00Z")));
    }

    #[test]
    fn elements_are_read_with_short_and_long_lengths() {
        assert_eq!(element(&[0x02, 0x01, 0x07, 0x09]), Some((2, &[7][..], &[9][..])));
        let long: Vec<u8> = [0x04, 0x81, 0x80].into_iter().chain([1; 0x80]).collect();
        assert_eq!(element(&long).map(|(_, holds, rest)| (holds.len(), rest.len())), Some((0x80, 0)));
    }
}
