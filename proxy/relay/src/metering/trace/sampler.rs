//! The samplers of the OpenTelemetry SDKs, which decide if a trace is kept: the same decision for the same trace id.
//! Their names are in the settings.

/// A sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// True if the caller's decision applies where there is one (`parentbased_…`).
    pub heeds_caller: bool,
    /// The decision for all others.
    pub draw: Draw,
}

/// The decision about a trace without a caller's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Every trace is kept.
    Always,
    /// No trace is kept.
    Never,
    /// This share of the traces is kept, from 0 to 1, by the trace's id.
    Ratio(f64),
}

impl Sampler {
    /// Returns true if a trace is kept. `caller`: the caller's decision, if there is one.
    pub(crate) fn keeps(self, caller: Option<bool>, trace_id: &[u8; 16]) -> bool {
        match (caller, self.draw) {
            (Some(kept), _) if self.heeds_caller => kept,
            (_, Draw::Always) => true,
            (_, Draw::Never) => false,
            (_, Draw::Ratio(ratio)) => {
                let bound = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
                let lower = trace_id.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
                lower >> 1 < bound
            }
        }
    }
}

impl Default for Sampler {
    /// OpenTelemetry's default: `parentbased_always_on`.
    fn default() -> Self {
        Self { heeds_caller: true, draw: Draw::Always }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sampler_decides_as_the_sdks_do() {
        let low = [0xff; 8].into_iter().chain([0; 8]).collect::<Vec<u8>>().try_into().unwrap();
        let high = [0xff; 16];
        // (caller keeps, caller drops, no caller and a low id, no caller and a high one)
        let half = Draw::Ratio(0.5);
        for (heeds_caller, draw, expected) in [
            (false, Draw::Always, [true, true, true, true]),
            (false, Draw::Never, [false, false, false, false]),
            (false, half, [false, false, true, false]),
            (true, Draw::Always, [true, false, true, true]),
            (true, Draw::Never, [true, false, false, false]),
            (true, half, [true, false, true, false]),
        ] {
            let sampler = Sampler { heeds_caller, draw };
            let asked = [(Some(true), high), (Some(false), high), (None, low), (None, high)];
            assert_eq!(asked.map(|(caller, id)| sampler.keeps(caller, &id)), expected, "{sampler:?}");
        }
    }

    /// The bound is `ratio · 2^63`, and a trace is kept below it.
    #[test]
    fn a_ratio_keeps_the_ids_below_its_bound() {
        let id = |lower: u64| {
            let mut id = [0xaa; 16];
            id[8..].copy_from_slice(&lower.to_be_bytes());
            id
        };
        for (ratio, lower, kept) in [
            (0.0, 0, false),
            (1.0, u64::MAX, true),
            (2.0, u64::MAX, true),
            (-1.0, 0, false),
            (f64::NAN, 0, false),
            (0.5, (1 << 63) - 1, true),
            (0.5, 1 << 63, false),
            (0.25, (1 << 62) - 1, true),
            (0.25, 1 << 62, false),
            // The example of OpenTelemetry's own tests: a quarter of 2^63 is 0x2000000000000000.
            (0.25, 0x3fff_ffff_ffff_ffff, true),
            (0.25, 0x4000_0000_0000_0000, false),
        ] {
            let sampler = Sampler { heeds_caller: false, draw: Draw::Ratio(ratio) };
            assert_eq!(sampler.keeps(None, &id(lower)), kept, "{ratio} of {lower:#x}");
        }
    }
}
