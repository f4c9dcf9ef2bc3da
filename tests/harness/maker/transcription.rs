//! Transcriptions: vLLM's chunks, OpenAI's and llama.cpp's typed events.

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn transcription(&mut self, unstreamed: bool) {
        if unstreamed {
            return self.object(&[
                ("text", |m| m.string()),
                ("segments", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
                ("usage", |m| m.transcription_usage()),
            ]);
        }
        match self.dice.below(6) {
            0 => self.typed(
                "transcript.text.done",
                &[("text", |m| m.string()), ("usage", |m| m.transcription_usage())],
            ),
            1 | 2 => self.typed("transcript.text.delta", &[("delta", |m| m.string())]),
            _ => self.object(&[
                ("choices", |m| {
                    m.list(|m| {
                        m.object(&[
                            ("delta", |m| m.object(&[("content", |m| m.string())])),
                            ("finish_reason", |m| m.finish()),
                        ]);
                    });
                }),
                ("usage", |m| if m.dice.one_in(3) { m.transcription_usage() } else { m.put("null") }),
                ("metrics", |m| m.metrics()),
                ("error", |m| m.seldom()),
            ]),
        }
    }

    fn transcription_usage(&mut self) {
        match self.dice.below(4) {
            3 => self.usage(),
            0 => self.put(r#"{"type":"duration","seconds":4}"#),
            1 => self.object(&[("input_tokens", |m| m.number()), ("output_tokens", |m| m.number())]),
            _ => self.object(&[("prompt_tokens", |m| m.number()), ("completion_tokens", |m| m.number())]),
        }
    }
}
