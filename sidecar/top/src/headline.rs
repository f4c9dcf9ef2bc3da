//! The headline: what users of a scope get right now, against the objectives, and what it costs.

use live::{Now, Readiness, Scope};
use ratatui::text::{Line, Span};
use text::printable;

use crate::dashboard::Dashboard;
use crate::number::{UNKNOWN, age, count, known, money, percent, real, time};
use crate::scope::ScopeName;
use crate::scopes::estimated;
use crate::style::Tone;

impl Dashboard {
    /// Returns the first line: program, readiness, age and scope.
    pub(crate) fn top_line(&self) -> Line<'static> {
        let (word, tone) = match &self.now.readiness {
            Readiness::Ready => ("ready", Tone::Good),
            Readiness::Impaired(_) => ("ready, with warnings", Tone::Warn),
            Readiness::NotReady(_) => ("not ready", Tone::Bad),
        };
        let up = age(self.now.at_unix_ms.saturating_sub(self.now.started_unix_ms));
        self.line([
            (format!("tokenmeter {}", printable(&self.now.version)), Tone::Title),
            (" · ".into(), Tone::Dim),
            (word.into(), tone),
            (format!(" · up {up}"), Tone::Dim),
        ])
    }

    /// Returns the line of the scope and its output rate.
    pub(crate) fn rate_line(&self) -> Line<'static> {
        let scope = match &self.scope {
            ScopeName::All => "all traffic".to_owned(),
            ScopeName::Model(name) => format!("model {}", printable(name)),
            ScopeName::Tenant(name) => format!("tenant {}", printable(name)),
        };
        let Some(scoped) = self.scoped() else {
            return self
                .line([(format!("{scope} is not listed any more; esc shows all traffic"), Tone::Warn)]);
        };
        let rate = known(scoped.recent.output_tokens_per_second_10s, real);
        let estimate = estimated(scoped).map(|share| format!("  ~{} of output estimated", percent(share)));
        self.line([
            (scope, Tone::Title),
            ("  ".into(), Tone::Plain),
            (rate, Tone::Title),
            (" output tokens/s".into(), Tone::Plain),
            (estimate.unwrap_or_default(), Tone::Warn),
        ])
    }

    /// Returns the numbers of the scope, in lines of at most `width` columns.
    pub(crate) fn headline(&self, width: usize) -> Vec<Line<'static>> {
        let Some(scope) = self.scoped() else { return Vec::new() };
        let (point, recent) = (&scope.point, &scope.recent);
        let number = |number: Option<u64>| number.map_or_else(|| UNKNOWN.to_owned(), count);
        let errors = match recent.errors_60s {
            Some(1..) => Tone::Bad,
            _ => Tone::Plain,
        };
        let mut groups = Vec::new();
        // They are not counted by tenant.
        if !matches!(self.scope, ScopeName::Tenant(_)) {
            groups.push(vec![label("in flight "), plain(known(point.in_flight, real))]);
            groups.push(vec![
                label("first token p50 "),
                plain(known(point.first_token_p50_seconds, time)),
                label(" p99 "),
                plain(known(point.first_token_p99_seconds, time)),
            ]);
            groups.push(self.speed(scope));
        }
        groups.push(vec![
            label("last 60 s: exchanges "),
            plain(number(recent.exchanges_60s)),
            label(" errors "),
            (number(recent.errors_60s), errors),
            label(" aborts "),
            plain(number(recent.aborts_60s)),
        ]);
        if let Some(goodput) = scope.totals.goodput_ratio {
            groups.push(vec![label("goodput "), plain(percent(goodput))]);
        }
        if let Some(currency) = &self.now.currency {
            let spend = known(recent.spend_per_hour_60s, money);
            let cost = scope.totals.cost_per_million_tokens;
            let cost = cost.map_or(String::new(), |cost| format!(", {} per 1M tokens", money(cost)));
            let spend = format!("{} {spend}/h", printable(currency));
            groups.push(vec![label("spend "), (spend, Tone::Title), label(&cost)]);
        }
        if let Some(watts) = point.watts {
            groups.push(vec![label("GPUs "), plain(format!("{} W", real(watts)))]);
        }
        self.flow(groups, width)
    }

    /// Returns the speed that half of the requests reach, with the objectives for it.
    fn speed(&self, scope: &Scope) -> Vec<(String, Tone)> {
        let speed = scope.point.request_tokens_per_second_p50;
        let mut parts = vec![label("speed p50 "), plain(format!("{} tokens/s", known(speed, real)))];
        for objective in self.now.objectives.iter().take(OBJECTIVES_MAX) {
            let Some(least) = objective.request_tokens_per_second else { continue };
            let (sign, tone) = match speed {
                Some(speed) if speed >= least => ("≥", Tone::Good),
                Some(_) => ("<", Tone::Bad),
                None => ("of", Tone::Dim),
            };
            parts.push((format!(" {sign} {} ({})", real(least), printable(&objective.name)), tone));
        }
        parts
    }

    /// Returns a line for each reason of the readiness and each fault of an upstream.
    pub(crate) fn faults(&self) -> Vec<Line<'static>> {
        let mut faults = faults(&self.now);
        if let Some((why, seconds)) = &self.failure {
            let age = age(seconds * 1000);
            faults.insert(0, (format!("the numbers are {age} old: {}", printable(why)), Tone::Bad));
        }
        faults.into_iter().map(|(text, tone)| self.line([("! ".into(), tone), (text, tone)])).collect()
    }

    /// Makes a line of texts with their tones.
    pub(crate) fn line(&self, parts: impl IntoIterator<Item = (String, Tone)>) -> Line<'static> {
        let spans = parts.into_iter().map(|(text, tone)| Span::styled(text, tone.style(self.colours)));
        Line::from(spans.collect::<Vec<_>>())
    }
}

impl Dashboard {
    /// Fills lines of at most `width` columns with groups, two columns apart.
    pub(crate) fn flow(&self, groups: Vec<Vec<(String, Tone)>>, width: usize) -> Vec<Line<'static>> {
        let mut lines: Vec<Line<'static>> = Vec::new();
        for group in groups {
            let group = self.line(group);
            match lines.last_mut() {
                Some(line) if line.width() + 2 + group.width() <= width => {
                    line.spans.push("  ".into());
                    line.spans.extend(group.spans);
                }
                _ => lines.push(group),
            }
        }
        lines
    }
}

fn faults(now: &Now) -> Vec<(String, Tone)> {
    let (reasons, tone) = match &now.readiness {
        Readiness::Ready => (&[][..], Tone::Plain),
        Readiness::Impaired(reasons) => (&reasons[..], Tone::Warn),
        Readiness::NotReady(reasons) => (&reasons[..], Tone::Bad),
    };
    let reasons = reasons.iter().map(|reason| (printable(reason), tone));
    let upstreams = now.upstreams.iter().flat_map(|upstream| {
        let unverified = (upstream.verified == Some(false)).then_some(UNVERIFIED);
        let faults = upstream.fault.as_deref().into_iter().chain(unverified);
        faults.map(|fault| (format!("{}: {}", printable(&upstream.name), printable(fault)), Tone::Warn))
    });
    reasons.chain(upstreams).collect()
}

pub(crate) fn plain(text: String) -> (String, Tone) {
    (text, Tone::Plain)
}

pub(crate) fn label(text: &str) -> (String, Tone) {
    (text.to_owned(), Tone::Dim)
}

/// The fault of an upstream with `insecure_skip_verify`; short, because the screen cuts it at its width.
const UNVERIFIED: &str = "certificate not verified: set ca, remove insecure_skip_verify";

/// The maximum number of objectives beside the speed.
const OBJECTIVES_MAX: usize = 3;
