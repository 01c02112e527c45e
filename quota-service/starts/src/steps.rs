//! The time of a future, in steps that grow with their distance.

/// Lengths of steps, each up to a time from now, in seconds.
const LENGTHS: [(u32, u32); 4] = [(600, 60), (6 * 3_600, 300), (24 * 3_600, 900), (HORIZON_S, 1_800)];
/// The end of every future: starts after it are not distinguished.
pub const HORIZON_S: u32 = 72 * 3_600;

/// The ends of all steps.
#[derive(Debug, Clone)]
pub struct Steps {
    ends_s: Vec<u32>,
}

impl Steps {
    pub fn new() -> Self {
        let (mut ends_s, mut at_s) = (Vec::new(), 0);
        for (until_s, length_s) in LENGTHS {
            while at_s < until_s {
                at_s += length_s;
                ends_s.push(at_s);
            }
        }
        Self { ends_s }
    }

    pub fn count(&self) -> usize {
        self.ends_s.len()
    }

    pub fn end_s(&self, step: usize) -> u32 {
        self.ends_s[step]
    }

    pub fn begin_s(&self, step: usize) -> u32 {
        step.checked_sub(1).map_or(0, |before| self.ends_s[before])
    }

    /// The step in which a time falls; none after the last.
    pub fn of(seconds: f64) -> Option<usize> {
        if seconds > f64::from(HORIZON_S) {
            return None;
        }
        // A part of a second belongs to the one that it ends in.
        let whole = seconds.max(0.0) as u32;
        let second = whole + u32::from(f64::from(whole) < seconds);
        let (mut begin_s, mut first) = (0, 0);
        for (until_s, length_s) in LENGTHS {
            if second <= until_s {
                return Some((first + (second.max(begin_s + 1) - begin_s).div_ceil(length_s) - 1) as usize);
            }
            first += (until_s - begin_s) / length_s;
            begin_s = until_s;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_is_in_the_step_that_ends_with_it_or_after_it() {
        let steps = Steps::new();
        assert_eq!(steps.end_s(steps.count() - 1), HORIZON_S);
        for second in (0..=HORIZON_S).step_by(7) {
            let step = Steps::of(f64::from(second)).unwrap();
            assert!(second <= steps.end_s(step) && (second > steps.begin_s(step) || second == 0), "{second} in {step}");
        }
        assert_eq!(Steps::of(f64::from(HORIZON_S) + 0.5), None);
    }
}
