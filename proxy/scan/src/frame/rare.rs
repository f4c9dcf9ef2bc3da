//! The fields that most frames lack, in a separate function to keep the common path small.

use crate::counts::{Count, Counts};
use crate::dialect::{Dialect, Form};
use crate::event::Finish;
use crate::field::Field;
use crate::frame::facts::{Nesting, Subject};
use crate::frame::usage::{self, FOREIGN_INPUT, FOREIGN_OUTPUT, Part, count, quoted_count};
use crate::frame::{Frame, times};
use crate::json::Value;
use crate::name::{self, Dimension, Name};

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
            Field::Modality | Field::CachedModality | Field::ToolModality => self.facts.extra.begin_part(),
            Field::OutputModality | Field::CacheLifetime | Field::Metric => self.facts.extra.begin_part(),
            Field::MetricValue => self.facts.extra.ranks[1] = number,
            Field::Foreign(_) | Field::Mark(_) | Field::MarkType => self.take_foreign(field, value),
            Field::Type => {
                self.facts.typed.take(self.dialect, field, value);
                if let (Value::Word(word), true) = (value, self.facts.typed.is_other()) {
                    self.mark_foreign(Dialect::of_type(word));
                }
            }
            Field::PartName => {
                self.facts.extra.part = match value {
                    Value::Word(word) => Part::read(word),
                    _ => None,
                }
            }
            Field::ServiceTier | Field::Dimension(_) => {
                if let Value::Word(word) = value {
                    let dimension = if let Field::Dimension(one) = field { one } else { Dimension::Tier };
                    self.body.names.state_price(dimension, word);
                }
            }
            Field::InputOrParts | Field::OutputOrParts if value == Value::Object => {}
            Field::InputOrParts => self.count_tokens(Field::Extra(FOREIGN_INPUT), value),
            Field::OutputOrParts => self.count_tokens(Field::Count(Count::Output), value),
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
            Field::JobId => {
                if let (Value::Word(word), true) = (value, self.unstreamed) {
                    let job = &mut self.body.uncommon().job;
                    *job = job.take().or_else(|| Name::whole_str(word).and_then(name::shared));
                }
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
            Field::Iteration => {
                let is_pass = value == Value::Object;
                self.facts.typed.counts_inner = is_pass;
                self.facts.typed.inner = is_pass.then(Counts::default);
                self.facts.passes.get_or_insert_default().begin();
            }
            Field::ItemType => {
                self.body.names.is_compacted |= value == Value::Word(b"compaction");
                self.facts.typed.take(self.dialect, field, value);
            }
            Field::IterationType => {
                self.body.names.is_compacted |= value == Value::Word(b"compaction");
                if let Some(passes) = &mut self.facts.passes {
                    passes.take_type(value);
                }
            }
            Field::InnerUsage if self.dialect == Dialect::Unknown => {
                let is_only = self.facts.usage.is_none();
                if is_only && value == Value::Object {
                    self.facts.usage = Some(Counts::default());
                }
                // The numbers of a second one go nowhere.
                let is_second = !is_only && value == Value::Object;
                (self.facts.typed.inner, self.facts.typed.counts_inner) = (None, is_second);
            }
            Field::InnerUsage => {
                self.facts.choice.has_usage = value == Value::Object;
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
        if !matches!(field, Field::Count(_) | Field::Addend | Field::Extra(_)) {
            return;
        }
        let number = match value {
            Value::Number(number) => count(number),
            Value::Null => return,
            value => quoted_count(value),
        };
        let is_foreign = matches!(field, Field::Extra(FOREIGN_INPUT | FOREIGN_OUTPUT));
        if matches!(self.dialect.form(), Form::Native | Form::Prompt | Form::Opaque) || is_foreign {
            self.facts.usage.get_or_insert_default();
        }
        let Some(counts) = self.facts.counts() else { return };
        match (number, field) {
            (None, _) => counts.rejected += 1,
            (Some(number), Field::Count(count)) => usage::take(counts, count, number),
            (_, Field::Addend) => self.facts.extra.addends = usage::sum(self.facts.extra.addends, number),
            (Some(0), Field::Extra(rank)) => {
                self.facts.extra.ranks[usize::from(rank)].get_or_insert(0);
            }
            (_, Field::Extra(rank)) => self.facts.extra.ranks[usize::from(rank)] = number,
            _ => {}
        }
    }
}

fn is_number(value: Value<'_>) -> bool {
    matches!(value, Value::Number(_))
}
