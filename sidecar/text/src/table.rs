//! Aligned tables.

/// Returns a line for each row. Each column is as wide as its widest cell, with two spaces between; `is_right` selects
/// the right-aligned columns.
pub fn table(rows: &[Vec<String>], is_right: impl Fn(usize) -> bool) -> Vec<String> {
    let length = |cell: &String| cell.chars().count();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widths: Vec<usize> =
        (0..columns).map(|column| cells(column).map(length).max().unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let pad = " ".repeat(width - length(cell));
            if is_right(column) { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_aligned() {
        let rows =
            [vec!["a".to_owned(), "100".to_owned(), "ü".to_owned()], vec!["long".to_owned(), "1".to_owned()]];
        assert_eq!(table(&rows, |column| column == 1), ["a     100  ü", "long    1"]);
        assert_eq!(table(&[], |_| true), [""; 0]);
    }
}
