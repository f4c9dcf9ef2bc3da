//! Ollama's own `POST /api/generate`: as its chat, with the text at the top of the line.

use std::sync::LazyLock;

use super::ollama_chat::COMMON;
use crate::field::{Field, Fields};

/// What is looked for in a line.
const FRAME: &[(&str, Field)] = &[("response", Field::Content), ("thinking", Field::Reasoning)];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[COMMON, FRAME].concat()));
