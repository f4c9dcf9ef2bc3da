//! A stream of no known shape: that there are frames is all that is known of them, but for a model's
//! name and an error where everyone has them.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::of(&[("model", Field::Model), ("error", Field::Error)]));
