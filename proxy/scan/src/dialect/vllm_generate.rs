//! vLLM's `POST /inference/v1/generate`, tokens in and tokens out: the frames of its OpenAI routes without
//! text, so each delta is empty and its ids are the count.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// The fields of this dialect.
pub(crate) static FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::of(&[super::openai::COMMON, &[("request_id", Field::Id)]].concat()));
