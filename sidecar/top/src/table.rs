//! Tables: cells with a text, a value to sort by and a tone, in columns that fit a width.

use ratatui::text::{Line, Span};

use crate::style::Tone;
use crate::width::{columns, shorten};

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// Its printable text.
    pub(crate) text: String,
    /// Its value for sorting; `None` is last.
    pub(crate) value: Option<f64>,
    /// Its tone.
    pub(crate) tone: Tone,
}

impl Cell {
    /// Makes a cell of a number; the text of an unknown one is `-`.
    pub(crate) fn of(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        Self { text: crate::number::known(value, text), value, tone: Tone::Plain }
    }

    /// Makes a cell of a count.
    pub(crate) fn count(value: u64) -> Self {
        Self { text: crate::number::count(value), value: Some(value as f64), tone: Tone::Plain }
    }

    /// Makes a cell of a printable text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, tone: Tone::Plain }
    }

    /// Changes its tone.
    pub(crate) fn with(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Changes its tone to a warning if its value is above 0.
    pub(crate) fn warned(self) -> Self {
        let tone = if self.value.is_some_and(|value| value > 0.0) { Tone::Warn } else { Tone::Plain };
        self.with(tone)
    }
}

/// A column: its heading, and the width below which it does not shrink, so that it stays in place.
pub(crate) type Head = (&'static str, usize);

/// The layout of a table: the widths of its columns, without those that do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout(Vec<usize>);

impl Layout {
    /// Fits the columns into `width`. The first one is the name, which shrinks to [`NAME_MIN`]; then the last columns are
    /// left out.
    pub(crate) fn of(heads: &[Head], rows: &[Vec<Cell>], width: usize) -> Self {
        let natural = |(at, (head, min)): (usize, &Head)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(&cell.text));
            // A heading has room for the mark of the order.
            let head = columns(head) + usize::from(at > 0 && !head.is_empty());
            cells.chain([head, *min]).max().unwrap_or(0)
        };
        let mut widths: Vec<_> = heads.iter().enumerate().map(natural).collect();
        let Some(name) = widths.first().copied() else { return Self(widths) };
        let total = |widths: &[usize]| widths.iter().skip(1).map(|width| GAP + width).sum::<usize>();
        while widths.len() > 1 && name.min(NAME_MIN) + total(&widths) > width {
            widths.pop();
        }
        widths[0] = name.min(width.saturating_sub(total(&widths)));
        Self(widths)
    }

    /// Returns the line of headings; `sorted` is the column that the rows are sorted by, and true if downwards.
    pub(crate) fn head(&self, heads: &[Head], sorted: Option<(usize, bool)>, colours: bool) -> Line<'static> {
        let cells = heads.iter().enumerate().map(|(at, (head, _))| {
            let tone = if sorted.is_some_and(|(column, _)| column == at) { Tone::Title } else { Tone::Dim };
            let mark = match sorted {
                Some((column, true)) if column == at => "↓",
                Some((column, false)) if column == at => "↑",
                _ => "",
            };
            Cell::text(format!("{mark}{head}")).with(tone)
        });
        self.line(&cells.collect::<Vec<_>>(), colours)
    }

    /// Returns the line of a row.
    pub(crate) fn line(&self, cells: &[Cell], colours: bool) -> Line<'static> {
        let mut spans = Vec::with_capacity(2 * self.0.len());
        for (at, (width, cell)) in self.0.iter().zip(cells).enumerate() {
            let text = shorten(&cell.text, *width);
            let pad = " ".repeat(width - columns(&text));
            let style = cell.tone.style(colours);
            match at {
                0 => spans.extend([Span::styled(text, style), Span::raw(pad)]),
                _ => spans.extend([Span::raw(" ".repeat(GAP) + &pad), Span::styled(text, style)]),
            }
        }
        Line::from(spans)
    }
}

/// Sorts rows by a column; rows without a value come last. Equal rows keep their order.
pub(crate) fn sort<K>(rows: &mut [(K, Vec<Cell>)], column: usize, is_down: bool) {
    let value = |row: &Vec<Cell>| row.get(column).and_then(|cell| cell.value);
    rows.sort_by(|(_, left), (_, right)| match (value(left), value(right)) {
        (Some(left), Some(right)) if is_down => right.total_cmp(&left),
        (Some(left), Some(right)) => left.total_cmp(&right),
        (left, right) => right.is_some().cmp(&left.is_some()),
    });
}

/// Columns between two cells.
const GAP: usize = 2;

/// The width to which a name shrinks before a column is left out.
const NAME_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::{Cell, Layout, sort};

    fn row(name: &str, values: &[Option<f64>]) -> Vec<Cell> {
        let cells = values.iter().map(|value| Cell::of(*value, |value| value.to_string()));
        std::iter::once(Cell::text(name)).chain(cells).collect()
    }

    #[test]
    fn last_columns_are_left_out() {
        let heads = [("name", 4), ("a", 3), ("b", 3)];
        let rows = [row("a-model-with-a-long-name", &[Some(1.0), None])];
        let text = |width| {
            let layout = Layout::of(&heads, &rows, width);
            layout.line(&rows[0], false).to_string()
        };
        assert_eq!(text(80), "a-model-with-a-long-name    1    -");
        assert_eq!(text(26), "a-model-with-a-…    1    -");
        assert_eq!(text(25), "a-model-with-a-long…    1");
        assert_eq!(text(21), "a-model-with-a-…    1");
        assert_eq!(text(20), "a-model-with-a-long…");
        assert_eq!(text(3), "a-…");
        assert_eq!(text(0), "");
        let head = Layout::of(&heads, &rows, 80).head(&heads, Some((2, true)), false).to_string();
        assert_eq!(head, "name                        a   ↓b");
    }

    #[test]
    fn unknown_values_are_last() {
        let names = |is_down| {
            let values = [("a", Some(1.0)), ("b", None), ("c", Some(3.0)), ("d", Some(1.0))];
            let mut rows: Vec<_> = values.map(|(name, value)| (name, row(name, &[value]))).into();
            sort(&mut rows, 1, is_down);
            rows.iter().map(|(name, _)| *name).collect::<String>()
        };
        assert_eq!((names(true).as_str(), names(false).as_str()), ("cadb", "adcb"));
    }
}
