//! The screen: the headline above, the sections below it that fit, and a line of keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Clear, Sparkline};

use crate::dashboard::{Dashboard, Section};
use crate::number::{known, real};
use crate::parts::Part;
use crate::scope::ScopeName;
use crate::style::Tone;

/// Draws the screen.
pub(crate) fn draw(frame: &mut Frame, dashboard: &Dashboard) {
    let mut rest = Rest(frame.area());
    let width = rest.0.width.into();
    if let Some(row) = rest.bottom() {
        frame.render_widget(keys(dashboard), row);
    }
    if dashboard.help {
        help(frame, rest.0, dashboard);
        return;
    }
    rest.lines(frame, vec![dashboard.top_line()]);
    let height = usize::from(rest.0.height);
    rest.lines(frame, faults(dashboard, FAULTS_MAX.min(height / 6)));
    rest.lines(frame, vec![dashboard.rate_line()]);
    sparkline(frame, &mut rest, dashboard);
    // A low screen has room for the chosen section, too.
    let mut headline = dashboard.headline(width);
    headline.truncate((height / 4).max(1));
    rest.lines(frame, headline);
    sections(frame, rest, dashboard);
}

/// Returns at most `most` lines of faults, and always one if there is a fault.
fn faults(dashboard: &Dashboard, most: usize) -> Vec<Line<'static>> {
    let mut faults = dashboard.faults();
    if faults.len() > most.max(1) {
        let hidden = faults.drain(most.saturating_sub(1)..).count();
        let more = if faults.is_empty() { "" } else { " more" };
        faults
            .push(dashboard.line([(format!("! {hidden}{more} faults: tokenmeter top --once"), Tone::Warn)]));
    }
    faults
}

/// The rows that are not drawn yet.
struct Rest(Rect);

impl Rest {
    /// Takes rows from the top, at most those that are left.
    fn top(&mut self, rows: usize) -> Rect {
        let height = self.0.height.min(u16::try_from(rows).unwrap_or(u16::MAX));
        let taken = Rect { height, ..self.0 };
        self.0.y += height;
        self.0.height -= height;
        taken
    }

    /// Takes the last row; `None` if a part of the numbers would not fit for it.
    fn bottom(&mut self) -> Option<Rect> {
        (self.0.height > 2).then(|| {
            self.0.height -= 1;
            Rect { y: self.0.bottom(), height: 1, ..self.0 }
        })
    }

    fn lines(&mut self, frame: &mut Frame, lines: Vec<Line<'static>>) {
        let rows = self.top(lines.len());
        frame.render_widget(Text::from(lines), rows);
    }
}

/// Draws the output rate of the last minutes.
fn sparkline(frame: &mut Frame, rest: &mut Rest, dashboard: &Dashboard) {
    let height = match rest.0.height {
        0..14 => return,
        14..26 => 2,
        _ => 4,
    };
    let area = rest.top(height);
    let up_ms = dashboard.now.at_unix_ms.saturating_sub(dashboard.now.started_unix_ms);
    // The first minute of a process fills the line, too.
    let seconds = usize::try_from(up_ms / 1000).unwrap_or(TREND_MAX_S).clamp(TREND_MIN_S, TREND_MAX_S);
    let peak = known(dashboard.trend.peak(seconds), real);
    let span = if seconds < 120 { format!(" {seconds} s") } else { format!(" {} min", seconds / 60) };
    let note = [span, format!(" max {peak}")];
    let note_columns = note.iter().map(|line| line.chars().count()).max().unwrap_or(0) as u16;
    let bars = Rect { width: area.width.saturating_sub(note_columns), ..area };
    let seconds_each = seconds.div_ceil(usize::from(bars.width).max(1));
    let columns = usize::from(bars.width).min(seconds.div_ceil(seconds_each));
    let bars = Rect { width: columns as u16, ..bars };
    let heights = dashboard.trend.columns(columns, seconds_each);
    // Thousandths, because the widget takes whole numbers.
    let heights: Vec<_> = heights.into_iter().map(|rate| rate.map(|rate| (rate * 1e3) as u64)).collect();
    let style = Tone::Good.style(dashboard.colours);
    frame.render_widget(Sparkline::default().data(heights).style(style), bars);
    let text = note.map(|line| dashboard.line([(line, Tone::Dim)]));
    let beside = Rect { x: bars.right(), width: area.width - bars.width, ..area };
    frame.render_widget(Text::from(text.to_vec()), beside);
}

/// Draws the sections that fit: all of them if there is room, else those around the one that the keys are for.
fn sections(frame: &mut Frame, mut rest: Rest, dashboard: &Dashboard) {
    let width = rest.0.width.into();
    let shown = Section::ALL.map(|section| (section, dashboard.part(section, width)));
    let shown: Vec<_> = shown
        .into_iter()
        .filter(|(section, part)| !part.rows.is_empty() || *section == dashboard.section)
        .collect();
    let chosen = shown.iter().position(|(section, _)| *section == dashboard.section).unwrap_or(0);
    let height = usize::from(rest.0.height);
    let wanted: Vec<_> = shown.iter().map(|(_, part)| 1 + part.height().min(ROWS_MAX)).collect();
    // The fewest sections above are left out with which the chosen one fits.
    let first = (0..=chosen).find(|first| wanted[*first..=chosen].iter().sum::<usize>() <= height);
    let first = first.unwrap_or(chosen);
    let mut spare = height.saturating_sub(wanted[first..].iter().sum());
    for (at, (section, part)) in shown.iter().enumerate().skip(first) {
        let left = usize::from(rest.0.height);
        let is_chosen = at == chosen;
        // A title and a row tell little, and half a section below looks like the whole of it.
        if left < 3 && !is_chosen {
            break;
        }
        rest.top(usize::from(left > 2));
        let more = (1 + part.height() - wanted[at]).min(spare);
        spare -= more;
        let rows = (wanted[at] - 1 + more).min(rest.0.height.into());
        let area = rest.top(rows);
        draw_part(frame, area, part, is_chosen.then_some(*section), dashboard);
    }
}

/// Draws a section; `chosen` is the section that the keys are for.
fn draw_part(frame: &mut Frame, area: Rect, part: &Part, chosen: Option<Section>, dashboard: &Dashboard) {
    let mut rest = Rest(area);
    let mark = if chosen.is_some() { "▸ " } else { "  " };
    rest.lines(frame, vec![dashboard.line([(format!("{mark}{}", part.title), Tone::Title)])]);
    rest.lines(frame, part.head.clone().into_iter().collect());
    let height = usize::from(rest.0.height);
    let selected = part.selected.filter(|_| chosen.is_some());
    let skipped = selected.map_or(0, |selected| (selected + 1).saturating_sub(height));
    let mut rows: Vec<_> = part.rows.iter().skip(skipped).take(height).cloned().collect();
    if let Some(row) = selected.and_then(|selected| rows.get_mut(selected.checked_sub(skipped)?)) {
        row.style = Tone::Chosen.style(dashboard.colours);
    }
    rest.lines(frame, rows);
}

fn keys(dashboard: &Dashboard) -> Line<'static> {
    let text = match (dashboard.help, &dashboard.scope, dashboard.section) {
        (true, ..) => "? back  q quit",
        (_, ScopeName::All, Section::Models | Section::Tenants) => {
            "q quit  ? help  tab section  ↑↓ select  enter only this  s sort  r reverse"
        }
        (_, ScopeName::All, _) => "q quit  ? help  tab section  1-6 section",
        _ => "q quit  ? help  esc all traffic  tab section  ↑↓ select  s sort  r reverse",
    };
    dashboard.line([(text.to_owned(), Tone::Dim)])
}

fn help(frame: &mut Frame, area: Rect, dashboard: &Dashboard) {
    frame.render_widget(Clear, area);
    let lines = HELP.lines().map(|line| dashboard.line([(line.to_owned(), Tone::Plain)]));
    frame.render_widget(Text::from(lines.collect::<Vec<_>>()), area);
}

/// The help, for 80 columns and 23 rows.
const HELP: &str = "\
tab, shift-tab, 1-6  choose the section        q, ctrl-c  quit; ctrl-z stops
↑ ↓ k j              select a row              ?          this help
enter                headline of that row      esc        headline of all
s                    sort by the next column   r          reverse the order

tokens/s         output of the last 10 s; for tenants, of exchanges that ended
first p50, p99   time to the first token, of the last 10 s
speed            tokens/s of one request that half of the requests reach, of the
                 last 10 s, and the objectives
errors, aborts   exchanges that failed, and that the client left
goodput          share of the exchanges that met their objective
per hour, spend  cost at the rate of the last 60 s, and since the start; + lacks
                 exchanges without a price
budget, forecast share of the tenant's limit, and the spend at the period's end
~                an estimate: one token per frame; in the curve, the middle of
                 the range times the mean speed
at once          requests in flight to the server at the same time
-                not known

The same numbers: the live page at the admin address. As text: --once.";

/// The least seconds of the output rate that are drawn.
const TREND_MIN_S: usize = 60;

/// The most seconds of it.
const TREND_MAX_S: usize = 300;

/// The maximum number of lines of faults.
const FAULTS_MAX: usize = 4;

/// The maximum number of lines of a section while others do not fit.
const ROWS_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::HELP;

    #[test]
    fn help_fits_a_terminal() {
        assert!(HELP.lines().count() <= 23);
        assert!(HELP.lines().all(|line| line.chars().count() <= 80), "{HELP}");
    }
}
