//! Plans the objectives: a preset for all exchanges, or the file's list. A bound must be a bucket
//! boundary of its histogram, so that verdicts and histogram agree.

use meter::edges::{FIRST_TOKEN_S, OUTPUT_RATE};
use metrics::{Objective, PRESETS, Preset, TARGET_RATIO};
use origin::{Diagnostic, Origin};
use text::Glob;

use super::values::Reader;
use crate::settings::{Entry, OBJECTIVE_LIST, OBJECTIVES, Value};

impl Reader<'_> {
    /// Returns the objectives; the first that matches an exchange applies.
    pub(super) fn objectives(&mut self) -> Vec<Objective> {
        let written = self.written;
        match (written.values.get("objective"), &written.objectives) {
            (Some(one), Some((list, _))) if matches!(one.origin, Origin::File { .. }) => {
                let problem = format!("`objective` and `objectives` ({list}) are both set");
                self.errors.push(Diagnostic::at(&one.origin, problem, "keep one of them"));
                Vec::new()
            }
            (Some(one), list) => {
                if let Some((origin, _)) = list {
                    let problem = format!("the objectives listed here are not used: {} applies", one.origin);
                    self.warnings.push(Diagnostic::at(origin, problem, "remove one of the two"));
                }
                self.for_all(one).into_iter().collect()
            }
            (None, Some((origin, entries))) => self.list_of_objectives(origin, entries),
            (None, None) => Vec::new(),
        }
    }

    fn for_all(&mut self, written: &Value) -> Option<Objective> {
        let preset = preset(self.one_of(written, &OBJECTIVES))?;
        Some(Objective {
            name: preset.name.into(),
            models: Vec::new(),
            tenants: Vec::new(),
            first_token_ns: preset.first_token_ns,
            output_rate: preset.output_rate,
            target_ratio: TARGET_RATIO,
        })
    }

    fn list_of_objectives(&mut self, list: &Origin, entries: &[Entry]) -> Vec<Objective> {
        if entries.is_empty() && self.errors.is_empty() {
            self.errors.push(Diagnostic::at(list, "`objectives` is empty", OBJECTIVE_LIST.remedy()));
        }
        if entries.len() > OBJECTIVES_MAX {
            let problem = format!("{} objectives are listed", entries.len());
            let remedy = format!("keep {OBJECTIVES_MAX}: each has about ten series per model");
            self.errors.push(Diagnostic::at(list, problem, remedy));
        }
        let mut objectives: Vec<Objective> = Vec::new();
        for entry in entries {
            let objective = self.objective(entry);
            if !objective.name.is_empty() && objectives.iter().any(|earlier| earlier.name == objective.name) {
                let origin = entry.fields.get("name").or(entry.fields.get("preset"));
                let problem = format!("two objectives are named `{}`", objective.name);
                let origin = origin.map_or(&entry.origin, |name| &name.origin);
                self.errors.push(Diagnostic::at(origin, problem, "give each a `name` of its own"));
            }
            let all = |one: &&Objective| one.models.is_empty() && one.tenants.is_empty();
            if let Some(earlier) = objectives.iter().find(all) {
                let problem =
                    format!("no exchange reaches this objective: `{}` before it matches all", earlier.name);
                let remedy = "put it before that one, or give that one `models` or `tenants`";
                self.warnings.push(Diagnostic::at(&entry.origin, problem, remedy));
            }
            objectives.push(objective);
        }
        objectives
    }

    fn objective(&mut self, entry: &Entry) -> Objective {
        let preset = entry.fields.get("preset").and_then(|written| preset(self.one_of(written, &NAMES)));
        let name = match (entry.fields.get("name"), preset) {
            (Some(written), _) => self.name(written),
            (None, Some(preset)) => preset.name.to_owned(),
            (None, None) => {
                // An invalid preset is an error already.
                if !entry.fields.contains_key("preset") {
                    let remedy = "add a `name`, or a `preset` with a name of its own";
                    self.errors.push(Diagnostic::at(&entry.origin, "an objective has no `name`", remedy));
                }
                String::new()
            }
        };
        let first_token_s = self.bound(entry, &FIRST_TOKEN, preset.map(|it| it.first_token_ns as f64 / 1e9));
        let output_rate = self.bound(entry, &SPEED, preset.map(|it| it.output_rate));
        Objective {
            name: name.into(),
            models: self.globs(entry, "models"),
            tenants: self.globs(entry, "tenants"),
            first_token_ns: (first_token_s * 1e9).round() as u64,
            output_rate,
            target_ratio: self.target(entry),
        }
    }

    /// Returns a bound in the unit of its histogram.
    fn bound(&mut self, entry: &Entry, bound: &Bound, preset: Option<f64>) -> f64 {
        let Some(written) = entry.fields.get(bound.key) else {
            if preset.is_none() && !entry.fields.contains_key("preset") {
                let problem = format!("an objective has no `{}`", bound.key);
                let remedy = format!("add it (one of {}), or a `preset`", bound.words(bound.edges));
                self.errors.push(Diagnostic::at(&entry.origin, problem, remedy));
            }
            return preset.unwrap_or(bound.edges[0]);
        };
        let number = written.text.parse::<f64>().ok().filter(|number| number.is_finite());
        let edge = number.and_then(|number| bound.edges.iter().find(|edge| **edge * bound.scale == number));
        if let Some(edge) = edge {
            return *edge;
        }
        let (problem, near) = match number {
            Some(number) => {
                let problem = format!("{} is not a bucket boundary of {}", written.text, bound.histogram);
                (problem, bound.around(number / bound.scale))
            }
            None => (format!("`{}` is not a number", written.text.escape_debug()), bound.edges.to_vec()),
        };
        self.errors.push(Diagnostic::at(&written.origin, problem, format!("write {}", bound.words(&near))));
        bound.edges[0]
    }

    fn target(&mut self, entry: &Entry) -> f64 {
        let Some(written) = entry.fields.get("target") else { return TARGET_RATIO };
        match written.text.parse::<f64>() {
            Ok(target) if target > 0.0 && target < 1.0 => target,
            _ => {
                let problem = format!("`{}` is not a ratio below 1", written.text.escape_debug());
                let remedy = "write it as in 0.99 for 99 of 100; a target of 1 leaves no error budget";
                self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
                TARGET_RATIO
            }
        }
    }

    pub(super) fn globs(&mut self, entry: &Entry, key: &'static str) -> Vec<Glob> {
        let Some(written) = entry.fields.get(key) else { return Vec::new() };
        let names = written.text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let globs: Vec<_> = names.map(Glob::new).collect();
        if globs.is_empty() {
            let remedy = "name some (`*` matches any text), or remove the line to mean all";
            self.errors.push(Diagnostic::at(&written.origin, format!("`{key}` names none"), remedy));
        }
        // An empty list means all, which warnings of unreachable entries rely on.
        if globs.iter().any(|glob| glob.text() == "*") { Vec::new() } else { globs }
    }
}

fn preset(name: &str) -> Option<Preset> {
    PRESETS.into_iter().find(|preset| preset.name == name)
}

/// A number that must be a bucket boundary.
struct Bound {
    key: &'static str,
    /// The histogram, for error messages.
    histogram: &'static str,
    edges: &'static [f64],
    /// The factor from a bucket boundary to the unit of the key.
    scale: f64,
}

impl Bound {
    /// Returns the bucket boundaries next to a number, below and above.
    fn around(&self, number: f64) -> Vec<f64> {
        let above = self.edges.partition_point(|edge| *edge < number);
        let near = [above.checked_sub(1), Some(above)].into_iter().flatten();
        near.filter_map(|at| self.edges.get(at).copied()).collect()
    }

    fn words(&self, edges: &[f64]) -> String {
        let words: Vec<_> = edges.iter().map(|edge| (edge * self.scale).to_string()).collect();
        match words.as_slice() {
            [below, above] => format!("{below} or {above}"),
            all => all.join(", "),
        }
    }
}

const FIRST_TOKEN: Bound = Bound {
    key: "first_token_ms",
    histogram: "the TTFT histogram, so the verdicts could not be checked against it",
    edges: &FIRST_TOKEN_S,
    scale: 1000.0,
};

const SPEED: Bound = Bound {
    key: "tokens_per_second",
    histogram: "the speed histogram, so the verdicts could not be checked against it",
    edges: &OUTPUT_RATE,
    scale: 1.0,
};

/// The names of the presets.
const NAMES: [&str; PRESETS.len()] = {
    let mut names = [""; PRESETS.len()];
    let mut at = 0;
    while at < PRESETS.len() {
        names[at] = PRESETS[at].name;
        at += 1;
    }
    names
};

/// Objectives that may be listed: those of four groups of users on eight models.
const OBJECTIVES_MAX: usize = 32;

#[cfg(test)]
#[path = "objectives_tests.rs"]
mod tests;
