//! That candidates can be compared: each has the same cells, and each cell once.

use std::cmp::Ordering;

/// Why candidates cannot be compared. All fields but the counts are places among the rows.
#[derive(Debug, PartialEq, Eq)]
pub enum GridFault {
    /// A candidate has a cell twice.
    Twice { first: usize, second: usize },
    /// The candidate of the row `there` has a cell that the candidate of the row `lacking` has not.
    Uneven { there: usize, having_rows: usize, lacking: usize, lacking_rows: usize },
}

/// Places of the rows by candidate and cell, once it is known that all candidates have the same cells, each once. A
/// candidate is what is compared, such as a model; a cell is what it answers for, such as a series, issue time and step.
pub fn ordered<R, W: Ord, C: Ord>(
    rows: &[R],
    candidate: impl Fn(&R) -> W,
    cell: impl Fn(&R) -> C,
) -> Result<Vec<usize>, GridFault> {
    let key = |place: &usize| (candidate(&rows[*place]), cell(&rows[*place]));
    let mut places: Vec<usize> = (0..rows.len()).collect();
    // Stable: of rows alike, the first of the file stays first.
    places.sort_by_key(key);
    let twice = places.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1]));
    if let Some(pair) = twice.min_by_key(|pair| pair[1]) {
        return Err(GridFault::Twice { first: pair[0], second: pair[1] });
    }
    let mut candidates = places.chunk_by(|one, other| candidate(&rows[*one]) == candidate(&rows[*other]));
    let Some(first) = candidates.next() else { return Ok(places) };
    for other in candidates {
        if let Some(fault) = uneven(first, other, |place| cell(&rows[place])) {
            return Err(fault);
        }
    }
    Ok(places)
}

/// The first cell that only one of two candidates has; both are sorted by cell.
fn uneven<C: Ord>(one: &[usize], other: &[usize], cell: impl Fn(usize) -> C) -> Option<GridFault> {
    let order = |(one, other): (&usize, &usize)| cell(*one).cmp(&cell(*other));
    let alike = one.iter().zip(other).take_while(|pair| order(*pair) == Ordering::Equal).count();
    let one_has_more = match (one.get(alike), other.get(alike)) {
        (None, None) => return None,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => order((a, b)) == Ordering::Less,
    };
    let (having, lacking) = if one_has_more { (one, other) } else { (other, one) };
    Some(GridFault::Uneven {
        there: having[alike],
        having_rows: having.len(),
        lacking: lacking[0],
        lacking_rows: lacking.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows such as `a1`: candidate and cell.
    fn check(rows: &str) -> Result<String, GridFault> {
        let rows: Vec<&str> = rows.split_whitespace().collect();
        let places = ordered(&rows, |row| row[..1].to_owned(), |row| row[1..].to_owned())?;
        Ok(places.into_iter().map(|place| rows[place]).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn rows_are_sorted_by_candidate_and_cell_from_any_order() {
        assert_eq!(check("b2 a1 b1 a2"), Ok("a1 a2 b1 b2".to_owned()));
        assert_eq!(check(""), Ok(String::new()));
    }

    #[test]
    fn the_first_cell_that_comes_a_second_time_is_named_with_both_rows() {
        assert_eq!(check("a2 b1 a1 a2 a1"), Err(GridFault::Twice { first: 0, second: 3 }));
    }

    #[test]
    fn a_cell_that_only_one_candidate_has_is_named_whichever_has_more() {
        let fault = |there, having_rows, lacking, lacking_rows| {
            Err(GridFault::Uneven { there, having_rows, lacking, lacking_rows })
        };
        assert_eq!(check("a1 a2 a3 b1 b3"), fault(1, 3, 3, 2), "b lacks the second");
        assert_eq!(check("a1 a3 b1 b2 b3"), fault(3, 3, 0, 2), "a lacks it");
        assert_eq!(check("a1 a2 b1"), fault(1, 2, 2, 1), "b ends early");
        assert_eq!(check("a1 b1 b2"), fault(2, 2, 0, 1), "a ends early");
        assert_eq!(check("a1 a2 b1 b2 c1 c3"), fault(1, 2, 4, 2), "as many, but others");
    }
}
