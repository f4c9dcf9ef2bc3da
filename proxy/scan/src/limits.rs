//! The limits of the scanner, with units and reasons. No input exceeds them.

/// Bytes of the carry buffer: a split or escaped key, number or captured string. The longest captured value
/// in recordings is a model path of 64 bytes, the longest key has 27 and the longest type 41.
pub const CARRY_BYTES: usize = 256;

/// Bytes of a model name; longer ones are cut on a character boundary, for use as a label. A longer id is
/// not kept: LiteLLM's ids of responses have 190 bytes, most of them equal in all.
pub const MODEL_BYTES: usize = 128;

/// Names of models that are kept of one request beside the first one. OpenRouter takes 3 models, and LiteLLM's fallbacks
/// have no limit: a request with more has no certain model.
pub const OTHER_MODELS_MAX: usize = 16;

/// Bytes of a service tier; the longest known word has 13. A longer one is not kept: half a word is another
/// word.
pub const TIER_BYTES: usize = 32;

/// Members of a request that may be configured to identify a person or account: `user`, `safety_identifier`,
/// and keys of `metadata` (OpenAI allows 16).
pub const MAX_SELECTED_MEMBERS: usize = 32;

/// Bytes of the name of a member of a usage object that no path names; the longest known name has 41. In a longer one
/// only its length is of interest: a name that is cut is another name.
pub const UNKNOWN_NAME_BYTES: usize = 64;

/// Unknown members of usage objects that are reported of one frame, and of one exchange; the largest usage object known
/// has 20 numbers.
pub const FRAME_MAX_UNKNOWN: usize = 8;

/// Open objects and arrays with a known kind. Deeper, where no path leads, brackets are only counted, and
/// their kinds are not compared. The client controls the depth of an answer that repeats its tools, and must
/// not hide the usage after them.
pub const MAX_DEPTH: u32 = 128;

/// Levels of a field's path. The deepest path of any dialect has 8: a tool's name in Gemini's array.
pub const PATH_LEVELS: usize = 8;

/// Events held back until their frame is complete. A frame with more (only in an unstreamed body) releases
/// them early; only a torn tail would show the difference.
pub const FRAME_MAX_EVENTS: usize = 16;

/// Bytes of a frame's shape that are kept. Recorded token frames have 120 to 420.
pub const SHAPE_BYTES: usize = 512;

/// Variable values in frames of one shape. A vLLM frame with running usage has 5.
pub const SHAPE_MAX_SPANS: usize = 8;

/// Unused frame states that a thread keeps, of some 2 KiB each. A stream whose last slice ended inside a frame holds
/// one; if more streams do so at a time, a torn frame costs an allocation.
pub const FREE_SCRATCHES: usize = 16;

/// Bytes of an SSE `event:` value kept; the longest known is 41.
pub const EVENT_NAME_BYTES: usize = 48;

/// Bytes of a message of an AWS event stream; the format allows 128 KiB of headers and 24 MiB of payload. What follows a
/// longer one is not read.
pub const MESSAGE_MAX_BYTES: u32 = 32 << 20;

/// Bytes of its headers that are kept; Bedrock's have about 100.
pub const MESSAGE_HEADERS_BYTES: usize = 256;

/// Bytes of a wrapped payload that are decoded at a time: the state of a stream keeps them.
pub const DECODED_BYTES: usize = 192;

/// Bytes of a form's boundary (RFC 2046 §5.1.1: at most 70).
pub const BOUNDARY_BYTES: usize = 70;

/// Bytes of a header line in a form's part. The longest relevant one has 60; longer ones (a file's name) are
/// read up to this limit. If the part's name is beyond it, the form is incomplete.
pub const PART_HEADER_BYTES: usize = 256;

/// Bytes of a form's field. A model's name is cut at the same length.
pub const FIELD_BYTES: usize = 128;
