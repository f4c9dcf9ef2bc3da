//! `POST …/v1/completions`: text in `choices[].text`, no roles; one choice per prompt and answer.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// The fields of this dialect.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let mut paths = super::openai::COMMON.to_vec();
    paths.extend([("choices[].text", Field::Content), ("choices[].logprobs.tokens", Field::Logprobs)]);
    Fields::of(&paths)
});
