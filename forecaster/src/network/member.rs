//! One network: two hidden layers over the inputs of a row, and a straight way past them.

use super::answers::Head;
use super::fused;
use crate::orglinear::normal;
use crate::rows::OUTPUTS;
use candle_core::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use std::sync::OnceLock;

/// Units of the hidden layers.
pub const HIDDEN: [usize; 2] = [64, 32];

/// Sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Features of a row.
    pub inputs: usize,
    /// Number of series.
    pub series: usize,
    /// Classes of series with weights of their own: one for each series, or, of more than [`Sizes::CLASSES_MOST`], so many of
    /// neighbours by size.
    pub classes: usize,
    /// Steps of a forecast.
    pub steps: usize,
}

/// The initial values of parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Begin {
    Zero,
    /// Normal, with a variance of one over so many.
    Normal(usize),
}

impl Sizes {
    /// Weights of more series than this would be visited too seldom to learn anything, and each step costs all of them.
    pub const CLASSES_MOST: usize = 512;

    /// The class of a series by its place.
    #[must_use]
    pub const fn class_of(self, place: usize) -> usize {
        if self.classes == self.series { place } else { place * self.classes / self.series }
    }

    /// Inputs that are amounts, with a mean and a deviation.
    #[must_use]
    pub const fn amounts(self) -> usize {
        self.inputs - super::CALENDAR_INPUTS
    }

    /// The outputs of a network for a row.
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
            ("first_series", [self.classes, first], Begin::Zero),
            ("second", [first, second], Begin::Normal(first)),
            ("second_bias", [1, second], Begin::Zero),
            ("output", [second, self.outputs()], Begin::Zero),
            ("output_bias", [1, self.outputs()], Begin::Zero),
            ("output_series", [self.classes, self.outputs()], Begin::Zero),
            ("straight", [self.inputs, self.outputs()], Begin::Zero),
        ]
    }

    /// Names and shapes, as a checkpoint holds them.
    pub fn shapes(self) -> impl Iterator<Item = (&'static str, [usize; 2])> {
        self.parameters().into_iter().map(|(name, shape, _)| (name, shape))
    }
}

/// Places of the parameters among [`Sizes::shapes`].
pub mod place {
    /// Weights of the first layer.
    pub const FIRST: usize = 0;
    /// Biases of the first layer.
    pub const FIRST_BIAS: usize = 1;
    /// Weights of the series in the first layer.
    pub const FIRST_SERIES: usize = 2;
    /// Weights of the second layer.
    pub const SECOND: usize = 3;
    /// Biases of the second layer.
    pub const SECOND_BIAS: usize = 4;
    /// Weights of the output.
    pub const OUTPUT: usize = 5;
    /// Biases of the output.
    pub const OUTPUT_BIAS: usize = 6;
    /// Weights of the series in the output.
    pub const OUTPUT_SERIES: usize = 7;
    /// Weights from the features straight to the output.
    pub const STRAIGHT: usize = 8;
    /// Those that others are multiplied by.
    pub const FACTORS: [usize; 4] = [FIRST, SECOND, OUTPUT, STRAIGHT];
}

/// A network. Products of matrices are candle's; what lies between them is one pass over memory each ([`fused`]).
#[derive(Debug, Clone)]
pub struct Member {
    /// In the order of [`Sizes::shapes`], row after row.
    parameters: Vec<Vec<f32>>,
    /// The parameters of [`place::FACTORS`] once more, ready to be multiplied by.
    factors: [Tensor; 4],
    /// The heads as they answer, once they have.
    heads: OnceLock<Vec<Head>>,
}

impl Member {
    /// A network of parameters in the order of [`Sizes::shapes`], row after row.
    ///
    /// # Errors
    /// There are more or fewer of them than their shapes say.
    pub fn new(sizes: Sizes, parameters: Vec<Vec<f32>>) -> Result<Self, candle_core::Error> {
        let shapes: Vec<[usize; 2]> = sizes.shapes().map(|(_, shape)| shape).collect();
        if parameters.len() != shapes.len()
            || parameters.iter().zip(&shapes).any(|(values, [rows, columns])| values.len() != rows * columns)
        {
            candle_core::bail!("parameters of a network do not have the shapes {shapes:?}")
        }
        let factor = |place: usize| Tensor::from_slice(&parameters[place], &shapes[place], &Device::Cpu);
        let [first, second, output, straight] = place::FACTORS.map(factor);
        Ok(Self { factors: [first?, second?, output?, straight?], parameters, heads: OnceLock::new() })
    }

    /// Draws the parameters that a network begins to learn with.
    #[must_use]
    pub fn draw(sizes: Sizes, rng: &mut ChaCha8Rng) -> Vec<Vec<f32>> {
        let values = |(_, shape, begin): (&str, [usize; 2], Begin)| {
            let count = shape[0] * shape[1];
            match begin {
                Begin::Zero => vec![0.0; count],
                Begin::Normal(inputs) => (0..count).map(|_| normal(rng) as f32 / (inputs as f32).sqrt()).collect(),
            }
        };
        sizes.parameters().into_iter().map(values).collect()
    }

    /// All parameters, by the positions above.
    #[must_use]
    pub fn parameters(&self) -> &[Vec<f32>] {
        &self.parameters
    }

    /// The heads, made of the parameters when they answer for the first time.
    pub(super) fn heads(&self, of: impl FnOnce(&Self) -> Vec<Head>) -> &[Head] {
        self.heads.get_or_init(|| of(self))
    }

    /// The factor at a place of [`place::FACTORS`].
    #[must_use]
    pub const fn factor(&self, place: usize) -> &Tensor {
        &self.factors[place]
    }

    /// `[rows, steps × outputs]` of inputs `[rows, inputs]` and the place of each row's series.
    ///
    /// # Errors
    /// Shapes do not fit, or a place is that of no series.
    pub fn forward(&self, inputs: &Tensor, places: &[u32]) -> Result<Vec<f32>, candle_core::Error> {
        let mut first = self.first_sums(inputs, places)?;
        fused::silu(&mut first);
        let mut second = self.second_sums(&fused::matrix(first, HIDDEN[0])?)?;
        fused::silu(&mut second);
        self.outputs(&fused::matrix(second, HIDDEN[1])?, inputs, places)
    }

    /// The sums of the first hidden layer, `[rows, units]`.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn first_sums(&self, inputs: &Tensor, places: &[u32]) -> Result<Vec<f32>, candle_core::Error> {
        let (bias, of_series) = (&self.parameters[place::FIRST_BIAS], &self.parameters[place::FIRST_SERIES]);
        let mut sums = fused::product(inputs, &self.factors[0])?;
        fused::add_series(&mut sums, bias, of_series, places)?;
        Ok(sums)
    }

    /// The sums of the second one.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn second_sums(&self, first: &Tensor) -> Result<Vec<f32>, candle_core::Error> {
        let mut sums = fused::product(first, &self.factors[1])?;
        fused::add_row(&mut sums, &self.parameters[place::SECOND_BIAS]);
        Ok(sums)
    }

    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn outputs(&self, second: &Tensor, inputs: &Tensor, places: &[u32]) -> Result<Vec<f32>, candle_core::Error> {
        let (bias, of_series) = (&self.parameters[place::OUTPUT_BIAS], &self.parameters[place::OUTPUT_SERIES]);
        let mut sums = fused::product(second, &self.factors[2])?;
        fused::add(&mut sums, &fused::product(inputs, &self.factors[3])?);
        fused::add_series(&mut sums, bias, of_series, places)?;
        Ok(sums)
    }
}
