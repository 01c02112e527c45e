//! Differences between the variants of OrgLinear.

/// How the moving average sees past the ends of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Mirrored without repeating the edge, as GFS Eq. 1 says.
    Reflection,
    /// The edge value repeated, as the DLinear family and the released code do.
    Edge,
}

/// Where attention over the attributes is scaled by 1/√d.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionScaling {
    /// The scores, as attention is defined (Vaswani et al. 2017).
    BeforeSoftmax,
    /// The weights, which then no longer sum to one: the released code.
    AfterSoftmax,
}

/// Which hours the calendar context encodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarInput {
    /// Hour, weekday and day off of every target hour (DESIGN §4.4).
    EachTarget,
    /// Of the first target hour only, as GFS Eq. 3 and the released code have it.
    FirstTarget,
}

/// The scale of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputScaling {
    /// Each series by its mean and standard deviation over the training part, the deviation at least one GPU.
    SeriesDeviation,
    /// GPUs as they are.
    None,
}

/// Whether a target of zero GPUs counts in the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroTargets {
    /// Zeros are targets as all others.
    Kept,
    /// Left out, as the released code does: it takes zero for missing.
    Masked,
}

/// The score of the validation part that chooses the epoch whose weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochChoice {
    /// The loss itself, as the released code does. Near-constant series rule it: their likelihood has no maximum.
    Likelihood,
    /// The continuous ranked probability score, in the model's scale.
    Crps,
}

/// A variant of OrgLinear and how it is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// d of the moving average (Eq. 1), odd.
    pub moving_average_hours: usize,
    /// Padding of the moving average.
    pub padding: Padding,
    /// Scaling of the attention.
    pub attention_scaling: AttentionScaling,
    /// Timestamps that the model sees.
    pub calendar_input: CalendarInput,
    /// Scaling of the window.
    pub input_scaling: InputScaling,
    /// Whether zeros are targets.
    pub zero_targets: ZeroTargets,
    /// Of each embedded attribute.
    pub embedding_width: usize,
    /// Of queries and keys.
    pub attention_width: usize,
    /// Largest number of epochs.
    pub epochs: usize,
    /// Epochs without a better validation part after which training stops.
    pub patience_epochs: usize,
    /// How the epoch is chosen.
    pub epoch_choice: EpochChoice,
    /// Most issue times in a batch; each brings all its series.
    pub batch_issues: usize,
    /// Short histories are cut into smaller batches until an epoch has so many.
    pub epoch_batches: usize,
    /// Of Adam, at the start.
    pub learning_rate: f64,
    /// The learning rate halves every so many epochs.
    pub halving_epochs: usize,
}

impl Config {
    /// The paper with the corrections of DESIGN §4. The paper states no hyperparameters; widths and batch are those of
    /// the released code, the rest of the training was chosen on the validation part of the public traces
    /// (ARCHITECTURE.md).
    pub const PAPER: Self = Self {
        moving_average_hours: 25,
        padding: Padding::Reflection,
        attention_scaling: AttentionScaling::BeforeSoftmax,
        calendar_input: CalendarInput::EachTarget,
        input_scaling: InputScaling::SeriesDeviation,
        zero_targets: ZeroTargets::Kept,
        embedding_width: 8,
        attention_width: 16,
        epochs: 60,
        patience_epochs: 10,
        epoch_choice: EpochChoice::Crps,
        batch_issues: 32,
        epoch_batches: 60,
        learning_rate: 1e-3,
        halving_epochs: 10,
    };

    /// The defaults of the code that the authors of GFS released: inputs in GPUs, a learning rate of 4e-5 halved every
    /// three epochs, ten epochs, patience three.
    pub const RELEASED: Self = Self {
        moving_average_hours: 25,
        padding: Padding::Edge,
        attention_scaling: AttentionScaling::AfterSoftmax,
        calendar_input: CalendarInput::FirstTarget,
        input_scaling: InputScaling::None,
        zero_targets: ZeroTargets::Masked,
        embedding_width: 8,
        attention_width: 16,
        epochs: 10,
        patience_epochs: 3,
        epoch_choice: EpochChoice::Likelihood,
        batch_issues: 32,
        epoch_batches: 1,
        learning_rate: 4e-5,
        halving_epochs: 3,
    };
}

const _: () = assert!(
    Config::PAPER.moving_average_hours % 2 == 1 && Config::RELEASED.moving_average_hours % 2 == 1,
    "a centred average needs an odd length"
);
