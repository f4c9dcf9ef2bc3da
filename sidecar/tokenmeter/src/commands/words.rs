//! The value parser for a closed set of words that another crate names.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the parser that accepts the names of `all`.
pub(crate) fn one_of<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).map(move |word| {
        all.into_iter().find(|one| name(*one) == word).expect("clap accepts only the names of `all`")
    })
}
