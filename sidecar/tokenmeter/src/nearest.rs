//! The word somebody probably meant.

use strsim::osa_distance;

/// The known word nearest to `word`, if it is near enough to be a slip of the pen.
pub(crate) fn word<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let meant = plain(word);
    known
        .map(|candidate| (osa_distance(&meant, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        const KNOWN: [&str; 4] = ["listen", "stall_ms", "upstreams", "llama_cpp"];
        for (written, meant) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("stall-ms", Some("stall_ms")),
            ("upstream", Some("upstreams")),
            ("llama.cpp", Some("llama_cpp")),
            ("llamacpp", Some("llama_cpp")),
            ("timeout", None),
            ("", None),
        ] {
            assert_eq!(word(written, KNOWN.into_iter()), meant, "{written}");
        }
    }
}
