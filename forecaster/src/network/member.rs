//! One network: two hidden layers over the inputs of a row, and a straight way past them.

use crate::orglinear::normal;
use crate::rows::OUTPUTS;
use candle_core::{Device, Tensor, Var};
use rand_chacha::ChaCha8Rng;

/// Units of the hidden layers.
pub const HIDDEN: [usize; 2] = [64, 32];

/// Sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub inputs: usize,
    pub series: usize,
    pub steps: usize,
}

/// What parameters begin as.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Begin {
    Zero,
    /// Normal, with a variance of one over so many.
    Normal(usize),
}

impl Sizes {
    /// Inputs that are amounts, with a mean and a deviation.
    #[must_use]
    pub const fn amounts(self) -> usize {
        self.inputs - super::CALENDAR_INPUTS
    }

    /// What a network says of a row.
    #[must_use]
    pub const fn outputs(self) -> usize {
        self.steps * OUTPUTS
    }

    /// Name and shape of each parameter, in a fixed order. Outputs begin at zero, so that a network that has learned
    /// nothing says "the last value stays".
    const fn parameters(self) -> [(&'static str, [usize; 2], Begin); 9] {
        let [first, second] = HIDDEN;
        [
            ("first", [self.inputs, first], Begin::Normal(self.inputs)),
            ("first_bias", [1, first], Begin::Zero),
            ("first_series", [self.series, first], Begin::Zero),
            ("second", [first, second], Begin::Normal(first)),
            ("second_bias", [1, second], Begin::Zero),
            ("output", [second, self.outputs()], Begin::Zero),
            ("output_bias", [1, self.outputs()], Begin::Zero),
            ("output_series", [self.series, self.outputs()], Begin::Zero),
            ("straight", [self.inputs, self.outputs()], Begin::Zero),
        ]
    }

    /// Names and shapes, as a checkpoint holds them.
    pub fn shapes(self) -> impl Iterator<Item = (&'static str, [usize; 2])> {
        self.parameters().into_iter().map(|(name, shape, _)| (name, shape))
    }
}

/// Parameters in the order of [`Sizes::shapes`].
#[derive(Debug, Clone)]
pub struct Member(pub Vec<Tensor>);

impl Member {
    /// Draws parameters as variables that training moves.
    ///
    /// # Errors
    /// The arithmetic fails.
    pub fn draw(sizes: Sizes, rng: &mut ChaCha8Rng) -> Result<Vec<Var>, candle_core::Error> {
        let var = |(_, shape, begin): (&str, [usize; 2], Begin)| {
            let count = shape[0] * shape[1];
            let values: Vec<f32> = match begin {
                Begin::Zero => vec![0.0; count],
                Begin::Normal(inputs) => (0..count).map(|_| normal(rng) as f32 / (inputs as f32).sqrt()).collect(),
            };
            Var::from_vec(values, &shape, &Device::Cpu)
        };
        sizes.parameters().into_iter().map(var).collect()
    }

    /// `[rows, steps × outputs]` of inputs `[rows, inputs]` and places of series `[rows]`. `drop` has, for each hidden
    /// layer, what its units are multiplied by while training.
    ///
    /// # Errors
    /// Shapes do not fit, or a place is that of no series.
    pub fn forward(
        &self,
        inputs: &Tensor,
        places: &Tensor,
        drop: Option<&[Tensor; 2]>,
    ) -> Result<Tensor, candle_core::Error> {
        let [first, first_bias, first_series, second, second_bias, output, output_bias, output_series, straight] =
            &self.0[..]
        else {
            candle_core::bail!("a network has nine parameters, not {}", self.0.len())
        };
        let of_series = first_series.index_select(places, 0)?;
        let mut hidden = (inputs.matmul(first)?.broadcast_add(first_bias)? + of_series)?.silu()?;
        if let Some([mask, _]) = drop {
            hidden = (hidden * mask)?;
        }
        hidden = hidden.matmul(second)?.broadcast_add(second_bias)?.silu()?;
        if let Some([_, mask]) = drop {
            hidden = (hidden * mask)?;
        }
        let outputs = hidden.matmul(output)?.broadcast_add(output_bias)?;
        (outputs + inputs.matmul(straight)?)? + output_series.index_select(places, 0)?
    }
}
