//! GPUs in the trackable resources (TRES) of a job or a node.

use std::fmt;
use std::sync::Arc;

/// Name of GPUs among generic resources.
pub const GPU_GRES: &str = "gpu";
/// Parts of GPUs: how many make a GPU is known on the node alone.
const PARTS: [&str; 2] = ["shard", "mps"];

/// GPUs, and of which types. Some, or all, may have no type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gpus {
    /// All of them.
    pub total: u32,
    /// By type, sorted; together at most `total`.
    pub typed: Vec<(Arc<str>, u32)>,
    /// Whether parts of GPUs (`gres/shard`, `gres/mps`) are among the resources. They are in no count.
    pub has_parts: bool,
}

/// Why resources cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpusFault {
    #[error("{text:?} is not a list of resources such as cpu=8,gres/gpu:a100=2")]
    Text { text: String },
    #[error("{name} has {count}, more than {} GPUs", u32::MAX)]
    Count { name: String, count: u64 },
    #[error("{} a type, more than the {total} in all", vocab::gpus(*typed).verb("has", "have"))]
    Sum { typed: u64, total: u32 },
}

impl Gpus {
    /// Of `cpu=1,gres/gpu=3,gres/gpu:a100=3`.
    ///
    /// # Errors
    /// The text is no such list.
    pub fn parse(text: &str) -> Result<Self, GpusFault> {
        let wrong = || GpusFault::Text { text: text.to_owned() };
        let mut counts = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, count) = part.split_once('=').ok_or_else(wrong)?;
            // Other resources may have units, as in mem=100000M.
            if let Some(gres) = name.strip_prefix("gres/") {
                counts.push((gres, count.parse::<u64>().map_err(|_| wrong())?));
            }
        }
        Self::of(counts.into_iter())
    }

    /// Of `gpu:a100:4(IDX:0-3),gpu:h100:0(IDX:N/A)`, as a node states what is in use; none where no GPU is named, or one cannot be
    /// read. GPUs without a type have none, or `(null)`.
    #[must_use]
    pub fn of_gres(text: &str) -> Option<Self> {
        let mut counts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            // Commas within brackets are between indexes.
            let mut depth = 0_usize;
            let end = rest.char_indices().find(|(_, letter)| {
                match letter {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                *letter == ',' && depth == 0
            });
            let (entry, more) = end.map_or((rest, ""), |(at, _)| (&rest[..at], &rest[at + 1..]));
            rest = more;
            let entry = entry.replace(":(null)", "");
            let entry = entry.split('(').next().unwrap_or_default();
            let (name, count) = entry.rsplit_once(':')?;
            counts.push((name.to_owned(), count.parse::<u64>().ok()?));
        }
        let names_gpus = counts.iter().any(|(name, _)| name.split(':').next() == Some(GPU_GRES));
        let gpus = Self::of(counts.iter().map(|(name, count)| (name.as_str(), *count))).ok()?;
        names_gpus.then_some(gpus)
    }

    /// Of names of generic resources with their counts: `gpu`, `gpu:a100`.
    ///
    /// # Errors
    /// A count is too large, or more GPUs have a type than there are.
    pub fn of<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> Result<Self, GpusFault> {
        let (mut gpus, mut all) = (Self::default(), None);
        for (name, count) in counts {
            let (kind, model) = name.split_once(':').map_or((name, None), |(kind, model)| (kind, Some(model)));
            gpus.has_parts |= PARTS.contains(&kind) && count > 0;
            if kind != GPU_GRES {
                continue;
            }
            let count = u32::try_from(count).map_err(|_| GpusFault::Count { name: name.to_owned(), count })?;
            match model {
                None => all = Some(count),
                Some(model) if count > 0 => gpus.typed.push((Arc::from(model), count)),
                Some(_) => {}
            }
        }
        gpus.typed.sort();
        let typed: u64 = gpus.typed.iter().map(|(_, count)| u64::from(*count)).sum();
        // A cluster may account for its types alone.
        gpus.total = all.unwrap_or(u32::try_from(typed).unwrap_or(u32::MAX));
        if typed > u64::from(gpus.total) {
            return Err(GpusFault::Sum { typed, total: gpus.total });
        }
        Ok(gpus)
    }

    /// GPUs without a type.
    #[must_use]
    pub fn untyped(&self) -> u32 {
        self.total - self.typed.iter().map(|(_, count)| count).sum::<u32>()
    }

    /// GPUs of a type.
    #[must_use]
    pub fn of_type(&self, model: &str) -> u32 {
        self.typed.iter().find(|(name, _)| name.as_ref() == model).map_or(0, |(_, count)| *count)
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", vocab::gpus(self.total))?;
        for (model, count) in &self.typed {
            write!(f, ", {count} {model}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (u32, u32, u32) {
        let gpus = Gpus::parse(text).unwrap();
        (gpus.total, gpus.of_type("a100"), gpus.untyped())
    }

    #[test]
    fn gpus_are_counted_with_and_without_their_type() {
        assert_eq!(read("cpu=1,mem=100000M,node=1,billing=1,gres/gpu=3,gres/gpu:a100=2"), (3, 2, 1));
        assert_eq!(read("gres/gpu:a100=2"), (2, 2, 0), "a cluster that accounts for types alone");
        assert_eq!(read("cpu=1,mem=2.5G"), (0, 0, 0));
        assert_eq!(read(""), (0, 0, 0));
        assert!(Gpus::parse("cpu=1,gres/shard=4").unwrap().has_parts);
    }

    #[test]
    fn gpus_in_use_are_read_as_a_node_states_them() {
        let of = |text: &str| Gpus::of_gres(text).map(|gpus| (gpus.total, gpus.of_type("a100"), gpus.untyped()));
        assert_eq!(of("gpu:a100:4(IDX:0-1,3,7)"), Some((4, 4, 0)));
        assert_eq!(of("gpu:h100:0(IDX:N/A),gpu:a100:2(IDX:0-1),shard:0"), Some((2, 2, 0)));
        assert_eq!(of("gpu:(null):3(IDX:0-2)"), Some((3, 0, 3)));
        assert_eq!(of("gpu:a100:1(S:0)"), Some((1, 1, 0)));
        assert_eq!(["", "N/A", "shard:2", "gpu:a100", "gpu"].map(of), [None; 5]);
    }

    #[test]
    fn resources_that_contradict_themselves_are_refused() {
        let refused = ["gres/gpu", "gres/gpu=x", "gres/gpu=1,gres/gpu:a100=2", "gres/gpu=99999999999"];
        assert!(refused.iter().all(|text| Gpus::parse(text).is_err()));
    }
}
