//! Objectives with a name of their own: what four kinds of users need. The law: every bound is an
//! edge of the histogram it speaks of.

/// What one kind of user needs of each exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The most time to the first token, nanoseconds.
    pub first_token_ns: u64,
    /// The least speed, tokens per second.
    pub output_rate: f64,
}

/// The presets, most demanding first.
///
/// - `voice`: someone is spoken to. People answer each other within some 200 ms.
/// - `chat`: someone waits for the whole answer, or skims it. A second is what a train of thought
///   bears.
/// - `reading`: someone reads along. Three times the speed of reading, after what MLPerf allows a
///   server (2 s) at the next edge.
/// - `floor`: below this people leave: ten seconds hold nobody's attention.
pub const PRESETS: [Preset; 4] = [
    Preset { name: "voice", first_token_ns: 250_000_000, output_rate: 100.0 },
    Preset { name: "chat", first_token_ns: 1_000_000_000, output_rate: 30.0 },
    Preset { name: "reading", first_token_ns: 2_500_000_000, output_rate: 15.0 },
    Preset { name: "floor", first_token_ns: 10_000_000_000, output_rate: 10.0 },
];

/// The share of exchanges that are to meet an objective that does not say.
pub const TARGET_RATIO: f64 = 0.99;

#[cfg(test)]
mod tests {
    use meter::edges::{FIRST_TOKEN_S, OUTPUT_RATE};

    use super::PRESETS;

    #[test]
    fn every_bound_is_an_edge_and_each_preset_is_harder_than_the_next() {
        for preset in PRESETS {
            assert!(FIRST_TOKEN_S.contains(&(preset.first_token_ns as f64 / 1e9)), "{preset:?}");
            assert!(OUTPUT_RATE.contains(&preset.output_rate), "{preset:?}");
        }
        assert!(
            PRESETS.is_sorted_by(|a, b| a.first_token_ns < b.first_token_ns && a.output_rate > b.output_rate)
        );
    }
}
