//! The knee: up to how many at once an objective's speed is kept. The law: kept is what more than
//! half of the streams reach, counted and not interpolated, since a bound is an edge of the histogram.

use std::fmt;

use metrics::PRESETS;

use crate::curves::Crowd;
use crate::reading::Reading;

/// Where one objective's speed ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// The objective's name.
    pub objective: String,
    /// Its least speed.
    pub tokens_per_second: f64,
    /// The highest range at which, and below which, it is kept.
    pub kept_up_to: Option<&'static str>,
    /// The lowest range at which it is not kept.
    pub missed_at: Option<&'static str>,
    /// Ranges above that at which it is kept all the same.
    pub kept_again_at: Vec<&'static str>,
    /// What came of all of it, if somebody set it.
    pub outcome: Option<Outcome>,
}

/// What came of an objective, its first token included: the verdicts of the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Exchanges that it was counted for.
    pub exchanges: f64,
    /// Those of them that met all of it.
    pub met: f64,
    /// The share that was to meet it.
    pub target_ratio: f64,
}

/// Who set an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Whoever configured that tokenmeter.
    Configured,
    /// Nobody: the presets, so that one sees what could be promised.
    Preset,
}

impl Basis {
    /// The word used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Preset => "preset",
        }
    }
}

impl Knee {
    /// Who set the objective.
    pub fn basis(&self) -> Basis {
        if self.outcome.is_some() { Basis::Configured } else { Basis::Preset }
    }

    /// One for each objective the model was judged by; where there are none, for each preset.
    pub(crate) fn all(reading: &Reading, model: &str, crowds: &[Crowd]) -> Vec<Self> {
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
                Some(Self::of(name, objective.output_rate, Some(outcome), crowds))
            })
            .collect();
        configured.sort_by(|one, other| other.tokens_per_second.total_cmp(&one.tokens_per_second));
        match configured.is_empty() {
            false => configured,
            true => {
                PRESETS.iter().map(|preset| Self::of(preset.name, preset.output_rate, None, crowds)).collect()
            }
        }
    }

    fn of(objective: &str, tokens_per_second: f64, outcome: Option<Outcome>, crowds: &[Crowd]) -> Self {
        let timed = crowds.iter().filter_map(|crowd| {
            Some((crowd.range, crowd.output_rate.share_above(tokens_per_second)? >= 0.5))
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
            (None, None) => write!(f, "no stream had a speed"),
            (Some(kept), None) => write!(f, "kept up to {kept} at once, the most there were"),
            (Some(kept), Some(missed)) => write!(f, "kept up to {kept} at once, no longer at {missed}"),
            (None, Some(missed)) => write!(f, "not kept at {missed} at once, the fewest there were"),
        }?;
        match self.kept_again_at.as_slice() {
            [] => Ok(()),
            again => write!(f, " (but again at {}: look at how many streams each row has)", again.join(", ")),
        }
    }
}
