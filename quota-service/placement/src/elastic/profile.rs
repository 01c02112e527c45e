//! How fast a job is by how many GPUs it holds.

/// The gain of one more GPU, in millionths of the first one's: 1,000,000 is linear. Whole, so that it can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scaling(u32);

impl Scaling {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// As much as the first GPU does, and the most that counts. What is not measured yet, and what is not elastic, counts as this (Cornucopia §4.3).
    pub const LINEAR: Self = Self(1_000_000);

    /// No more than linear.
    #[must_use]
    pub const fn of_millionths(millionths: u32) -> Self {
        Self(if millionths < Self::LINEAR.0 { millionths } else { Self::LINEAR.0 })
    }

    /// Speed relative to that on the requested pods, in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

/// Why a list of speeds is no profile.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ProfileFault {
    /// The profile has no speed.
    #[error("it is empty: the speed on one GPU is missing")]
    Empty,
    /// A speed is not a positive number.
    #[error("the speed on {gpus} GPUs is {speed}: write a number above 0, and at most a million times that on one GPU")]
    Speed {
        /// The number of GPUs with this speed.
        gpus: u32,
        /// The refused speed.
        speed: f64,
    },
}

/// Speeds on 1, 2, 3 … GPUs, in any one unit (samples a second, or multiples of the speed on one GPU).
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    speeds: Vec<f64>,
    gains: Vec<Scaling>,
}

impl Profile {
    /// # Errors
    /// A speed is missing or none.
    pub fn new(speeds: Vec<f64>) -> Result<Self, ProfileFault> {
        let first = *speeds.first().ok_or(ProfileFault::Empty)?;
        for (speed, gpus) in speeds.iter().copied().zip(1..) {
            // Not a number is in no range.
            if !(f64::MIN_POSITIVE..=f64::MAX).contains(&speed) || speed / first > 1e6 {
                return Err(ProfileFault::Speed { gpus, speed });
            }
        }
        let gains = gains(&speeds);
        Ok(Self { speeds, gains })
    }

    /// As many times as fast as it has GPUs.
    #[must_use]
    pub fn linear(gpus_most: u32) -> Self {
        let speeds = (1..=gpus_most.max(1)).map(f64::from).collect::<Vec<_>>();
        Self { gains: gains(&speeds), speeds }
    }

    /// GPUs up to which it is known.
    #[must_use]
    pub fn gpus_most(&self) -> u32 {
        self.speeds.len() as u32
    }

    /// Zero without GPUs.
    ///
    /// # Panics
    /// More than [`Self::gpus_most`] GPUs.
    #[must_use]
    pub fn speed(&self, gpus: u32) -> f64 {
        assert!(gpus <= self.gpus_most(), "{gpus} GPUs are beyond the profile");
        gpus.checked_sub(1).map_or(0.0, |before| self.speeds[before as usize])
    }

    /// The gain of one GPU more than `gpus`: the scaling factor of Cornucopia's Eq. 1.
    ///
    /// Eq. 1 divides by what the second GPU adds, and so calls a job linear that bends at its second GPU. Here it is what
    /// the first one does: the same for every job that is linear at first, and comparable between jobs. No GPU counts more
    /// than one before it, or a job would take GPUs from itself for the sake of a later one.
    #[must_use]
    pub fn gain(&self, gpus: u32) -> Scaling {
        self.gains.get(gpus as usize).copied().unwrap_or(Scaling::NONE)
    }
}

fn gains(speeds: &[f64]) -> Vec<Scaling> {
    let (mut before, mut least) = (0.0, Scaling::LINEAR);
    let mut gain = |speed: &f64| {
        let millionths = ((speed - before) / speeds[0] * 1e6).round().clamp(0.0, 1e6) as u32;
        before = *speed;
        least = least.min(Scaling(millionths));
        least
    };
    speeds.iter().map(&mut gain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gain_is_what_one_more_gpu_adds_of_the_first_one() {
        let bends = Profile::new(vec![10.0, 20.0, 25.0, 24.0, 40.0]).unwrap();
        let gains: Vec<u32> = (0..6).map(|gpus| bends.gain(gpus).millionths()).collect();
        assert_eq!(gains, [1_000_000, 1_000_000, 500_000, 0, 0, 0]);
        assert_eq!((bends.speed(0), bends.speed(3), bends.gpus_most()), (0.0, 25.0, 5));
        assert!((0..7).all(|gpus| Profile::linear(7).gain(gpus) == Scaling::LINEAR));
    }

    #[test]
    fn what_is_no_speed_is_refused_with_its_gpus() {
        assert_eq!(Profile::new(Vec::new()).unwrap_err(), ProfileFault::Empty);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
            let message = Profile::new(vec![1.0, bad]).unwrap_err().to_string();
            assert!(message.starts_with("the speed on 2 GPUs is "), "{message}");
        }
    }
}
