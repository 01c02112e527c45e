//! UIDs.

use std::fmt;

/// The UID of a pod as a number: 16 bytes instead of a string for each of 100,000 pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// Of a UUID, or, of any other text, of its digest: UIDs are only compared.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::of_uuid(text.as_bytes()).unwrap_or_else(|| {
            // FNV-1a of 128 bits; UIDs that are no UUIDs come from tests and from other API servers.
            let offset = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
            let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b_u128;
            Self(text.bytes().fold(offset, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(prime)))
        })
    }

    fn of_uuid(text: &[u8]) -> Option<Self> {
        const DASHES: [usize; 4] = [8, 13, 18, 23];
        if text.len() != 36 || DASHES.iter().any(|dash| text[*dash] != b'-') {
            return None;
        }
        let mut value = 0_u128;
        for (place, byte) in text.iter().enumerate() {
            if !DASHES.contains(&place) {
                value = value << 4 | u128::from(char::from(*byte).to_digit(16)?);
            }
        }
        Some(Self(value))
    }
}

/// As the API writes it, where it is a UUID.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, bits: u32| self.0 >> shift & ((1 << bits) - 1);
        write!(f, "{:08x}-{:04x}-{:04x}", part(96, 32), part(80, 16), part(64, 16))?;
        write!(f, "-{:04x}-{:012x}", part(48, 16), part(0, 48))
    }
}
