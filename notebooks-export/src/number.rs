//! Small numbers for repeated values.

use std::collections::BTreeMap;

/// Distinct values, numbered as they first appear: a row then holds a number instead of a name.
#[derive(Debug)]
pub struct Numbered<T> {
    numbers: BTreeMap<T, usize>,
    values: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), values: Vec::new() }
    }
}

impl<T: Ord + Clone> Numbered<T> {
    /// The number of a value, a new one where the value is new.
    pub fn number(&mut self, value: T) -> usize {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        self.values.push(value.clone());
        self.numbers.insert(value, self.values.len() - 1);
        self.values.len() - 1
    }

    /// The values, each at its number.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}
