//! Gemini: candidates, parts, and a running count in every frame.

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn gemini(&mut self, unstreamed: bool) {
        if unstreamed && self.dice.one_in(3) {
            return self.list(Self::gemini_frame);
        }
        self.gemini_frame();
    }

    fn gemini_frame(&mut self) {
        self.object(&[
            ("candidates", |m| m.list(Self::candidate)),
            ("promptFeedback", |m| {
                if m.dice.one_in(6) {
                    m.object(&[("blockReason", |m| m.word(&["SAFETY", "OTHER"]))]);
                } else {
                    m.put("null");
                }
            }),
            ("usageMetadata", |m| {
                m.object(&[
                    ("promptTokenCount", |m| m.number()),
                    ("toolUsePromptTokenCount", |m| m.number()),
                    ("cachedContentTokenCount", |m| m.number()),
                    ("candidatesTokenCount", |m| m.number()),
                    ("thoughtsTokenCount", |m| m.number()),
                    ("totalTokenCount", |m| m.number()),
                    ("promptTokensDetails", |m| m.list(Self::details)),
                    ("cacheTokensDetails", |m| m.list(Self::details)),
                    ("candidatesTokensDetails", |m| m.list(Self::details)),
                ]);
            }),
            ("modelVersion", |m| m.string()),
            ("responseId", |m| m.string()),
            ("error", |m| m.seldom()),
        ]);
    }

    fn details(&mut self) {
        self.object(&[
            ("modality", |m| m.word(&["TEXT", "AUDIO", "IMAGE", "VIDEO"])),
            ("tokenCount", |m| m.number()),
        ]);
    }

    fn candidate(&mut self) {
        self.object(&[
            ("content", |m| {
                m.object(&[
                    ("parts", |m| {
                        m.list(|m| {
                            m.object(&[
                                ("text", |m| m.string()),
                                ("thought", |m| m.flag()),
                                ("functionCall", |m| {
                                    m.object(&[
                                        ("name", |m| m.string()),
                                        ("args", |m| m.object(&[("text", |m| m.string())])),
                                    ]);
                                }),
                            ]);
                        });
                    }),
                    ("role", |m| m.string()),
                ]);
            }),
            ("finishReason", |m| {
                if m.dice.one_in(3) {
                    m.word(&[
                        "STOP",
                        "MAX_TOKENS",
                        "SAFETY",
                        "SPII",
                        "IMAGE_SAFETY",
                        "MALFORMED_FUNCTION_CALL",
                    ]);
                } else {
                    m.put("null");
                }
            }),
            ("index", |m| m.number()),
        ]);
    }
}
