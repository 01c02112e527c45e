//! The tools that are offered.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use vocab::{HorizonHours, MilliGpus};
use wire::bounds::{DECIMALS, WHOLE_NUMBERS};

/// A tool: its name, title and description, its parameters, and whether it writes.
struct Offered {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Name, JSON type, description, whether it has to be given.
    parameters: &'static [(&'static str, &'static str, &'static str, bool)],
    writes: bool,
}

const HOURS: (&str, &str, &str, bool) = ("hours", "integer", "Guarantee hours, such as 1, 2 or 4", false);

const OFFERED: [Offered; 12] = [
    Offered {
        name: "pools",
        title: "Pools",
        description: "All pools with their quotas, capacity, stage and tasks",
        parameters: &[],
        writes: false,
    },
    Offered {
        name: "quota",
        title: "Spot quota",
        description: "How many GPUs spot tasks with a guarantee of at least so many hours may hold, how many of them are free, and why",
        parameters: &[HOURS],
        writes: false,
    },
    Offered {
        name: "why",
        title: "Why",
        description: "With a task: why it waits, or why it was placed or evicted. Without: every step of the quota",
        parameters: &[("task", "string", "Id of a task", false), HOURS],
        writes: false,
    },
    Offered {
        name: "when",
        title: "When",
        description: "With a task: when it starts, as a distribution, and why that may be off. Without: what each class and guarantee costs \
                      in waiting for a task that is not submitted, and which of them ends in time. Nothing changes",
        parameters: &[
            ("task", "string", "Id of a task that waits or runs; no other argument then", false),
            ("organization", "string", "The organization of a task that is not submitted", false),
            ("gpus_per_pod", "number", "Whole GPUs, or a share of one such as 0.25; 1 if not given", false),
            ("pods", "integer", "Number of pods, placed all or none; 1 if not given", false),
            ("runs_s", "integer", "How long it runs, in seconds: the answer has its end", false),
            ("ends_by", "string", "When it is to have ended, RFC 3339; needs runs_s", false),
            ("probability", "number", "Probability of an end in time, 0.9 if not given", false),
        ],
        writes: false,
    },
    Offered {
        name: "what_if",
        title: "What if",
        description: "The quota under another capacity, demand, guarantee rate or eta, beside the present one. Nothing changes",
        parameters: &[
            HOURS,
            ("capacity_change_gpus", "number", "GPUs added to the capacity; negative ones are taken away", false),
            ("demand_change_gpus", "number", "GPUs added to high-priority demand", false),
            ("guarantee_rate", "number", "Probability that a promise is kept, between 0 and 1", false),
            ("eta", "number", "Safety coefficient", false),
        ],
        writes: false,
    },
    Offered {
        name: "promises",
        title: "Promises",
        description: "Promises sold, kept and broken, by day and guarantee hours, with the evidence that they hold",
        parameters: &[("days", "integer", "Days up to the present one, 28 if not given", false)],
        writes: false,
    },
    Offered {
        name: "statement",
        title: "Statement",
        description: "Where the GPU time of a month went, by pool and organization, in GPU-hours, and what it costs; who preempts whom",
        parameters: &[
            ("month", "string", "YYYY-MM of UTC; the present one if not given", false),
            ("organization", "string", "Only this organization", false),
        ],
        writes: false,
    },
    Offered {
        name: "reservations",
        title: "Reservations",
        description: "GPUs that are reserved ahead for an organization, each with its next windows and the probability that high-priority \
                      demand leaves them. With an id: this one alone",
        parameters: &[
            ("id", "integer", "Number of a reservation; no other argument then", false),
            ("past", "boolean", "Also those that are over or withdrawn", false),
        ],
        writes: false,
    },
    Offered {
        name: "submit",
        title: "Submit a task",
        description: "Submits a task: it starts at once, or waits with its reason. The same id again is answered as it stands",
        parameters: &[
            ("id", "string", "Id of the task, never used before", true),
            ("organization", "string", "The organization that pays", true),
            ("class", "string", "spot, or hp for high priority; spot if not given", false),
            ("gpus_per_pod", "number", "Whole GPUs, or a share of one such as 0.25; 1 if not given", false),
            ("pods", "integer", "Number of pods, placed all or none; 1 if not given", false),
            (
                "guarantee_hours",
                "integer",
                "Hours for which a spot task is promised its GPUs; at will without them",
                false,
            ),
        ],
        writes: true,
    },
    Offered {
        name: "cancel",
        title: "Cancel a task",
        description: "Takes a task back, waiting or running",
        parameters: &[("task", "string", "Id of the task", true)],
        writes: true,
    },
    Offered {
        name: "reserve",
        title: "Reserve GPUs",
        description: "Reserves GPUs of a pool for an organization in a window ahead, once or each week; the answer has the probability of \
                      each window. The same reservation again is answered as it is stored",
        parameters: &[
            ("organization", "string", "The organization that gets the GPUs", true),
            ("gpus", "number", "GPUs of each window", true),
            ("from", "string", "Begin of the first window, RFC 3339", true),
            ("to", "string", "End of the first window, RFC 3339", true),
            (
                "days",
                "array",
                "Days of the week on which a window begins, such as MO and TH, that of `from` among them, at the local time of the \
                 cluster; one window alone without them",
                false,
            ),
            ("until", "string", "No window begins at this time or later, RFC 3339; needs days", false),
            ("dry_run", "boolean", "Only answer the windows with their probability: nothing is stored", false),
        ],
        writes: true,
    },
    Offered {
        name: "withdraw",
        title: "Withdraw a reservation",
        description: "Withdraws a reservation: its next windows end. A second withdrawal changes nothing",
        parameters: &[("id", "integer", "Number of the reservation", true)],
        writes: true,
    },
];

/// Tools that are about no pool, or about all of them.
const OF_NO_POOL: [&str; 2] = ["pools", "withdraw"];

/// Tools that end something.
const DESTRUCTIVE: [&str; 2] = ["cancel", "withdraw"];

/// Tools that are about one pool name it by these.
const POOL: [(&str, &str, &str, bool); 2] =
    [("cluster", "string", "Cluster of the pool", false), ("gpu_model", "string", "GPU model of the pool", false)];

/// Bodies of the service in which arguments go by their own name.
const BODIES: [&str; 4] = ["TaskBody", "PriceQuestion", "ReservationRequest", "SettingsBody"];

/// The largest amount of GPUs.
const MOST_GPUS: f64 = MilliGpus::MOST_STATED_GPUS as f64;

/// The least and the largest of the other numbers, as the routes of the service have them.
const RANGES: [(&str, f64, f64); 6] = [
    ("hours", 1.0, HorizonHours::MAX as f64),
    ("days", 1.0, 400.0),
    ("probability", 0.000_001, 0.999_999),
    ("eta", 0.000_001, 1_000.0),
    ("capacity_change_gpus", -MOST_GPUS, MOST_GPUS),
    ("demand_change_gpus", -MOST_GPUS, MOST_GPUS),
];

/// The least and the largest of a number, where it has them.
fn range(name: &str) -> Option<(f64, f64)> {
    let is_it = |body: &str, field: &str| field == name && BODIES.contains(&body);
    let whole = WHOLE_NUMBERS.iter().find(|(body, field, ..)| is_it(body, field));
    let decimal = || DECIMALS.iter().find(|(body, field, ..)| is_it(body, field));
    let other = || RANGES.iter().find(|(argument, ..)| *argument == name);
    whole
        .map(|(_, _, least, most)| (*least as f64, *most as f64))
        .or_else(|| decimal().map(|(_, _, least, most)| (*least, *most)))
        .or_else(|| other().map(|(_, least, most)| (*least, *most)))
}

fn schema(tool: &Offered) -> JsonObject {
    let of_pool = if OF_NO_POOL.contains(&tool.name) { &[][..] } else { &POOL };
    let all = tool.parameters.iter().chain(of_pool);
    let property = |(name, kind, description, _): &(&str, &str, &str, bool)| {
        let mut property = json!({ "type": kind, "description": description });
        if *kind == "array" {
            property["items"] = json!({ "type": "string" });
        }
        if let Some((least, most)) = range(name).filter(|_| ["integer", "number"].contains(kind)) {
            let number = |of: f64| if *kind == "integer" { json!(of as i64) } else { json!(of) };
            (property["minimum"], property["maximum"]) = (number(least), number(most));
        }
        ((*name).to_owned(), property)
    };
    let properties: JsonObject = all.clone().map(property).collect();
    let required: Vec<&str> = all.filter(|(.., required)| *required).map(|(name, ..)| *name).collect();
    let schema =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    }
}

/// The tools; those that write only where that is allowed.
pub fn offered(writes: bool) -> Vec<Tool> {
    let tool = |tool: &Offered| {
        let hints = ToolAnnotations::with_title(tool.title).read_only(!tool.writes).idempotent(true);
        let hints = hints.destructive(DESTRUCTIVE.contains(&tool.name)).open_world(false);
        Tool::new(tool.name, tool.description, schema(tool)).with_title(tool.title).with_annotations(hints)
    };
    OFFERED.iter().filter(|tool| writes || !tool.writes).map(tool).collect()
}

/// Why there is no tool of a name.
pub fn unknown(name: &str, writes: bool) -> String {
    if OFFERED.iter().any(|tool| tool.name == name) {
        return format!("{name} writes, and this server reads: start it with --allow-writes");
    }
    let names: Vec<&str> = OFFERED.iter().filter(|tool| writes || !tool.writes).map(|tool| tool.name).collect();
    format!("unknown tool {name:?}: expected one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::CommandFactory;

    #[test]
    fn numbers_have_the_ranges_of_the_service() {
        let of = |tool: &str, argument: &str| {
            let tools = offered(true);
            let tool = tools.iter().find(|one| one.name == tool).unwrap();
            let property = &tool.input_schema["properties"][argument];
            (property["minimum"].clone(), property["maximum"].clone())
        };
        assert_eq!(of("submit", "guarantee_hours"), (json!(1), json!(168)));
        assert_eq!(of("submit", "pods"), (json!(1), json!(16_384)));
        assert_eq!(of("what_if", "capacity_change_gpus"), (json!(-1e7), json!(1e7)));
        assert_eq!(of("promises", "days"), (json!(1), json!(400)));
        assert_eq!(of("reserve", "days"), (Value::Null, Value::Null), "names of days");
        let numbers = OFFERED.iter().flat_map(|tool| tool.parameters);
        let numbers = numbers.filter(|(name, kind, ..)| ["integer", "number"].contains(kind) && *name != "id");
        for (name, ..) in numbers {
            assert!(range(name).is_some(), "{name} has no range");
        }
    }

    #[test]
    fn tools_that_write_are_offered_only_where_that_is_allowed() {
        let names = |writes| offered(writes).iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(false), ["pools", "quota", "why", "when", "what_if", "promises", "statement", "reservations"]);
        assert_eq!(names(true).len(), OFFERED.len());
        let help = Arguments::command().find_subcommand_mut("mcp").unwrap().render_long_help().to_string();
        let words: Vec<&str> = help.split(|one: char| !(one.is_alphanumeric() || one == '_')).collect();
        assert!(names(true).iter().all(|name| words.contains(&name.as_str())), "the help names every tool: {help}");
        assert!(unknown("submit", false).ends_with("start it with --allow-writes"));
        assert!(unknown("quotas", false).starts_with("unknown tool \"quotas\": expected one of pools, quota"));
        for tool in offered(true) {
            let reads = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
            let writes = ["submit", "cancel", "reserve", "withdraw"].contains(&tool.name.as_ref());
            assert_eq!(reads, Some(!writes), "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        }
    }
}
