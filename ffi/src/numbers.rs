//! The numbers of C's enumerations. They only grow: a number is never reused, and the order of the Rust types behind
//! them may change.

use meter::{Close, Provenance, TokenType};

/// The types of tokens. Those below 100 are disjoint, and `INPUT_ALL` and `OUTPUT_ALL` are their sums.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Computed prompt tokens, other than those of audio, images and videos.
    Input = 0,
    /// Prompt tokens served from a cache, other than those of audio and images that the server states.
    InputCached = 1,
    /// Prompt tokens computed and written to a cache for five minutes, or for a lifetime that is not stated.
    InputCacheWrite = 2,
    /// Computed prompt tokens of audio.
    InputAudio = 3,
    /// Computed prompt tokens of images.
    InputImage = 4,
    /// Computed prompt tokens of videos.
    InputVideo = 5,
    /// Generated tokens, other than those of reasoning, audio, images and videos.
    Output = 6,
    /// Generated reasoning tokens.
    OutputReasoning = 7,
    /// Generated audio tokens.
    OutputAudio = 8,
    /// Generated image tokens.
    OutputImage = 9,
    /// Generated video tokens.
    OutputVideo = 10,
    /// Prompt tokens computed and written to a cache for one hour.
    #[expect(non_camel_case_types, reason = "the underscore is in C's name, INPUT_CACHE_WRITE_1H")]
    InputCacheWrite_1h = 11,
    /// Prompt tokens of audio served from a cache.
    InputCachedAudio = 12,
    /// Prompt tokens of images served from a cache.
    InputCachedImage = 13,
    /// All prompt tokens: the sum of the types of the prompt.
    InputAll = 100,
    /// All generated tokens: the sum of the types of the output.
    OutputAll = 101,
}

/// The source of a count, better with a higher number. All prompt types of a record have one source, and all output
/// types have one.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// No source: the count is not known.
    None = 0,
    /// One token for each event of the stream that has content: an estimate.
    Frames = 1,
    /// A local tokenizer's count of the text. The proxy has this source, the library does not.
    Tokenized = 2,
    /// Token ids or log-probability entries in the response.
    Ids = 3,
    /// The server's own counter, read before the end or covering only some of the answers.
    Running = 4,
    /// The server's final usage, covering every answer.
    Reported = 5,
    /// The counts that the engine passed by `tm_exchange_prompt_tokens` or `tm_output_tokens_add`.
    Engine = 6,
}

/// The end of a response as the host saw it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseKind {
    /// The response ended as its protocol requires.
    Clean = 0,
    /// The client left before that.
    ClientGone = 1,
    /// The response broke off: the engine or the connection to it failed.
    Cut = 2,
    /// The host itself answered, or failed. The ending is `proxy_error`.
    Local = 3,
}

impl TokenKind {
    /// The type and its number, if it is one type.
    pub(crate) fn of(number: u32) -> Option<Self> {
        let types = TokenType::ALL.into_iter().map(Self::of_type);
        types.chain([Self::InputAll, Self::OutputAll]).find(|kind| *kind as u32 == number)
    }

    pub(crate) fn of_type(kind: TokenType) -> Self {
        match kind {
            TokenType::Input => Self::Input,
            TokenType::InputCached => Self::InputCached,
            TokenType::InputCacheWrite => Self::InputCacheWrite,
            TokenType::InputCacheWrite1h => Self::InputCacheWrite_1h,
            TokenType::InputAudio => Self::InputAudio,
            TokenType::InputImage => Self::InputImage,
            TokenType::InputVideo => Self::InputVideo,
            TokenType::InputCachedAudio => Self::InputCachedAudio,
            TokenType::InputCachedImage => Self::InputCachedImage,
            TokenType::Output => Self::Output,
            TokenType::OutputReasoning => Self::OutputReasoning,
            TokenType::OutputAudio => Self::OutputAudio,
            TokenType::OutputImage => Self::OutputImage,
            TokenType::OutputVideo => Self::OutputVideo,
        }
    }
}

impl From<Provenance> for Source {
    fn from(provenance: Provenance) -> Self {
        match provenance {
            Provenance::Engine => Self::Engine,
            Provenance::Reported => Self::Reported,
            Provenance::Running => Self::Running,
            Provenance::Ids => Self::Ids,
            Provenance::Tokenized => Self::Tokenized,
            Provenance::Frames => Self::Frames,
            Provenance::None => Self::None,
        }
    }
}

impl CloseKind {
    /// The end with this number.
    pub(crate) fn close(number: u32) -> Option<Close> {
        let all = [
            (Self::Clean, Close::Clean { whole: false }),
            (Self::ClientGone, Close::ClientGone { whole: false }),
            (Self::Cut, Close::Cut),
            (Self::Local, Close::Local),
        ];
        all.into_iter().find(|(kind, _)| *kind as u32 == number).map(|(_, close)| close)
    }
}
