//! LMDeploy's own `POST /generate`: SGLang's keys with the opposite meaning: text and ids are those of this
//! frame only.

use std::sync::LazyLock;

use super::sglang_generate::{ELEMENT, FRAME};
use crate::field::Fields;

/// The fields of this dialect.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, ELEMENT].concat()));
