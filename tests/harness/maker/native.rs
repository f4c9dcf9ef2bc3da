//! llama.cpp's own frames.

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn native_frame(&mut self) {
        if self.dice.one_in(8) { self.list(|maker| maker.native()) } else { self.native() }
    }

    fn native(&mut self) {
        self.object(&[
            ("content", |m| m.string()),
            ("content", |m| m.string()),
            ("index", |m| m.number()),
            ("tokens", |m| m.ids()),
            ("stop", |m| m.rare()),
            ("tokens_predicted", |m| m.number()),
            ("tokens_evaluated", |m| m.number()),
            ("stop_type", |m| m.finish()),
            ("timings", |m| m.timings()),
            ("completion_probabilities", |m| m.list(|m| m.number())),
            ("model", |m| m.string()),
            ("prompt_progress", |m| m.rare()),
            ("error", |m| m.rare()),
        ]);
    }
}
