//! Ollama's own `POST /api/generate`: like its chat, with the text at the top level of the line.

use std::sync::LazyLock;

use super::ollama_chat::COMMON;
use crate::field::{Field, Fields};

/// The fields of a line.
const FRAME: &[(&str, Field)] = &[("response", Field::Content), ("thinking", Field::Reasoning)];

/// The fields of this dialect.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[COMMON, FRAME].concat()));
