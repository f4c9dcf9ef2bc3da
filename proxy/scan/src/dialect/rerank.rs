//! Reranking, scoring and classifying, of any server: as embeddings, only the prompt is counted.

use std::sync::LazyLock;

use super::embeddings::FRAME;
use crate::field::Fields;

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(FRAME));
