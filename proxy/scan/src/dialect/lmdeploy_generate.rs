//! LMDeploy's own `POST /generate`: the keys of SGLang's with the opposite meaning, for text and ids
//! are those of this frame alone.

use std::sync::LazyLock;

use super::sglang_generate::{ELEMENT, FRAME};
use crate::field::Fields;

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, ELEMENT].concat()));
