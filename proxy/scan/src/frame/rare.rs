//! The fields that most frames lack, in a separate function to keep the common path small.

use crate::dialect::{Dialect, Form};
use crate::event::Finish;
use crate::field::Field;
use crate::frame::facts::{Nesting, Subject};
use crate::frame::usage::{self, FOREIGN_INPUT, FOREIGN_OUTPUT, Modality, count};
use crate::frame::{Frame, times};
use crate::json::Value;
use crate::name::Tier;

impl Frame {
    /// Reads the value of such a field.
    #[inline(never)]
    pub(super) fn value(&mut self, field: Field, value: Value<'_>) {
        if let Some(envelope) = &mut self.envelope {
            envelope.take(field, value);
        }
        let chars = match value {
            Value::Text { chars } => Some(chars),
            _ => None,
        };
        let number = match value {
            Value::Number(number) => count(number),
            _ => None,
        };
        match field {
            Field::Modality | Field::OutputModality => self.facts.extra.begin_modality(),
            Field::ModalityName => {
                self.facts.extra.modality = match value {
                    Value::Word(word) => Modality::read(word),
                    _ => None,
                }
            }
            Field::ServiceTier => {
                if let Value::Word(word) = value
                    && let Some(tier) = Tier::str_of(word)
                    && self.body.names.tier.as_deref() != Some(tier)
                {
                    self.body.names.tier = Some(tier.into());
                }
            }
            Field::Stop => self.facts.choice.stopped = value == Value::Bool(true),
            Field::Timings => self.facts.timings.seen = value == Value::Object,
            Field::Progress if value == Value::Object => self.facts.raise(Subject::Progress),
            // The last of two members counts.
            Field::Progress if self.facts.subject == Subject::Progress => {
                self.facts.subject = Subject::Answers;
            }
            Field::Progress => {}
            Field::TimingsPrompt if is_number(value) => self.facts.timings.prompt = number,
            Field::TimingsCached if is_number(value) => self.facts.timings.cached = number,
            Field::TimingsPredicted if is_number(value) => self.facts.timings.predicted = number,
            Field::Token => self.facts.choice.token = value == Value::Object,
            Field::Generated => self.facts.choice.generated = chars,
            Field::Details => {
                self.facts.choice.detailed = value == Value::Object;
                self.facts.choice.finish = None;
                self.facts.usage = None;
                self.facts.extra.addends = None;
            }
            Field::Blocked => {
                self.facts.choices.blocked = match value {
                    Value::Word(word) => Finish::from_word(word).map(|_| Finish::ContentFilter),
                    _ => None,
                }
            }
            Field::Element if value == Value::Object => self.facts.nesting = Nesting::Element,
            Field::Element => self.facts.nesting = Nesting::List,
            Field::Root => self.facts.nesting = self.facts.nesting.at_root(value),
            Field::InnerUsage => {
                self.facts.extra.ranks[..2].fill(None);
                self.facts.typed.take(self.dialect, field, value);
            }
            _ if self.dialect == Dialect::Gemini && self.facts.choice.take_part(field, value) => {}
            _ if times::take(&mut self.facts.times, field, value) => {}
            _ if self.facts.typed.take(self.dialect, field, value) => {}
            _ => self.count_tokens(field, value),
        }
    }

    /// Reads a token count of the usage object, or of a frame that is its own usage.
    pub(super) fn count_tokens(&mut self, field: Field, value: Value<'_>) {
        let slot = usage::slot(field);
        if slot.is_none() && !matches!(field, Field::Addend | Field::Extra(_)) {
            return;
        }
        let number = match value {
            Value::Number(number) => count(number),
            Value::Null => return,
            _ => None,
        };
        let is_foreign = matches!(field, Field::Extra(FOREIGN_INPUT | FOREIGN_OUTPUT));
        if matches!(self.dialect.form(), Form::Native | Form::Prompt | Form::Opaque) || is_foreign {
            self.facts.usage.get_or_insert_default();
        }
        let Some(counts) = self.facts.counts() else { return };
        match (number, slot, field) {
            (None, _, _) => counts.rejected += 1,
            (_, Some(slot), _) => *slot(counts) = number,
            (Some(n), None, Field::Addend) => {
                self.facts.extra.addends = Some(self.facts.extra.addends.unwrap_or(0).saturating_add(n));
            }
            (_, None, Field::Extra(rank)) => self.facts.extra.ranks[usize::from(rank)] = number,
            _ => {}
        }
    }
}

fn is_number(value: Value<'_>) -> bool {
    matches!(value, Value::Number(_))
}
