//! Answers of networks that have learned: what a window says is multiplied once for all of its targets.

use super::tiles::{Factors, Tiles, WIDE};
use super::{CALENDAR_INPUTS, HIDDEN, Member, Network, drawn_in, loss, waves};
use crate::network::member::place;
use crate::rows::{Features, OUTPUTS, SPREAD};
use std::ops::Range;

/// Hour, weekday and day off: the last features of a target.
const CALENDAR: usize = 3;

/// Inputs of rows of windows with one target or several.
pub(super) struct Windows {
    /// Class of the series of each row.
    places: Vec<u32>,
    /// Number of the inputs that the targets of a window share, and of those that are their own.
    widths: [usize; 2],
    /// Shared ones, `[row][input]`.
    window: Vec<f32>,
    /// Their own, `[target][row][input]`.
    targets: Vec<Vec<f32>>,
}

impl Network {
    /// The mean outputs of the networks for rows with all targets: `[step]`, each `[row][OUTPUTS]`, the spread as a deviation.
    #[must_use]
    pub fn say(&self, rows: &[f32], features: &Features) -> Vec<Vec<f32>> {
        let inputs = self.inputs(rows, features);
        let widths = [0, self.sizes.inputs];
        let of = Windows { places: inputs.places, widths, window: Vec::new(), targets: vec![inputs.values] };
        self.mean_of(&of, &[(0..self.sizes.steps).collect()])
    }

    /// The same for rows of windows whose targets are answered one by one, each by the head of its group: `[target]`.
    #[must_use]
    pub fn say_of_targets(&self, rows: &[f32], features: &Features) -> Vec<Vec<f32>> {
        let (width, own) = (features.count(), features.target_columns().own);
        let of_groups = features.step_groups().answered().enumerate();
        let heads: Vec<Vec<usize>> = of_groups.flat_map(|(group, steps)| vec![vec![group]; steps.len()]).collect();
        let place = |row: &[f32]| self.sizes.class_of(row[width - 1] as usize) as u32;
        let mut window = Vec::with_capacity(rows.len() / width * own.start);
        rows.chunks_exact(width).for_each(|row| self.push_amounts(&row[..own.start], 0, &mut window));
        let target = |number: usize| {
            let start = own.start + number * own.len();
            self.target_inputs(rows, width, start..start + own.len(), own.start)
        };
        let of = Windows {
            places: rows.chunks_exact(width).map(place).collect(),
            widths: [own.start, self.sizes.inputs - own.start],
            window,
            targets: (0..heads.len()).map(target).collect(),
        };
        self.mean_of(&of, &heads)
    }

    /// The mean of all networks; `heads` are those that each target is answered by.
    fn mean_of(&self, of: &Windows, heads: &[Vec<usize>]) -> Vec<Vec<f32>> {
        let share = 1.0 / self.members.len() as f32;
        let mut sums = vec![vec![0.0; of.places.len() * OUTPUTS]; heads.iter().map(Vec::len).sum()];
        for member in &self.members {
            member.add_answers(of, heads, share, &mut sums);
        }
        sums
    }

    /// Appends amounts in deviations; `first` is the place of the first one among all amounts.
    fn push_amounts(&self, amounts: &[f32], first: usize, to: &mut Vec<f32>) {
        let each = amounts.iter().zip(&self.standard[first..]);
        to.extend(each.map(|(value, [mean, deviation])| drawn_in((value - mean) / deviation)));
    }

    /// The inputs of one target of each row, whose features are in some columns.
    fn target_inputs(&self, rows: &[f32], width: usize, columns: Range<usize>, first: usize) -> Vec<f32> {
        let calendar = columns.end - CALENDAR;
        let mut inputs = Vec::with_capacity(rows.len() / width * (self.sizes.inputs - first));
        // Targets of one step mostly have the same hour.
        let mut known: Option<([f32; 2], [f32; CALENDAR_INPUTS - 1])> = None;
        for row in rows.chunks_exact(width) {
            self.push_amounts(&row[columns.start..calendar], first, &mut inputs);
            let at = [row[calendar], row[calendar + 1]];
            let waves = match known {
                Some((last, waves)) if last == at => waves,
                _ => waves(at[0], at[1]),
            };
            known = Some((at, waves));
            inputs.extend_from_slice(&waves);
            inputs.push(row[calendar + 2]);
        }
        inputs
    }
}

impl Member {
    /// Adds a share of the outputs of each target and its heads, `[target and head]`, each `[row][OUTPUTS]`.
    fn add_answers(&self, of: &Windows, heads: &[Vec<usize>], share: f32, sums: &mut [Vec<f32>]) {
        let [shared, own] = of.widths;
        let parameter = |place: usize| &self.parameters()[place][..];
        let columns = parameter(place::OUTPUT_BIAS).len();
        let first = |inputs: Range<usize>| &parameter(place::FIRST)[inputs.start * HIDDEN[0]..inputs.end * HIDDEN[0]];
        let straight = |inputs: Range<usize>, head: usize| {
            wide(&parameter(place::STRAIGHT)[inputs.start * columns..inputs.end * columns], columns, head)
        };
        // 1. What windows say: to the first layer, and straight to the outputs of each head.
        let tiles = Tiles::new();
        let mut of_window = begun(parameter(place::FIRST_BIAS), parameter(place::FIRST_SERIES), HIDDEN[0], &of.places);
        tiles.add_products::<{ HIDDEN[0] }>(&of.window, shared, first(0..shared), &mut of_window);
        let of_head = |head: usize| {
            let (bias, series) = (parameter(place::OUTPUT_BIAS), parameter(place::OUTPUT_SERIES));
            let series = wide(series, columns, head);
            let mut sums = begun(&wide(bias, columns, head), &series, WIDE, &of.places);
            tiles.add_products::<WIDE>(&of.window, shared, &straight(0..shared, head), &mut sums);
            sums
        };
        let known: Vec<Vec<f32>> = (0..columns / OUTPUTS).map(of_head).collect();
        // 2. Targets: the hidden layers once, then each head.
        let output = |head: usize| wide(parameter(place::OUTPUT), columns, head);
        let outputs: Vec<[Vec<f32>; 2]> =
            (0..known.len()).map(|head| [output(head), straight(shared..shared + own, head)]).collect();
        let factors = Factors {
            first: first(shared..shared + own),
            second: parameter(place::SECOND),
            second_bias: parameter(place::SECOND_BIAS),
            outputs: &outputs,
        };
        let mut sums = sums.iter_mut();
        for (inputs, heads) in of.targets.iter().zip(heads) {
            let answers = tiles.answers(&factors, inputs, &of_window, heads, &known);
            for (answers, sums) in answers.iter().zip(&mut sums) {
                for (sums, answer) in sums.chunks_exact_mut(OUTPUTS).zip(answers.chunks_exact(WIDE)) {
                    sums.iter_mut().zip(answer).for_each(|(sum, answer)| *sum += share * answer);
                    sums[SPREAD] += share * (loss::spread(answer[SPREAD]) as f32 - answer[SPREAD]);
                }
            }
        }
    }
}

/// A bias and what the class of each row adds to it, `[row][width]`.
fn begun(bias: &[f32], of_series: &[f32], width: usize, places: &[u32]) -> Vec<f32> {
    let row = |place: &u32| {
        let row = &of_series[*place as usize * width..][..width];
        bias.iter().zip(row).map(|(bias, value)| bias + value)
    };
    places.iter().flat_map(row).collect()
}

/// The columns of one head of a matrix, each row as wide as a register.
fn wide(matrix: &[f32], columns: usize, head: usize) -> Vec<f32> {
    let row = |row: &[f32]| -> [f32; WIDE] {
        std::array::from_fn(|place| if place < OUTPUTS { row[head * OUTPUTS + place] } else { 0.0 })
    };
    matrix.chunks_exact(columns).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Sizes, fused};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn member(sizes: Sizes, rng: &mut ChaCha8Rng) -> Member {
        let values = |count: usize, rng: &mut ChaCha8Rng| (0..count).map(|_| rng.random_range(-0.3..0.3)).collect();
        Member::new(sizes, sizes.shapes().map(|(_, [rows, columns])| values(rows * columns, rng)).collect()).unwrap()
    }

    /// Sums of answers by tiles, as those of the products that a network learns with.
    #[test]
    fn tiles_answer_as_the_network_that_learned() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let sizes = Sizes { inputs: 30, series: 3, classes: 3, steps: 2 };
        let member = member(sizes, &mut rng);
        for rows in [1, 4, 9] {
            let values: Vec<f32> = (0..rows * 30).map(|_| rng.random_range(-2.0..2.0)).collect();
            let places: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
            let exact = member.forward(&fused::matrix(values.clone(), 30).unwrap(), &places).unwrap();
            let parts = |columns: Range<usize>| -> Vec<f32> {
                values.chunks_exact(30).flat_map(|row| row[columns.clone()].to_vec()).collect()
            };
            let targets = vec![parts(18..30)];
            let of = Windows { places, widths: [18, 12], window: parts(0..18), targets };
            let mut sums = vec![vec![0.0; rows * OUTPUTS]; 2];
            member.add_answers(&of, &[vec![0, 1]], 1.0, &mut sums);
            for (row, exact) in exact.chunks_exact(2 * OUTPUTS).enumerate() {
                for (place, exact) in exact.iter().enumerate() {
                    let exact = if place % OUTPUTS == SPREAD { loss::spread(*exact) as f32 } else { *exact };
                    let found = sums[place / OUTPUTS][row * OUTPUTS + place % OUTPUTS];
                    assert!((found - exact).abs() < 1e-4, "row {row}, output {place}: {found} is not {exact}");
                }
            }
        }
    }
}
