//! The numbers as plain text: no escape codes, every row and every column.

use std::fmt::Write;

use crate::dashboard::{Dashboard, Section};

/// Returns the text.
pub(crate) fn text(dashboard: &Dashboard) -> String {
    let mut lines = vec![dashboard.top_line()];
    lines.extend(dashboard.faults());
    lines.push(dashboard.rate_line());
    lines.extend(dashboard.headline(WIDTH));
    let mut text = String::new();
    for line in lines {
        push(&mut text, &line.to_string());
    }
    for section in Section::ALL {
        let part = dashboard.part(section, TABLE_WIDTH);
        if part.rows.is_empty() {
            continue;
        }
        push(&mut text, "");
        push(&mut text, &part.title);
        for line in part.head.iter().chain(&part.rows) {
            push(&mut text, &line.to_string());
        }
    }
    text
}

fn push(text: &mut String, line: &str) {
    writeln!(text, "{}", line.trim_end()).expect("a String takes any text");
}

/// Columns for the tables: all of theirs, beside a name of fifty.
const TABLE_WIDTH: usize = 160;

/// Columns of the headline.
const WIDTH: usize = 100;
