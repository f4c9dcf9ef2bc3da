//! vLLM's `POST /inference/v1/generate`, tokens in and tokens out: the frames of its OpenAI routes
//! without text, so each delta is empty and its ids say what it cost.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::of(&[super::openai::COMMON, &[("request_id", Field::Id)]].concat()));
