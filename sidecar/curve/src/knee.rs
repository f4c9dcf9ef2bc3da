//! The knee: the concurrency up to which an objective's speed is kept. The law: kept means that at least
//! half of the streams are faster, counted and not interpolated, because the speed is an edge of the histogram.

use std::fmt;

use live::curve::Basis;
use metrics::PRESETS;

use crate::curves::ConcurrencyPoint;
use crate::reading::Reading;

/// The knee of one objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// The objective's name.
    pub objective: String,
    /// Its minimum speed.
    pub tokens_per_second: f64,
    /// The highest range up to which it is kept in every range.
    pub kept_up_to: Option<&'static str>,
    /// The lowest range at which it is not kept.
    pub missed_at: Option<&'static str>,
    /// Higher ranges in which it is kept nevertheless.
    pub kept_again_at: Vec<&'static str>,
    /// The verdicts, if the objective is configured.
    pub outcome: Option<Outcome>,
}

/// The page's verdicts on an objective, including its first token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Judged exchanges.
    pub exchanges: f64,
    /// Those that met the whole objective.
    pub met: f64,
    /// The target share of exchanges that meet it.
    pub target_ratio: f64,
}

impl Knee {
    /// Returns the objective's origin.
    pub fn basis(&self) -> Basis {
        if self.outcome.is_some() { Basis::Configured } else { Basis::Preset }
    }

    /// Returns a knee for each objective of the model, or for each preset if it has none.
    pub(crate) fn all(reading: &Reading, model: &str, by_concurrency: &[ConcurrencyPoint]) -> Vec<Self> {
        let judged =
            reading.judged.iter().filter(|((name, _), judged)| name == model && judged.exchanges > 0.0);
        let mut configured: Vec<_> = judged
            .filter_map(|((_, name), judged)| {
                let objective = reading.objectives.get(name)?;
                let outcome = Outcome {
                    exchanges: judged.exchanges,
                    met: judged.met,
                    target_ratio: objective.target_ratio,
                };
                Some(Self::of(name, objective.output_rate, Some(outcome), by_concurrency))
            })
            .collect();
        configured.sort_by(|one, other| other.tokens_per_second.total_cmp(&one.tokens_per_second));
        match configured.is_empty() {
            false => configured,
            true => PRESETS
                .iter()
                .map(|preset| Self::of(preset.name, preset.output_rate, None, by_concurrency))
                .collect(),
        }
    }

    fn of(
        objective: &str,
        tokens_per_second: f64,
        outcome: Option<Outcome>,
        by_concurrency: &[ConcurrencyPoint],
    ) -> Self {
        let timed = by_concurrency.iter().filter_map(|point| {
            Some((point.range, point.output_rate.share_above(tokens_per_second)? >= 0.5))
        });
        let (mut kept_up_to, mut missed_at, mut kept_again_at) = (None, None, Vec::new());
        for (range, kept) in timed {
            match (kept, missed_at) {
                (true, None) => kept_up_to = Some(range),
                (true, Some(_)) => kept_again_at.push(range),
                (false, None) => missed_at = Some(range),
                (false, Some(_)) => {}
            }
        }
        Self {
            objective: objective.to_owned(),
            outcome,
            tokens_per_second,
            kept_up_to,
            missed_at,
            kept_again_at,
        }
    }
}

impl fmt::Display for Knee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} tokens/s", self.objective, self.tokens_per_second)?;
        f.write_str(if self.basis() == Basis::Preset { ", a preset): " } else { "): " })?;
        match (self.kept_up_to, self.missed_at) {
            (None, None) => write!(f, "no speed was measured"),
            (Some(kept), None) => write!(f, "kept up to {kept} at once, the highest measured"),
            (Some(kept), Some(missed)) => write!(f, "kept up to {kept} at once, no longer at {missed}"),
            (None, Some(missed)) => write!(f, "not kept at {missed} at once, the lowest measured"),
        }?;
        match self.kept_again_at.as_slice() {
            [] => Ok(()),
            again => {
                write!(f, " (but kept again at {}; check the number of streams per row)", again.join(", "))
            }
        }
    }
}
