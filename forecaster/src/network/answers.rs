//! Answers of networks that have learned: what a window says is multiplied once for all of its targets, and what all rows of a
//! target say once for all of them.

use super::tiles::{Factors, Target, Tiles};
use super::{CALENDAR_INPUTS, HIDDEN, Member, Network, fused, waves};
use crate::network::member::place;
use crate::rows::{Features, OUTPUTS};
use std::ops::Range;

pub use super::tiles::WIDE;

/// Hour, weekday and day off: the last features of a target.
const CALENDAR: usize = 3;
/// The number of the step, the first feature of a target, and its calendar: mostly the same for all rows.
const SAME_INPUTS: usize = 1 + CALENDAR_INPUTS;

/// Inputs of rows of windows with one target or several.
pub(super) struct Windows {
    /// Class of the series of each row.
    places: Vec<u32>,
    parts: Parts,
    /// Inputs that the targets of a window share, `[row][input]`.
    window: Vec<f32>,
    targets: Vec<TargetRows>,
}

/// Places of the inputs: those that the targets of a window share, those of a target that differ from row to row, and those that
/// are mostly the same for all rows.
struct Parts {
    window: Range<usize>,
    own: Range<usize>,
    same: Vec<usize>,
}

/// Inputs of one target.
#[derive(Default)]
struct TargetRows {
    /// `[row][input]`.
    own: Vec<f32>,
    /// Those that are mostly the same, `[place][input]`.
    same: Vec<f32>,
    /// Their place, of each row.
    same_of: Vec<u32>,
}

impl Network {
    /// The mean outputs of the networks for rows with all targets: `[step]`, each `[row][WIDE]`, of which the first are the outputs,
    /// the spread as a deviation.
    #[must_use]
    pub fn say(&self, rows: &[f32], features: &Features) -> Vec<Vec<f32>> {
        let inputs = self.inputs(rows, features);
        let parts = Parts { window: 0..0, own: 0..self.sizes.inputs, same: Vec::new() };
        let same_of = vec![0; inputs.places.len()];
        let targets = vec![TargetRows { own: inputs.values, same: Vec::new(), same_of }];
        let of = Windows { places: inputs.places, parts, window: Vec::new(), targets };
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
        rows.chunks_exact(width).for_each(|row| self.push_standard(&row[..own.start], 0, &mut window));
        fused::draw_in(&mut window);
        let target = |number: usize| {
            let start = own.start + number * own.len();
            self.target_rows(rows, width, start..start + own.len(), own.start)
        };
        let calendar = own.end - CALENDAR;
        let same = std::iter::once(own.start).chain(calendar..self.sizes.inputs);
        let of = Windows {
            places: rows.chunks_exact(width).map(place).collect(),
            parts: Parts { window: 0..own.start, own: own.start + 1..calendar, same: same.collect() },
            window,
            targets: (0..heads.len()).map(target).collect(),
        };
        self.mean_of(&of, &heads)
    }

    /// The mean of all networks; `heads` are those that each target is answered by.
    fn mean_of(&self, of: &Windows, heads: &[Vec<usize>]) -> Vec<Vec<f32>> {
        let share = 1.0 / self.members.len() as f32;
        let mut sums = vec![vec![0.0; of.places.len() * WIDE]; heads.iter().map(Vec::len).sum()];
        let tiles = Tiles::new();
        for member in &self.members {
            member.add_answers(tiles, of, heads, share, &mut sums);
        }
        sums
    }

    /// Appends amounts in deviations; `first` is the place of the first one among all amounts.
    fn push_standard(&self, amounts: &[f32], first: usize, to: &mut Vec<f32>) {
        let each = amounts.iter().zip(&self.standard[first..]);
        to.extend(each.map(|(value, [mean, deviation])| (value - mean) / deviation));
    }

    /// The inputs of one target of each row, whose features are in some columns.
    fn target_rows(&self, rows: &[f32], width: usize, columns: Range<usize>, first: usize) -> TargetRows {
        let calendar = columns.end - CALENDAR;
        let mut all = TargetRows::default();
        let mut last = None;
        for row in rows.chunks_exact(width) {
            self.push_standard(&row[columns.start + 1..calendar], first + 1, &mut all.own);
            let at = [row[columns.start], row[calendar], row[calendar + 1], row[calendar + 2]];
            if last != Some(at) {
                last = Some(at);
                let [step, hour, weekday, day_off] = at;
                let [mean, deviation] = self.standard[first];
                let mut step = [(step - mean) / deviation];
                fused::draw_in(&mut step);
                all.same.extend(step.into_iter().chain(waves(hour, weekday)).chain([day_off]));
            }
            all.same_of.push((all.same.len() / SAME_INPUTS - 1) as u32);
        }
        fused::draw_in(&mut all.own);
        all
    }
}

/// Weights of one head, each row as wide as a register.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// The bias and what each class of series adds to it, `[class][WIDE]`.
    begun: Vec<f32>,
    /// From hidden units, `[unit][WIDE]`.
    output: Vec<f32>,
    /// From inputs, `[input][WIDE]`.
    straight: Vec<f32>,
}

impl Head {
    /// The heads of a network.
    fn all(member: &Member) -> Vec<Self> {
        let parameter = |place: usize| &member.parameters()[place][..];
        let columns = parameter(place::OUTPUT_BIAS).len();
        let head = |head: usize| {
            let of = |place: usize| wide(parameter(place), columns, head);
            let (bias, mut begun) = (of(place::OUTPUT_BIAS), of(place::OUTPUT_SERIES));
            for row in begun.chunks_exact_mut(WIDE) {
                fused::add(row, &bias);
            }
            Self { begun, output: of(place::OUTPUT), straight: of(place::STRAIGHT) }
        };
        (0..columns / OUTPUTS).map(head).collect()
    }

    /// The weights of some inputs.
    fn straight(&self, inputs: &Range<usize>) -> &[f32] {
        &self.straight[inputs.start * WIDE..inputs.end * WIDE]
    }
}

impl Member {
    /// Adds a share of the outputs of each target and its heads, `[target and head]`, each `[row][WIDE]`.
    fn add_answers(&self, tiles: Tiles, of: &Windows, heads: &[Vec<usize>], share: f32, sums: &mut [Vec<f32>]) {
        let Parts { window, own, same } = &of.parts;
        let parameter = |place: usize| &self.parameters()[place][..];
        let first = |inputs: &Range<usize>| &parameter(place::FIRST)[inputs.start * HIDDEN[0]..inputs.end * HIDDEN[0]];
        let every = self.heads(Head::all);
        // 1. What windows say: to the first layer, and straight to the outputs of each head.
        let mut of_window = of_classes(parameter(place::FIRST_SERIES), HIDDEN[0], &of.places);
        fused::add_row(&mut of_window, parameter(place::FIRST_BIAS));
        tiles.add_products::<{ HIDDEN[0] }>(&of.window, window.len(), first(window), &mut of_window);
        let of_head = |head: &Head| {
            let mut sums = of_classes(&head.begun, WIDE, &of.places);
            tiles.add_products::<WIDE>(&of.window, window.len(), head.straight(window), &mut sums);
            sums
        };
        let known: Vec<Vec<f32>> = every.iter().map(of_head).collect();
        // 2. Targets: the hidden layers once, then each head.
        let outputs: Vec<[&[f32]; 2]> = every.iter().map(|head| [&head.output[..], head.straight(own)]).collect();
        let factors = Factors {
            first: first(own),
            second: parameter(place::SECOND),
            second_bias: parameter(place::SECOND_BIAS),
            outputs: &outputs,
            share,
        };
        let mut sums = sums;
        for (rows, heads) in of.targets.iter().zip(heads) {
            let with_same = |head: &usize| (*head, products::<WIDE>(&rows.same, same, &every[*head].straight));
            let target = Target {
                inputs: &rows.own,
                width: own.len(),
                same_of: &rows.same_of,
                same_first: &products::<{ HIDDEN[0] }>(&rows.same, same, parameter(place::FIRST)),
                heads: &heads.iter().map(with_same).collect::<Vec<_>>(),
            };
            let (answers, rest) = sums.split_at_mut(heads.len());
            tiles.add_answers(&factors, &target, &of_window, &known, answers);
            sums = rest;
        }
    }
}

/// The products of values of some inputs with their weights, `[place][WIDTH]`; zeros where there are no such inputs.
fn products<const WIDTH: usize>(values: &[f32], inputs: &[usize], weights: &[f32]) -> Vec<f32> {
    let mut all = vec![0.0; (values.len() / inputs.len().max(1)).max(1) * WIDTH];
    for (values, sums) in values.chunks_exact(inputs.len().max(1)).zip(all.chunks_exact_mut(WIDTH)) {
        for (value, input) in values.iter().zip(inputs) {
            let weights = &weights[input * WIDTH..][..WIDTH];
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
        }
    }
    all
}

/// The values of the class of each row, `[row][width]`.
fn of_classes(of_series: &[f32], width: usize, places: &[u32]) -> Vec<f32> {
    let mut rows = Vec::with_capacity(places.len() * width);
    for place in places {
        rows.extend_from_slice(&of_series[*place as usize * width..][..width]);
    }
    rows
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
    use crate::network::{Sizes, fused, loss};
    use crate::rows::SPREAD;
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
            let mut values: Vec<f32> = (0..rows * 30).map(|_| rng.random_range(-2.0..2.0)).collect();
            for row in 3..rows {
                for input in [18, 28, 29] {
                    values[row * 30 + input] = values[2 * 30 + input];
                }
            }
            let places: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
            let exact = member.forward(&fused::matrix(values.clone(), 30).unwrap(), &places).unwrap();
            let parts = |columns: Range<usize>| -> Vec<f32> {
                values.chunks_exact(30).flat_map(|row| row[columns.clone()].to_vec()).collect()
            };
            let parts_of = |inputs: &[usize]| -> Vec<f32> {
                values.chunks_exact(30).flat_map(|row| inputs.iter().map(|input| row[*input])).collect()
            };
            // Of rows 4 to 9 the first and the last two inputs of the target are those of the third row.
            let same_of: Vec<u32> = (0..rows as u32).map(|row| row.min(2)).collect();
            let targets = vec![TargetRows { own: parts(19..28), same: parts_of(&[18, 28, 29]), same_of }];
            let inputs = Parts { window: 0..18, own: 19..28, same: vec![18, 28, 29] };
            let of = Windows { places, parts: inputs, window: parts(0..18), targets };
            let mut sums = vec![vec![0.0; rows * WIDE]; 2];
            member.add_answers(Tiles::new(), &of, &[vec![0, 1]], 1.0, &mut sums);
            for tiles in Tiles::all() {
                let mut others = vec![vec![0.0; rows * WIDE]; 2];
                member.add_answers(tiles, &of, &[vec![0, 1]], 1.0, &mut others);
                assert_eq!(others, sums, "any registers give the same bits");
            }
            for (row, exact) in exact.chunks_exact(2 * OUTPUTS).enumerate() {
                for (place, exact) in exact.iter().enumerate() {
                    let exact = if place % OUTPUTS == SPREAD { loss::spread(*exact) as f32 } else { *exact };
                    let found = sums[place / OUTPUTS][row * WIDE + place % OUTPUTS];
                    assert!((found - exact).abs() < 1e-4, "row {row}, output {place}: {found} is not {exact}");
                }
            }
        }
    }
}
