//! Lists of numbers as the kernel writes them: `0-7,32-39`.

use std::fmt;

/// Why a list is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a list of numbers: write for example 0-7,32-39")]
pub struct ListError {
    text: String,
}

/// No machine has more logical CPUs; a list beyond it is a slip.
const MOST: u32 = 65_536;

/// Numbers, each once, as runs: the list format of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List(Vec<(u32, u32)>);

impl List {
    /// # Errors
    /// The text is no list. An empty one, or `-`, is empty.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let refused = || ListError { text: text.to_owned() };
        let text = text.trim();
        if text.is_empty() || text == "-" {
            return Ok(Self::default());
        }
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number < MOST).ok_or_else(refused);
        let range = |text: &str| match text.split_once('-') {
            Some((first, last)) => Ok((number(first)?, number(last)?)),
            None => number(text).map(|one| (one, one)),
        };
        let ranges: Vec<(u32, u32)> = text.split(',').map(range).collect::<Result<_, _>>()?;
        if ranges.iter().any(|(first, last)| first > last) {
            return Err(refused());
        }
        Ok(Self::of_ranges(ranges))
    }

    /// Of runs in any order, first and last number of each.
    #[must_use]
    pub fn of_ranges(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// The numbers of the bits that are set.
    #[must_use]
    pub fn of_mask(mask: u64) -> Self {
        Self::of_ranges((0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| (bit, bit)).collect())
    }

    /// First and last number of each run, rising.
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// The numbers, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Whether the list has no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first number that is in both.
    #[must_use]
    pub fn first_common(&self, other: &Self) -> Option<u32> {
        let common = |a: &(u32, u32), b: &(u32, u32)| (a.0.max(b.0) <= a.1.min(b.1)).then(|| a.0.max(b.0));
        self.0.iter().flat_map(|a| other.0.iter().filter_map(move |b| common(a, b))).min()
    }
}

/// `-` for an empty one: a word is a word.
impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        for (place, (first, last)) in self.0.iter().enumerate() {
            let between = if place == 0 { "" } else { "," };
            if first == last {
                write!(f, "{between}{first}")?;
            } else {
                write!(f, "{between}{first}-{last}")?;
            }
        }
        Ok(())
    }
}
