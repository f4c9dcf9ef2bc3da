//! Reranking, scoring and classifying, of any server: as for embeddings, only the prompt is counted.

use std::sync::LazyLock;

use super::embeddings::FRAME;
use crate::field::Fields;

/// The fields of this dialect.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(FRAME));
