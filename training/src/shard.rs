//! A share of the clusters, for Jobs beside each other that know nothing of each other.

use crate::error::TrainingError;
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use std::fmt;
use std::str::FromStr;
use store::Cluster;

/// Shard `number`, from 0, of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0, as the completion index of a Kubernetes Job.
    pub number: usize,
    /// Number of shards.
    pub of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        let shard = parts.filter(|(number, of)| number < of).map(|(number, of)| Self { number, of });
        shard.ok_or_else(|| format!("invalid shard {text:?}: expected K/N with K from 0 to N - 1, such as 0/16"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// Its clusters: every `of`th one by name.
    ///
    /// # Errors
    /// It holds none.
    pub fn of_clusters(self, clusters: Vec<Cluster>) -> Result<Vec<Cluster>, TrainingError> {
        let count = clusters.len();
        let own: Vec<_> = clusters.into_iter().skip(self.number).step_by(self.of).collect();
        if own.is_empty() { Err(TrainingError::EmptyShard { shard: self, clusters: count }) } else { Ok(own) }
    }
}

/// Other clusters to borrow rows from, at most `most` of them, by name. The same names, seed and cluster give the same choice,
/// whichever shard trains the cluster.
#[must_use]
pub fn lenders(all: &[Cluster], cluster: &Cluster, most: usize, seed: u64) -> Vec<Cluster> {
    let others: Vec<&Cluster> = all.iter().filter(|one| one.name != cluster.name).collect();
    let place = all.iter().position(|one| one.name == cluster.name).unwrap_or(0) as u64;
    let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(place));
    let mut drawn = index::sample(&mut rng, others.len(), most.min(others.len())).into_vec();
    drawn.sort_unstable();
    drawn.into_iter().map(|place| others[place].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::ClusterName;

    fn clusters(count: usize) -> Vec<Cluster> {
        let one = |number| Cluster {
            name: ClusterName::parse(&format!("c{number:02}")).unwrap(),
            time_zone: "UTC".into(),
            calendar: "weekdays".into(),
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn each_cluster_is_in_one_shard() {
        let mut seen = Vec::new();
        for number in 0..3 {
            let shard: Shard = format!("{number}/3").parse().unwrap();
            seen.extend(shard.of_clusters(clusters(7)).unwrap());
        }
        seen.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(seen, clusters(7));
        assert!("3/4".parse::<Shard>().unwrap().of_clusters(clusters(3)).is_err());
        for text in ["3/3", "1", "a/2", "0/0"] {
            assert!(text.parse::<Shard>().unwrap_err().contains("expected K/N"), "{text}");
        }
    }

    #[test]
    fn lenders_are_other_clusters_and_the_same_each_time() {
        let all = clusters(20);
        let drawn = lenders(&all, &all[3], 4, 1);
        assert_eq!((drawn.len(), drawn.contains(&all[3])), (4, false));
        assert_eq!(drawn, lenders(&all, &all[3], 4, 1));
        assert_ne!(drawn, lenders(&all, &all[4], 4, 1));
        assert_eq!(lenders(&all, &all[3], 40, 1).len(), 19);
    }
}
