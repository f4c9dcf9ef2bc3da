//! Token counts and their provenance. Provenances never mix: a count has one provenance, and a better source
//! replaces a worse one completely.

scan::listed_enum! {
    /// The source of a count, best first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Provenance {
        /// The engine's own token ids, counted inside its process: exact for every ending.
        Engine = "engine",
        /// The server's final usage, covering every choice.
        Reported = "reported",
        /// The server's own counter, read before the end or covering only some of the choices.
        Running = "running",
        /// Token ids or log-probability entries in the frames.
        Ids = "ids",
        /// A local tokenizer's count of the text.
        Tokenized = "tokenized",
        /// One token per frame with content: an estimate.
        Frames = "frames",
        /// No source.
        None = "none",
    }
    /// The label value.
    pub fn name(self);
}

impl Provenance {
    /// Returns true if the server itself counted the whole direction.
    pub fn is_server_total(self) -> bool {
        matches!(self, Self::Engine | Self::Reported)
    }
}

scan::listed_enum! {
    /// The disjoint types of tokens, input before output: their sum counts every token once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TokenType {
        /// Computed prompt tokens, other than those of audio, images and videos.
        Input = "input",
        /// Prompt tokens served from a cache, other than those of audio and images that the server states.
        InputCached = "input_cached",
        /// Prompt tokens computed and written to a cache for five minutes, or for a lifetime that is not stated.
        InputCacheWrite = "input_cache_write",
        /// Prompt tokens computed and written to a cache for one hour.
        InputCacheWrite1h = "input_cache_write_1h",
        /// Computed prompt tokens of audio: neither from a cache nor written to one.
        InputAudio = "input_audio",
        /// Computed prompt tokens of images.
        InputImage = "input_image",
        /// Computed prompt tokens of videos.
        InputVideo = "input_video",
        /// Prompt tokens of audio served from a cache.
        InputCachedAudio = "input_cached_audio",
        /// Prompt tokens of images served from a cache.
        InputCachedImage = "input_cached_image",
        /// Generated tokens, other than those of reasoning, audio, images and videos.
        Output = "output",
        /// Generated reasoning tokens.
        OutputReasoning = "output_reasoning",
        /// Generated audio tokens.
        OutputAudio = "output_audio",
        /// Generated image tokens.
        OutputImage = "output_image",
        /// Generated video tokens.
        OutputVideo = "output_video",
    }
    /// The label value.
    pub fn name(self);
}

impl TokenType {
    /// Returns true for a type of the prompt that a cache served.
    pub fn is_cached(self) -> bool {
        matches!(self, Self::InputCached | Self::InputCachedAudio | Self::InputCachedImage)
    }

    /// Returns true for a type of the prompt.
    pub fn is_input(self) -> bool {
        matches!(
            self,
            Self::Input
                | Self::InputCached
                | Self::InputCacheWrite
                | Self::InputCacheWrite1h
                | Self::InputAudio
                | Self::InputImage
                | Self::InputVideo
                | Self::InputCachedAudio
                | Self::InputCachedImage
        )
    }
}

/// The tokens of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The provenance of the input counts.
    pub input_provenance: Provenance,
    /// The provenance of the output counts.
    pub output_provenance: Provenance,
    /// Counts by [`TokenType`], in the order of [`TokenType::ALL`].
    pub by_type: [u64; TokenType::ALL.len()],
}

impl Tokens {
    /// Returns true if the tokens of at least one direction are known. Without a provenance, zeros are
    /// not counts.
    pub fn is_counted(&self) -> bool {
        self.input_provenance != Provenance::None || self.output_provenance != Provenance::None
    }
}

impl Tokens {
    /// Unknown counts, without a price.
    pub const NONE: Self = Self {
        input_provenance: Provenance::None,
        output_provenance: Provenance::None,
        by_type: [0; TokenType::ALL.len()],
    };

    /// The count of one type.
    pub fn of(&self, kind: TokenType) -> u64 {
        self.by_type[kind as usize]
    }

    /// All prompt tokens, cached ones included.
    pub fn input(&self) -> u64 {
        self.sum(TokenType::is_input)
    }

    /// The prompt tokens served from a cache, of all modalities.
    pub fn cached(&self) -> u64 {
        self.sum(TokenType::is_cached)
    }

    /// The prompt tokens of text served from a cache; `None` if the server does not report the modalities of the cached
    /// tokens. Those of videos have no type: if the prompt has videos, the rest may be theirs.
    pub fn cached_text(&self) -> Option<u64> {
        let named = self.of(TokenType::InputCachedAudio).saturating_add(self.of(TokenType::InputCachedImage));
        let is_text = named > 0 && self.of(TokenType::InputVideo) == 0;
        is_text.then(|| self.of(TokenType::InputCached))
    }

    /// All generated tokens, hidden ones included.
    pub fn output(&self) -> u64 {
        self.sum(|kind| !kind.is_input())
    }

    fn sum(&self, belongs: impl Fn(TokenType) -> bool) -> u64 {
        TokenType::ALL
            .into_iter()
            .filter(|&kind| belongs(kind))
            .map(|kind| self.of(kind))
            .fold(0, u64::saturating_add)
    }

    /// The provenance of a type's count.
    pub fn provenance(&self, kind: TokenType) -> Provenance {
        if kind.is_input() { self.input_provenance } else { self.output_provenance }
    }
}
