//! Frames in the shape of another dialect than the body's: their counts, and the dialect from then on.

use crate::counts::{Count, Counts};
use crate::dialect::{Dialect, Form, foreign_count, foreign_mark};
use crate::event::{Scope, Usage};
use crate::field::Field;
use crate::frame::Frame;
use crate::frame::usage;
use crate::json::Value;

impl Frame {
    /// Reads a member of another dialect.
    #[cold]
    pub(super) fn take_foreign(&mut self, field: Field, value: Value<'_>) {
        match (field, value) {
            (Field::Foreign(at), _) => self.body.uncommon().foreign.take(foreign_count(at), value),
            (Field::Mark(at), _) if value != Value::Null => {
                // The Responses API has an object in the place of Ollama's text, and Workers AI an empty one beside the
                // total of a chat.
                let is_text = !matches!(value, Value::Object | Value::Word(b""));
                let is_meant = |dialect: &_| *dialect != Dialect::OllamaGenerate || is_text;
                self.mark_foreign(foreign_mark(at).filter(is_meant));
            }
            (Field::MarkType, Value::Word(word)) => self.mark_foreign(Dialect::of_type(word)),
            _ => {}
        }
    }

    /// Records a mark of another dialect.
    pub(super) fn mark_foreign(&mut self, mark: Option<Dialect>) {
        if let Some(dialect) = mark.filter(|dialect| *dialect != self.dialect) {
            self.body.uncommon().foreign.mark.get_or_insert(dialect);
        }
    }

    /// Returns the usage of a frame of which `own` is the usage by the body's dialect, and finds the dialect from then
    /// on.
    #[cold]
    pub(super) fn usage_with_foreign(&mut self, own: Option<Usage>) -> Option<Usage> {
        let foreign = self.body.uncommon().foreign;
        if !self.body.follows {
            return own;
        }
        let is_read = self.is_read(foreign.mark.is_some());
        // Anthropic's cached tokens are beside its prompt, and other dialects read them as a part of theirs.
        let is_inside = !matches!(self.dialect.form(), Form::Opaque) && !foreign.excludes_cache();
        let is_beside = foreign.mark == Some(Dialect::Anthropic) && !is_read && is_inside;
        let with_cache = |usage: Usage| match is_beside {
            true => Usage { counts: usage::with_cache(usage.counts), ..usage },
            false => usage,
        };
        let own = own.map(with_cache);
        let pending = self.pending.take_usage().map(with_cache);
        let stated = own.or(pending);
        let has_output =
            |usage: Option<Usage>| usage.is_some_and(|usage| usage.counts.or_zero(Count::Output) > 0);
        let scope = if self.unstreamed { Scope::Whole } else { Scope::Running(0) };
        // A total alone is the prompt of a ranking.
        let has_side =
            |usage: &Usage| [Count::Input, Count::Output].map(|one| usage.counts.get(one)) != [None; 2];
        let is_total = stated.is_some_and(|usage| !has_side(&usage));
        let found = match foreign.is_counted && !(is_read && has_output(stated)) || !is_read && is_total {
            true => usage::non_empty(foreign.counts(&self.own_counts())),
            false => None,
        };
        let found = found.map(|counts| with_cache(Usage { scope, counts }));
        if let Some(mark) = foreign.mark.filter(|_| !is_read) {
            let usage = found.or(stated);
            let is_shown = match self.dialect.form() {
                Form::Opaque => true,
                // An embedding may be in any server's shape.
                Form::Prompt => !self.unstreamed || has_output(usage),
                _ => !self.unstreamed || usage.is_some(),
            };
            if is_shown {
                self.body.response_dialect = Some(mark);
            }
            if !self.unstreamed {
                // What its members mean to the body's dialect is no answer.
                self.pending.clear();
                self.becomes = Some(mark);
                return usage;
            }
        }
        if found.is_some() {
            return found;
        }
        self.pending.set_usage(pending);
        own
    }

    /// The numbers of the dialect's own usage object, as they stand.
    fn own_counts(&self) -> Counts {
        let counts = self.facts.usage.unwrap_or_default();
        match self.dialect.form() {
            Form::Prompt => usage::of_prompt(counts, &self.facts.extra),
            Form::Typed | Form::List => usage::or_foreign(counts, &self.facts.extra),
            Form::Native | Form::Opaque => counts,
        }
    }

    /// Returns true if the frame is one of the body's dialect. A usage that several dialects share says nothing in a
    /// frame that `has_mark` of another.
    fn is_read(&self, has_mark: bool) -> bool {
        let facts = &self.facts;
        match self.dialect.form() {
            Form::List => {
                let has_usage = facts.usage.is_some_and(|counts| !counts.is_empty());
                facts.choices.listed.is_some() || has_usage && !has_mark
            }
            Form::Native => self.pending.has_answer(),
            Form::Typed => facts.typed.is_known(self.unstreamed),
            Form::Prompt => facts.extra.prompt(None).is_some() && !has_mark,
            Form::Opaque => false,
        }
    }

    /// Takes the dialect of the frames after this one, if it is another than before, and carries the counts over to it.
    pub(crate) fn take_next_dialect(&mut self) -> Option<Dialect> {
        let next = self.becomes.take()?;
        let foreign = std::mem::take(&mut self.body.uncommon().foreign);
        let earlier = self.body.earlier.take().map(|earlier| *earlier);
        if next == Dialect::Anthropic {
            let of_unknown = earlier.filter(|_| self.dialect == Dialect::Unknown);
            let counts = of_unknown.unwrap_or_else(|| foreign.counts(&Counts::default()));
            // Its prompt excludes these parts.
            let cache = counts.or_zero(Count::InputCached) + counts.cache_writes();
            let input = counts.get(Count::Input).map(|input| input.saturating_sub(cache));
            self.body.set_earlier(counts.with(Count::Input, input));
        }
        Some(next)
    }

    /// Forgets the members of the current frame; the counts stay.
    pub(super) fn forget_foreign(&mut self) {
        if let Some(uncommon) = &mut self.body.uncommon {
            uncommon.foreign.mark = None;
            uncommon.foreign.is_counted = false;
        }
    }
}
