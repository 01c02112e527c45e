//! Places of ids in sorted lists.

use vocab::SeriesId;

/// Finds ids in a sorted list: in one step where they are asked for in its order, else by halving.
#[derive(Default)]
pub struct Cursor(usize);

impl Cursor {
    /// The place of an id, or that at which it would stand.
    pub fn find<'a>(
        &mut self,
        len: usize,
        id_at: impl Fn(usize) -> &'a SeriesId,
        id: &SeriesId,
    ) -> Result<usize, usize> {
        let found = if self.0 < len && id_at(self.0) == id {
            Ok(self.0)
        } else {
            let (mut low, mut high) = (0, len);
            while low < high {
                let middle = usize::midpoint(low, high);
                if id_at(middle) < id { low = middle + 1 } else { high = middle }
            }
            if low < len && id_at(low) == id { Ok(low) } else { Err(low) }
        };
        self.0 = found.map_or_else(|place| place, |place| place + 1);
        found
    }
}
