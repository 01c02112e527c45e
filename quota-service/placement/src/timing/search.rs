//! The lowest point of a function of one variable between two bounds.

/// Steps at most; a quasi-Newton method of one variable needs few.
const STEPS: usize = 20;
/// The largest slope or step that counts as none.
const LITTLE: f64 = 1e-7;

/// Descends from `start`: L-BFGS, which of one variable is the secant method, with halved steps where the value does not
/// fall (Armijo). The place and its value; the value is never above that of the start.
pub fn descend(function: impl Fn(f64) -> (f64, f64), start: f64, [low, high]: [f64; 2]) -> (f64, f64) {
    let mut at = start.clamp(low, high);
    let (mut value, mut slope) = function(at);
    let mut curvature = 0.0;
    for _ in 0..STEPS {
        let step = if curvature > LITTLE { -slope / curvature } else { -slope.signum() * 0.1 * (high - low) };
        let target = (at + step).clamp(low, high);
        if slope.abs() < LITTLE || (target - at).abs() < LITTLE * (high - low) {
            break;
        }
        let Some((next, next_value, next_slope)) = lower(&function, (at, value, slope), target) else { break };
        curvature = (next_slope - slope) / (next - at);
        (at, value, slope) = (next, next_value, next_slope);
    }
    (at, value)
}

/// The first place between `target` and where we are whose value is lower by what the slope promises, in part.
fn lower(
    function: &impl Fn(f64) -> (f64, f64),
    (at, value, slope): (f64, f64, f64),
    target: f64,
) -> Option<(f64, f64, f64)> {
    let mut step = target - at;
    for _ in 0..8 {
        let (next_value, next_slope) = function(at + step);
        if next_value <= value + 1e-4 * slope * step {
            return Some((at + step, next_value, next_slope));
        }
        step *= 0.5;
    }
    None
}

/// The lowest of the places that descents from all starts lead to; the first one of equals. `None` without starts.
pub fn lowest(
    function: impl Fn(f64) -> (f64, f64),
    starts: impl IntoIterator<Item = f64>,
    bounds: [f64; 2],
) -> Option<(f64, f64)> {
    let ends = starts.into_iter().map(|start| descend(&function, start, bounds));
    ends.reduce(|best, end| if end.1 < best.1 { end } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_bottom_the_bound_and_the_lowest_of_several_bottoms() {
        let parabola = |x: f64| ((x - 0.3) * (x - 0.3), 2.0 * (x - 0.3));
        assert!((descend(parabola, 0.9, [0.0, 1.0]).0 - 0.3).abs() < 1e-6);
        assert_eq!(descend(parabola, 0.9, [0.5, 1.0]).0, 0.5);
        let waves = |x: f64| ((6.0 * x).cos() + x, -6.0 * (6.0 * x).sin() + 1.0);
        let (at, _) = lowest(waves, [0.1, 1.4, 2.0], [0.0, 2.0]).unwrap();
        assert!((at - (std::f64::consts::PI - (1.0_f64 / 6.0).asin()) / 6.0).abs() < 0.06, "{at}");
        assert_eq!(lowest(parabola, [], [0.0, 1.0]), None);
    }
}
