//! Token counts and their provenance. Provenances never mix: a count has one provenance, and a better source
//! replaces a worse one completely.

/// The source of a count, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// The engine's own token ids, counted inside its process: exact for every ending.
    Engine,
    /// The server's final usage, covering every choice.
    Reported,
    /// The server's own counter, read before the end or covering only some of the choices.
    Running,
    /// Token ids or log-probability entries in the frames.
    Ids,
    /// A local tokenizer's count of the text.
    Tokenized,
    /// One token per frame with content: an estimate.
    Frames,
    /// No source.
    None,
}

impl Provenance {
    /// Every provenance, best first.
    pub const ALL: [Self; 7] =
        [Self::Engine, Self::Reported, Self::Running, Self::Ids, Self::Tokenized, Self::Frames, Self::None];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Reported => "reported",
            Self::Running => "running",
            Self::Ids => "ids",
            Self::Tokenized => "tokenized",
            Self::Frames => "frames",
            Self::None => "none",
        }
    }

    /// Returns true if the server itself counted the whole direction.
    pub fn is_server_total(self) -> bool {
        matches!(self, Self::Engine | Self::Reported)
    }
}

/// The disjoint types of tokens: their sum counts every token once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenType {
    /// Computed prompt tokens, other than those of audio, images and videos.
    Input,
    /// Prompt tokens served from a cache.
    InputCached,
    /// Prompt tokens computed and written to a cache for five minutes, or for a lifetime that is not stated.
    InputCacheWrite,
    /// Prompt tokens computed and written to a cache for one hour.
    InputCacheWrite1h,
    /// Computed prompt tokens of audio: neither from a cache nor written to one.
    InputAudio,
    /// Computed prompt tokens of images.
    InputImage,
    /// Computed prompt tokens of videos.
    InputVideo,
    /// Generated tokens, other than those of reasoning, audio, images and videos.
    Output,
    /// Generated reasoning tokens.
    OutputReasoning,
    /// Generated audio tokens.
    OutputAudio,
    /// Generated image tokens.
    OutputImage,
    /// Generated video tokens.
    OutputVideo,
}

impl TokenType {
    /// Every type, input before output.
    pub const ALL: [Self; 12] = [
        Self::Input,
        Self::InputCached,
        Self::InputCacheWrite,
        Self::InputCacheWrite1h,
        Self::InputAudio,
        Self::InputImage,
        Self::InputVideo,
        Self::Output,
        Self::OutputReasoning,
        Self::OutputAudio,
        Self::OutputImage,
        Self::OutputVideo,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::InputCached => "input_cached",
            Self::InputCacheWrite => "input_cache_write",
            Self::InputCacheWrite1h => "input_cache_write_1h",
            Self::InputAudio => "input_audio",
            Self::InputImage => "input_image",
            Self::InputVideo => "input_video",
            Self::Output => "output",
            Self::OutputReasoning => "output_reasoning",
            Self::OutputAudio => "output_audio",
            Self::OutputImage => "output_image",
            Self::OutputVideo => "output_video",
        }
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
