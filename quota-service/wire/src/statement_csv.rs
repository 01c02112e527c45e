//! Statements as rows of CSV.

use crate::statement::{
    ChargesBody, GpuHoursBody, PoolGpuHoursBody, PromiseCountsBody, StatementAnswer, StatementLine, StatementPool,
};
use vocab::IDLE;

/// Forms of a statement as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementTable {
    /// One row for each organization, and one named `__idle__` for what no organization held. It is for spreadsheets: a
    /// name that would be a formula there, or begins with an apostrophe, stands behind an apostrophe. Without the first apostrophe of
    /// a cell each name is the stored one.
    Statement,
    /// The columns of OpenCost's export of allocations: one row for each day, organization and use. It is for programs:
    /// names are as they are stored.
    OpenCost,
}

const STATEMENT: [&str; 32] = [
    "day",
    "cluster",
    "gpu_model",
    "organization",
    "hp_gpu_hours",
    "guaranteed_gpu_hours",
    "at_will_gpu_hours",
    "handover_gpu_hours",
    "sold_gpu_hours",
    "kept_gpu_hours",
    "broken_gpu_hours",
    "voided_gpu_hours",
    "owed_gpu_hours",
    "lost_to_evictions_gpu_hours",
    "lost_to_nodes_gpu_hours",
    "promises_kept",
    "promises_broken",
    "promises_voided",
    "evictions",
    "capacity_gpu_hours",
    "idle_offered_gpu_hours",
    "idle_reserved_gpu_hours",
    "drained_gpu_hours",
    "over_reserved_gpu_hours",
    "hp_charge",
    "guaranteed_charge",
    "at_will_charge",
    "credit",
    "total_charge",
    "owned_cost",
    "idle_cost",
    "currency",
];

/// The header of OpenCost's CSV export; the last two are ours.
const OPENCOST: [&str; 24] = [
    "Date",
    "Namespace",
    "Cluster",
    "ControllerKind",
    "ControllerName",
    "Pod",
    "Container",
    "CPUCoreUsageAverage",
    "CPUCoreRequestAverage",
    "RAMBytesUsageAverage",
    "RAMBytesRequestAverage",
    "NetworkReceiveBytes",
    "NetworkTransferBytes",
    "GPUs",
    "PVBytes",
    "CPUCost",
    "RAMCost",
    "NetworkCost",
    "PVCost",
    "GPUCost",
    "TotalCost",
    "LoadBalancerCost",
    "GPUHours",
    "Currency",
];

/// A cell as RFC 4180 has it.
fn cell(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Letters that make a formula of a cell in a spreadsheet, the wide ones where its language is Japanese or Chinese.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A name that a spreadsheet takes for text: behind an apostrophe where it would be a formula, or begins with an apostrophe, so that
/// no two names are alike.
fn name(text: &str) -> String {
    if text.starts_with(FORMULA) || text.starts_with('\'') { format!("'{text}") } else { text.to_owned() }
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|text| cell(&text)).collect();
    format!("{}\r\n", cells.join(","))
}

impl StatementAnswer {
    /// The statement as CSV.
    #[must_use]
    pub fn to_csv(&self, table: StatementTable) -> String {
        let (header, rows): (&[&str], Vec<Vec<String>>) = match table {
            StatementTable::Statement => (&STATEMENT, self.statement_rows()),
            StatementTable::OpenCost => (&OPENCOST, self.opencost_rows()),
        };
        let header = row(header.iter().map(|name| (*name).to_owned()));
        std::iter::once(header).chain(rows.into_iter().map(row)).collect()
    }

    fn statement_rows(&self) -> Vec<Vec<String>> {
        let currency = name(self.currency.as_deref().unwrap_or_default());
        let organizations = self.organizations.iter().map(|line| {
            let StatementLine { day, cluster, gpu_model, organization, .. } = line;
            let names = [day.as_deref().unwrap_or_default(), cluster, gpu_model, organization].map(name);
            let pool = [const { String::new() }; 5];
            let costs = [String::new(), String::new(), currency.clone()];
            [&names[..], &held(line), &pool, &charged(line.charges.as_ref()), &costs].concat()
        });
        let pools = self.pools.iter().map(|pool| {
            let names = [pool.day.as_deref().unwrap_or_default(), &pool.cluster, &pool.gpu_model, IDLE].map(name);
            let held = [const { String::new() }; 15];
            let PoolGpuHoursBody { capacity, idle_offered, idle_reserved, drained, over_reserved } =
                pool.pool_gpu_hours;
            let idle = [capacity, idle_offered, idle_reserved, drained, over_reserved];
            let cost = |of: fn(&crate::CostsBody) -> f64| pool.costs.as_ref().map(|costs| of(costs).to_string());
            let costs = [cost(|costs| costs.owned).unwrap_or_default(), cost(|costs| costs.idle).unwrap_or_default()];
            let charges = [const { String::new() }; 5];
            [&names[..], &held, &idle.map(|hours| hours.to_string()), &charges, &costs, std::slice::from_ref(&currency)]
                .concat()
        });
        organizations.chain(pools).collect()
    }

    fn opencost_rows(&self) -> Vec<Vec<String>> {
        let currency = self.currency.as_deref().unwrap_or_default();
        let organizations = self.organizations.iter().flat_map(|line| {
            let charges = line.charges.as_ref();
            let uses = [
                ("hp", line.gpu_hours.hp, charges.map(|charges| charges.hp)),
                (
                    "spot-guaranteed",
                    line.gpu_hours.guaranteed,
                    charges.map(|charges| to_micros(charges.guaranteed - charges.credit)),
                ),
                ("spot-at-will", line.gpu_hours.at_will, charges.map(|charges| charges.at_will)),
                ("handover", line.gpu_hours.handover, None),
            ];
            let names = [line.day.as_deref().unwrap_or(&self.from), &line.organization, &line.cluster, &line.gpu_model];
            uses.into_iter()
                .filter(|(_, gpu_hours, cost)| *gpu_hours != 0.0 || cost.is_some_and(|cost| cost != 0.0))
                .map(move |used| opencost_row(names, used, currency))
                .collect::<Vec<_>>()
        });
        let pools = self.pools.iter().map(|pool| {
            let StatementPool { day, cluster, gpu_model, costs, .. } = pool;
            let PoolGpuHoursBody { idle_offered, idle_reserved, drained, .. } = pool.pool_gpu_hours;
            let idle = idle_offered + idle_reserved + drained;
            let names = [day.as_deref().unwrap_or(&self.from), IDLE, cluster, gpu_model];
            opencost_row(names, ("idle", idle, costs.as_ref().map(|costs| costs.idle)), currency)
        });
        organizations.chain(pools).collect()
    }
}

fn held(line: &StatementLine) -> [String; 15] {
    let GpuHoursBody { hp, guaranteed, at_will, handover, sold, kept, broken, voided, owed, .. } = line.gpu_hours;
    let lost = [line.gpu_hours.lost_to_evictions, line.gpu_hours.lost_to_nodes];
    let amounts = [hp, guaranteed, at_will, handover, sold, kept, broken, voided, owed].into_iter().chain(lost);
    let PromiseCountsBody { kept, broken, voided } = line.promises;
    let counts = [kept, broken, voided, line.evictions];
    let mut cells = amounts.map(|hours| hours.to_string()).chain(counts.iter().map(u64::to_string));
    std::array::from_fn(|_| cells.next().unwrap_or_default())
}

fn charged(charges: Option<&ChargesBody>) -> [String; 5] {
    let Some(ChargesBody { hp, guaranteed, at_will, credit, total }) = charges else {
        return [const { String::new() }; 5];
    };
    [hp, guaranteed, at_will, credit, total].map(f64::to_string)
}

/// An amount of money to the millionth, as charges are: a difference of two has digits behind it that are nobody's.
fn to_micros(amount: f64) -> f64 {
    // −0 + 0 is 0.
    (amount * 1e6).round() / 1e6 + 0.0
}

/// Hours of a row of OpenCost: its statements are by day.
const HOURS_OF_A_DAY: f64 = 24.0;

fn opencost_row(
    [day, organization, cluster, gpu_model]: [&str; 4],
    (kind, gpu_hours, cost): (&str, f64, Option<f64>),
    currency: &str,
) -> Vec<String> {
    let (gpus, cost) = ((gpu_hours / HOURS_OF_A_DAY).to_string(), cost.unwrap_or(0.0).to_string());
    let names = [day, organization, cluster, kind, gpu_model, "", ""].map(str::to_owned);
    let zeros = |count: usize| vec!["0".to_owned(); count];
    let costs = vec![cost.clone(), cost, "0".to_owned(), gpu_hours.to_string(), currency.to_owned()];
    [&names[..], &zeros(6), &[gpus], &zeros(5), &costs].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CostsBody;

    fn answer() -> StatementAnswer {
        let gpu_hours = GpuHoursBody { hp: 12.0, guaranteed: 6.5, ..GpuHoursBody::default() };
        let charges = ChargesBody { hp: 30.0, guaranteed: 7.8, at_will: 0.0, credit: 0.9, total: 36.9 };
        let line = StatementLine {
            day: Some("2026-11-25".to_owned()),
            cluster: "demo".to_owned(),
            gpu_model: "A100".to_owned(),
            organization: "vision, \"speech\"".to_owned(),
            gpu_hours,
            promises: PromiseCountsBody::default(),
            evictions: 0,
            charges: Some(charges),
        };
        let pool = StatementPool {
            day: Some("2026-11-25".to_owned()),
            cluster: "demo".to_owned(),
            gpu_model: "A100".to_owned(),
            accounted_hours: 24.0,
            pool_gpu_hours: PoolGpuHoursBody {
                capacity: 24.0,
                idle_offered: 4.0,
                idle_reserved: 1.5,
                drained: 0.0,
                over_reserved: 2.0,
            },
            allocation: Some(0.77),
            goodput: Some(0.77),
            gpu_hours,
            promises: PromiseCountsBody::default(),
            evictions: 0,
            charges: Some(charges),
            costs: Some(CostsBody { owned: 24.0, idle: 5.5, lost: 0.0 }),
        };
        let currency = Some("EUR".to_owned());
        StatementAnswer { currency, pools: vec![pool], organizations: vec![line], ..StatementAnswer::default() }
    }

    #[test]
    fn names_that_stand_behind_an_apostrophe_differ_from_those_that_begin_with_one() {
        let names = ["=x", "'=x", "''=x", "'x", "x"];
        let written = names.map(name);
        assert_eq!(written, ["'=x", "''=x", "'''=x", "''x", "x"]);
        assert_eq!(written.each_ref().map(|text| text.strip_prefix('\'').unwrap_or(text)), names);
    }

    /// Cells by the name of their column; a quoted cell is whole.
    fn read(csv: &str) -> Vec<std::collections::BTreeMap<String, String>> {
        let cells = |line: &str| {
            let (mut cells, mut quoted) = (vec![String::new()], false);
            for letter in line.chars() {
                match letter {
                    '"' => quoted = !quoted,
                    ',' if !quoted => cells.push(String::new()),
                    other => cells.last_mut().unwrap().push(other),
                }
            }
            cells
        };
        let mut lines = csv.split_terminator("\r\n");
        let header = cells(lines.next().unwrap());
        let of = |line: &str| {
            let found = cells(line);
            assert_eq!(found.len(), header.len(), "{line}");
            header.iter().cloned().zip(found).collect()
        };
        lines.map(of).collect()
    }

    #[test]
    fn a_statement_has_a_row_for_each_organization_and_one_for_what_is_idle() {
        let rows = read(&answer().to_csv(StatementTable::Statement));
        let [line, idle] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((line["organization"].as_str(), line["guaranteed_gpu_hours"].as_str()), ("vision, speech", "6.5"));
        assert_eq!(
            (line["total_charge"].as_str(), line["currency"].as_str(), line["evictions"].as_str()),
            ("36.9", "EUR", "0")
        );
        assert_eq!((idle["organization"].as_str(), idle["capacity_gpu_hours"].as_str()), ("__idle__", "24"));
        assert_eq!((idle["idle_cost"].as_str(), idle["hp_gpu_hours"].as_str()), ("5.5", ""));
        assert!(answer().to_csv(StatementTable::Statement).contains("\"vision, \"\"speech\"\"\""));
    }

    #[test]
    fn names_that_a_spreadsheet_would_take_for_formulas_are_text_in_statements_and_stay_for_programs() {
        for attack in ["=HYPERLINK(\"http://x\")", "+1", "-1+2", "@SUM(A1)", "＝1"] {
            let mut answer = answer();
            attack.clone_into(&mut answer.organizations[0].organization);
            attack.clone_into(&mut answer.pools[0].cluster);
            let rows = read(&answer.to_csv(StatementTable::Statement));
            let text = format!("'{}", attack.replace('"', ""));
            assert_eq!((&rows[0]["organization"], &rows[1]["cluster"]), (&text, &text));
            let rows = read(&answer.to_csv(StatementTable::OpenCost));
            assert_eq!(rows[0]["Namespace"], attack.replace('"', ""));
        }
    }

    #[test]
    fn a_credit_that_is_all_of_a_charge_leaves_zero_without_a_minus() {
        let mut answer = answer();
        let charges = answer.organizations[0].charges.as_mut().unwrap();
        (charges.guaranteed, charges.credit) = (0.3, 0.1 + 0.2);
        let rows = read(&answer.to_csv(StatementTable::OpenCost));
        assert_eq!((rows[1]["ControllerKind"].as_str(), rows[1]["TotalCost"].as_str()), ("spot-guaranteed", "0"));
    }

    #[test]
    fn rows_of_opencost_add_up_to_the_charges_and_the_gpu_hours() {
        let rows = read(&answer().to_csv(StatementTable::OpenCost));
        let sum = |column: &str| rows.iter().map(|row| row[column].parse::<f64>().unwrap()).sum::<f64>();
        assert_eq!((sum("GPUHours"), sum("TotalCost")), (24.0, 36.9 + 5.5));
        assert!((sum("GPUs") - 1.0).abs() < 1e-9);
        let kinds: Vec<_> = rows.iter().map(|row| row["ControllerKind"].as_str()).collect();
        assert_eq!(kinds, ["hp", "spot-guaranteed", "idle"]);
        assert_eq!(rows[1]["TotalCost"], "6.9", "7.8 less 0.9 is no 6.9 in binary numbers");
        assert_eq!((rows[2]["Namespace"].as_str(), rows[0]["Date"].as_str()), ("__idle__", "2026-11-25"));
    }
}
