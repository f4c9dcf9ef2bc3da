//! Predefined objectives for four kinds of use. Invariant: every bound is a bucket edge of its histogram.

/// The bounds for one kind of use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Maximum time to the first token, nanoseconds.
    pub first_token_ns: u64,
    /// Minimum speed, tokens per second.
    pub output_rate: f64,
}

/// The presets, most demanding first.
///
/// - `voice`: speech. In conversation people respond within about 200 ms.
/// - `chat`: the user waits for the whole answer or skims it. A second does not interrupt the flow of thought.
/// - `reading`: the user reads along. Three times the speed of reading, after the time that MLPerf allows a server
///   (2 s), rounded up to the next edge.
/// - `floor`: below it users leave; ten seconds is the limit of attention.
pub const PRESETS: [Preset; 4] = [
    Preset { name: "voice", first_token_ns: 250_000_000, output_rate: 100.0 },
    Preset { name: "chat", first_token_ns: 1_000_000_000, output_rate: 30.0 },
    Preset { name: "reading", first_token_ns: 2_500_000_000, output_rate: 15.0 },
    Preset { name: "floor", first_token_ns: 10_000_000_000, output_rate: 10.0 },
];

/// Default target share of exchanges that meet an objective.
pub const TARGET_RATIO: f64 = 0.99;

#[cfg(test)]
mod tests {
    use meter::edges::{FIRST_TOKEN_S, OUTPUT_RATE};

    use super::PRESETS;

    #[test]
    fn bounds_are_edges_and_presets_are_ordered() {
        for preset in PRESETS {
            assert!(FIRST_TOKEN_S.contains(&(preset.first_token_ns as f64 / 1e9)), "{preset:?}");
            assert!(OUTPUT_RATE.contains(&preset.output_rate), "{preset:?}");
        }
        assert!(
            PRESETS.is_sorted_by(|a, b| a.first_token_ns < b.first_token_ns && a.output_rate > b.output_rate)
        );
    }
}
