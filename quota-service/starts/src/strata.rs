//! Draws that are spread evenly over the paths of a forecast.

use placement::draw::Draw;

/// The equally likely parts of each random quantity: each path has another one, in an order of the quantity's own.
#[derive(Debug, Clone)]
pub struct Strata {
    paths: u32,
    /// A standard exponential draw from the middle of each part, rising.
    exponential: Vec<f64>,
    /// The number whose product with each stride leaves 1: `paths` is prime.
    inverse: Vec<u32>,
}

/// The order of one quantity.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    first: u32,
    inverse: u32,
}

impl Strata {
    /// Of so many paths, which has to be a prime.
    pub fn new(paths: u32) -> Self {
        debug_assert!(paths > 1 && (2..paths).all(|one| !paths.is_multiple_of(one)), "{paths} is a prime");
        let exponential = (0..paths).map(|part| -(1.0 - middle(part, paths)).ln()).collect();
        let mut inverse = vec![0; paths as usize];
        inverse[1] = 1;
        // The recurrence of modular inverses: p = q·a + r, so that 1/a = −q/r.
        for one in 2..paths {
            inverse[one as usize] = (paths - paths / one) * inverse[(paths % one) as usize] % paths;
        }
        Self { paths, exponential, inverse }
    }

    pub const fn paths(&self) -> u32 {
        self.paths
    }

    /// Draws an order.
    pub fn order(&self, draw: &mut Draw) -> Order {
        let below = |count: u32, draw: &mut Draw| (draw.unit() * f64::from(count)) as u32;
        let (first, stride) = (below(self.paths, draw), 1 + below(self.paths - 1, draw));
        Order { first, inverse: self.inverse[stride as usize] }
    }

    const fn part(&self, order: Order, path: u32) -> u32 {
        (path + self.paths - order.first) % self.paths * order.inverse % self.paths
    }

    /// The exponential draw of a path.
    pub fn exponential(&self, order: Order, path: u32) -> f64 {
        self.exponential[self.part(order, path) as usize]
    }

    /// The uniform draw of each path.
    pub fn uniform(&self, order: Order) -> impl Iterator<Item = f64> {
        (0..self.paths).map(move |path| middle(self.part(order, path), self.paths))
    }
}

/// The middle of one of the equally likely parts between 0 and 1.
fn middle(part: u32, paths: u32) -> f64 {
    (f64::from(part) + 0.5) / f64::from(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_another_part_of_each_quantity() {
        let (strata, mut draw) = (Strata::new(61), Draw::new(3));
        let orders = [strata.order(&mut draw), strata.order(&mut draw)];
        let all = orders.map(|order| strata.uniform(order).collect::<Vec<_>>());
        assert_ne!(all[0], all[1]);
        for mut uniform in all {
            uniform.sort_by(f64::total_cmp);
            assert!(uniform.windows(2).all(|two| (two[1] - two[0] - 1.0 / 61.0).abs() < 1e-12));
        }
    }
}
