//! Every bound of the scanner, with its unit and its reason. Nothing a server sends grows our
//! memory beyond them.

/// Bytes of a torn or escaped key, number or captured string we carry. Longest captured value in
/// recordings: a 64-byte model path; longest key we look for: 27 bytes; longest type: 41 bytes.
pub const CARRY_BYTES: usize = 256;

/// Bytes of a model name kept; longer ones are cut on a character boundary (label hygiene). A longer
/// id is not kept at all: LiteLLM's for responses have 190, of which most are the same in all.
pub const MODEL_BYTES: usize = 128;

/// Bytes of a service tier; the longest known word is 13. A longer one is not kept: half a word is
/// another word.
pub const TIER_BYTES: usize = 32;

/// Members of a request that may be wanted because they name somebody: `user`, `safety_identifier`,
/// and keys of `metadata` (OpenAI takes 16 of those).
pub const WANTED: usize = 32;

/// Open objects and arrays whose kind is known. Deeper, where no path leads, brackets are only counted,
/// and whether one closes its own kind is not looked at: a client may choose how deep an answer is that
/// repeats its tools, and must not hide the usage behind them.
pub const DEPTH: u32 = 128;

/// Levels of a field's path. The deepest in any dialect is 8, a tool's name in Gemini's array.
pub const PATH_LEVELS: usize = 8;

/// Events held back until their frame is complete. A frame with more (only an unstreamed body has)
/// lets them go early; only a torn tail could tell the difference.
pub const FRAME_EVENTS: usize = 16;

/// Bytes of a frame's shape that are remembered. Recorded token frames have 120–420.
pub const SHAPE_BYTES: usize = 512;

/// Values that may differ between two frames of one shape. A vLLM frame with running usage has 5.
pub const SHAPE_HOLES: usize = 8;

/// Bytes of an SSE `event:` value kept; the longest known is 41.
pub const EVENT_NAME_BYTES: usize = 48;

/// Bytes of a form's boundary (RFC 2046 §5.1.1: no more than 70).
pub const BOUNDARY_BYTES: usize = 70;

/// Bytes of a header line in a form's part. The longest we look for has 60; of longer ones (a file's
/// name) only this much is read. Where the part's name stands beyond it, the form is not whole.
pub const PART_HEADER_BYTES: usize = 256;

/// Bytes of a form's field that is kept. A model's name is cut at as many.
pub const FIELD_BYTES: usize = 128;
