//! Help texts of metrics, for `/metrics`. Names have units, and counters end in `_total`.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Name of a metric, and its help.
pub type Text = (&'static str, &'static str);

/// Help texts of one program.
#[derive(Debug, Clone, Copy)]
pub struct Help {
    /// Of gauges.
    pub gauges: &'static [Text],
    /// Of counters.
    pub counters: &'static [Text],
    /// Of histograms of seconds.
    pub histograms: &'static [Text],
}

/// Gauges of every program: ends of their names.
const GAUGES: [Text; 3] = [
    ("_build_info", "1, with the version of the program"),
    ("_headroom_up", "1 if Headroom answered the last request for quotas, else 0"),
    ("_untold", "Reports that Headroom has not accepted yet"),
];
/// Counters of every program: ends of their names.
const COUNTERS: [Text; 1] = [("_lost_total", "Reports that were dropped")];

impl Help {
    /// Registers these texts, and those of the metrics that every `program` has.
    pub fn register(&self, program: &str) {
        for (end, help) in GAUGES {
            describe_gauge!(format!("{program}{end}"), help);
        }
        for (end, help) in COUNTERS {
            describe_counter!(format!("{program}{end}"), help);
        }
        for (name, help) in self.gauges {
            describe_gauge!(*name, *help);
        }
        for (name, help) in self.counters {
            describe_counter!(*name, *help);
        }
        for (name, help) in self.histograms {
            describe_histogram!(*name, Unit::Seconds, *help);
        }
    }
}
