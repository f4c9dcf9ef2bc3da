//! The fields that most frames lack, in a separate function to keep the common path small.

use crate::dialect::{Dialect, Form};
use crate::event::Finish;
use crate::field::Field;
use crate::frame::usage::{self, FOREIGN_INPUT, FOREIGN_OUTPUT, Modality, count};
use crate::frame::{Frame, times};
use crate::json::Value;
use crate::name::Tier;

impl Frame {
    /// Reads the value of such a field.
    #[inline(never)]
    pub(super) fn value(&mut self, field: Field, value: Value<'_>) {
        let chars = match value {
            Value::Text { chars } => Some(chars),
            _ => None,
        };
        let number = match value {
            Value::Number(number) => count(number),
            _ => None,
        };
        match field {
            Field::Modality | Field::OutputModality => self.extra.begin_modality(),
            Field::ModalityName => {
                self.extra.modality = match value {
                    Value::Word(word) => Modality::read(word),
                    _ => None,
                }
            }
            Field::ServiceTier => {
                if let Value::Word(word) = value {
                    self.tier = Tier::of(word).unwrap_or(self.tier);
                }
            }
            Field::Stop => self.choice.stopped = value == Value::Bool(true),
            Field::Timings => self.timings.seen = value == Value::Object,
            Field::Progress => self.progress = value == Value::Object,
            Field::TimingsPrompt if is_number(value) => self.timings.prompt = number,
            Field::TimingsCached if is_number(value) => self.timings.cached = number,
            Field::TimingsPredicted if is_number(value) => self.timings.predicted = number,
            Field::Token => self.choice.token = value == Value::Object,
            Field::Generated => self.choice.generated = chars,
            Field::Details => {
                self.choice.detailed = value == Value::Object;
                self.choice.finish = None;
                self.usage = None;
                self.extra.addends = None;
            }
            Field::Blocked => {
                self.blocked = match value {
                    Value::Word(word) => Finish::from_word(word).map(|_| Finish::ContentFilter),
                    _ => None,
                }
            }
            Field::Element => self.in_element = value == Value::Object,
            Field::Root => {
                self.in_element = self.is_list && value == Value::Object;
                self.is_list |= value == Value::List;
            }
            _ if self.dialect == Dialect::Gemini && self.choice.take_part(field, value) => {}
            _ if times::take(&mut self.times, field, value) => {}
            _ if self.typed.take(self.dialect, field, value) => {}
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
            self.usage.get_or_insert_default();
        }
        let counts = match self.typed.counts_inner {
            true => &mut self.typed.inner,
            false => &mut self.usage,
        };
        let Some(counts) = counts else { return };
        match (number, slot, field) {
            (None, _, _) => counts.rejected += 1,
            (_, Some(slot), _) => *slot(counts) = number,
            (Some(n), None, Field::Addend) => {
                self.extra.addends = Some(self.extra.addends.unwrap_or(0).saturating_add(n));
            }
            (_, None, Field::Extra(rank)) => self.extra.ranks[usize::from(rank)] = number,
            _ => {}
        }
    }
}

fn is_number(value: Value<'_>) -> bool {
    matches!(value, Value::Number(_))
}
