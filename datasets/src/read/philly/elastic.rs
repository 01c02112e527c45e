//! Further input of elastic jobs: the model of each job, its label, and the speed of models by GPUs.

use crate::read::names::Names;
use crate::read::table::Table;
use crate::read::{ReadError, RowFault};
use std::collections::BTreeMap;
use std::path::Path;
use vocab::TaskId;

/// Of a list of labels. Lines before it that begin with # say how it was made.
pub const LABEL_COLUMNS: [&str; 2] = ["job_id", "label"];
/// Of a list of speeds: thousandths of the speed on one GPU. Lines before it that begin with # say how it was made.
pub const SPEED_COLUMNS: [&str; 3] = ["model_name", "gpus", "speed_thousandths"];
/// GPUs of one job at most, in a list of speeds.
const GPUS_MOST: u64 = 100_000;

/// Jobs, and whether they are interactive.
///
/// # Errors
/// The file cannot be read, holds no rows, or a row is bad.
pub fn job_labels(file: &Path) -> Result<BTreeMap<TaskId, bool>, ReadError> {
    let (mut labels, mut names) = (BTreeMap::new(), Names::default());
    let mut table = Table::with_notes(file, &LABEL_COLUMNS)?;
    table.each_good(|row| {
        let id = row.name("job_id", TaskId::parse)?;
        let is_interactive = match row.text("label") {
            "interactive" => true,
            "batch" => false,
            text => {
                let known = "interactive or batch";
                return Err(RowFault::Choice { column: "label", text: text.to_owned(), known });
            }
        };
        if names.is_new("job_id", id.as_str(), row)? {
            labels.insert(id, is_interactive);
        }
        Ok(())
    })?;
    some(file, labels)
}

/// Models, and how many thousandths of the speed on one GPU each has on 1, 2, 3 … GPUs.
///
/// # Errors
/// The file cannot be read, holds no rows, a row is bad, or the GPUs of a model do not count 1, 2, 3 ….
pub fn model_speeds(file: &Path) -> Result<BTreeMap<String, Vec<u64>>, ReadError> {
    let mut speeds = BTreeMap::<String, Vec<u64>>::new();
    let mut table = Table::with_notes(file, &SPEED_COLUMNS)?;
    table.each_good(|row| {
        let of_model = speeds.entry(row.text("model_name").to_owned()).or_default();
        let next = of_model.len() as u64 + 1;
        row.within("gpus", next, next.min(GPUS_MOST))?;
        of_model.push(row.within("speed_thousandths", 1, 1_000_000_000)?);
        Ok(())
    })?;
    some(file, speeds)
}

fn some<K, V>(file: &Path, read: BTreeMap<K, V>) -> Result<BTreeMap<K, V>, ReadError> {
    if read.is_empty() { Err(ReadError::NoRows { file: file.to_owned() }) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::read_as;

    #[test]
    fn notes_are_passed_over_and_rows_counted_with_them() {
        let labels = |text: &str| read_as("labels.csv", text.as_bytes(), job_labels);
        let read = labels("# made by hand\n# on a Sunday\njob_id,label\n7,interactive\n8,batch\n").unwrap();
        assert_eq!(read.values().copied().collect::<Vec<_>>(), [true, false]);
        assert_eq!(
            labels("# made by hand\njob_id,label\n7,urgent\n").unwrap_err(),
            "labels.csv, row 3: column label: unknown value \"urgent\": expected interactive or batch"
        );
        assert_eq!(labels("# made by hand\njob_id,label\n").unwrap_err(), "labels.csv: no rows");
        assert!(
            labels("job_id,label\n7,batch\n7,interactive\n")
                .unwrap_err()
                .contains("row 3: column job_id: 7 is already in row 2")
        );
    }

    #[test]
    fn speeds_count_the_gpus_of_each_model_from_one() {
        let speeds = |text: &str| read_as("speeds.csv", text.as_bytes(), model_speeds);
        let header = "model_name,gpus,speed_thousandths\n";
        let read = speeds(&format!("{header}a,1,1000\nb,1,1000\na,2,1800\n")).unwrap();
        assert_eq!((&read["a"][..], &read["b"][..]), (&[1_000, 1_800][..], &[1_000][..]));
        assert_eq!(
            speeds(&format!("{header}a,1,1000\na,3,1800\n")).unwrap_err(),
            "speeds.csv, row 3: column gpus: \"3\" is not a whole number from 2 to 2"
        );
        assert!(speeds(&format!("{header}a,1,0\n")).unwrap_err().contains("column speed_thousandths: \"0\""));
    }
}
