//! Readings from the values of a page: counters become differences to the baseline and to the last page; the drift is
//! their difference to the proxy's totals.
//!
//! Invariant: the baseline is the first page after a start of the server. A counter that fell or vanished, or another
//! start time, means a restart and sets a new baseline. Work between the start and the first page is in no drift.

use metrics::ServerKind;
use metrics::{EngineReading, PROMPT_SOURCES};

use crate::vocabulary::{Counters, PageValues};

/// The proxy's totals of an upstream, since the start of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyTotals {
    /// Prompt tokens of finished exchanges, cached ones included.
    pub input: u64,
    /// Prompt tokens that usage reported as cached.
    pub cached: u64,
    /// Generated tokens of finished exchanges.
    pub output: u64,
}

/// The tracker of one upstream's counters.
#[derive(Debug, Default)]
pub(crate) struct Tracker(Option<Baseline>);

/// The baseline since the last start of a server, and its last page.
#[derive(Debug)]
struct Baseline {
    kind: ServerKind,
    /// The counters and the proxy's totals at the baseline.
    base: Counters,
    totals: ProxyTotals,
    last: PageValues,
}

impl Tracker {
    /// Returns the reading of a page, given the proxy's totals at the same time.
    pub(crate) fn take(
        &mut self,
        kind: ServerKind,
        values: PageValues,
        totals: ProxyTotals,
    ) -> EngineReading {
        let is_same = |baseline: &Baseline| baseline.kind == kind && !values.is_restart_of(&baseline.last);
        let baseline = self.0.take().filter(is_same);
        let last = baseline.as_ref().map(|baseline| baseline.last.counters);
        let mut baseline = baseline.unwrap_or(Baseline { kind, base: values.counters, totals, last: values });
        baseline.last = values;
        let reading = reading(&baseline, last.as_ref(), totals);
        self.0 = Some(baseline);
        reading
    }
}

fn reading(baseline: &Baseline, last: Option<&Counters>, totals: ProxyTotals) -> EngineReading {
    let Baseline { kind, base, totals: totals_then, last: values } = baseline;
    let now = &values.counters;
    let prompt_tokens = since(now.prompt_tokens, base.prompt_tokens);
    let generation_tokens = since(now.generation_tokens, base.generation_tokens);
    let drift = |server: Option<f64>, now: u64, then: u64| Some(server? - now.saturating_sub(then) as f64);
    EngineReading {
        up: Some(true),
        read_at: None,
        kind: Some(*kind),
        running_requests: values.running,
        waiting_requests: values.waiting,
        kv_cache_usage_ratio: values.kv_cache,
        prefix_cache_hit_ratio: hit_ratio(values, last),
        prompt_tokens,
        generation_tokens,
        prompt_source_tokens: now.sources_since(base),
        hidden_cached_tokens: hidden_cached(baseline, last, totals),
        preemptions: since(now.preemptions, base.preemptions),
        admission_rejections: since(now.admission_rejections, base.admission_rejections),
        drift_input_tokens: drift(prompt_tokens, totals.input, totals_then.input),
        drift_output_tokens: drift(generation_tokens, totals.output, totals_then.output),
    }
}

/// Returns a counter's growth. An absent counter was 0: several servers export a counter only after its first
/// increment.
fn since(now: Option<f64>, then: Option<f64>) -> Option<f64> {
    Some(now? - then.unwrap_or(0.0))
}

fn hit_ratio(values: &PageValues, last: Option<&Counters>) -> Option<f64> {
    let now = &values.counters;
    if now.cache_lookups.is_none() {
        return values.cache_hit_ratio;
    }
    let last = last?;
    let lookups = since(now.cache_lookups, last.cache_lookups)?;
    let hits = since(now.cache_hits, last.cache_hits)?;
    (lookups > 0.0).then(|| hits / lookups)
}

/// Returns a lower bound of the unreported cached prompt tokens: those of the previous page, minus the reported ones,
/// minus all prompt tokens that bypassed the proxy. The previous page is used because a server may count a hit at the
/// start of a request, and the proxy counts it at the end of the exchange.
fn hidden_cached(baseline: &Baseline, last: Option<&Counters>, totals: ProxyTotals) -> Option<f64> {
    let Baseline { base, totals: totals_then, last: values, .. } = baseline;
    let cached = since(last?.cached(), base.cached())?;
    let prompt = since(values.counters.prompt_tokens, base.prompt_tokens)?;
    let bypassed = prompt - totals.input.saturating_sub(totals_then.input) as f64;
    let reported = totals.cached.saturating_sub(totals_then.cached) as f64;
    Some((cached - bypassed.max(0.0) - reported).max(0.0))
}

impl PageValues {
    /// Returns true if these values belong to a later process than `last`.
    fn is_restart_of(&self, last: &Self) -> bool {
        let (now, then) = (self.counters.all(), last.counters.all());
        let fell = now.iter().zip(then).any(|(now, then)| match (now, then) {
            (Some(now), Some(then)) => *now < then,
            (None, then) => then.is_some(),
            (Some(_), None) => false,
        });
        fell || matches!((self.started, last.started), (Some(now), Some(then)) if now != then)
    }
}

impl Counters {
    fn all(&self) -> [Option<f64>; 9] {
        let Self { cache_hits, cache_lookups, prompt_tokens, generation_tokens, .. } = *self;
        let Self { prompt_sources: [compute, cache, transfer], preemptions, admission_rejections, .. } =
            *self;
        let tokens = [prompt_tokens, generation_tokens, compute, cache, transfer];
        let others = [cache_hits, cache_lookups, preemptions, admission_rejections];
        std::array::from_fn(|at| if at < tokens.len() { tokens[at] } else { others[at - tokens.len()] })
    }

    /// Returns the prompt tokens that were not computed, by source if the server reports sources, else the cache hits.
    fn cached(&self) -> Option<f64> {
        let [_, cached, transferred] = self.prompt_sources;
        match cached {
            Some(cached) => Some(cached + transferred.unwrap_or(0.0)),
            None => self.cache_hits,
        }
    }

    fn sources_since(&self, base: &Self) -> [Option<f64>; PROMPT_SOURCES.len()] {
        std::array::from_fn(|at| since(self.prompt_sources[at], base.prompt_sources[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::{ProxyTotals, Tracker};
    use crate::vocabulary::{Counters, PageValues};
    use metrics::ServerKind;

    fn page(prompt: f64, generation: f64) -> PageValues {
        let counters = Counters {
            prompt_tokens: Some(prompt),
            generation_tokens: Some(generation),
            ..Counters::default()
        };
        PageValues { counters, ..PageValues::default() }
    }

    fn totals(input: u64, output: u64) -> ProxyTotals {
        ProxyTotals { input, output, cached: 0 }
    }

    #[test]
    fn drift_is_server_minus_proxy_since_first_page() {
        let mut tracker = Tracker::default();
        let mut drift = |values, totals| {
            let reading = tracker.take(ServerKind::Vllm, values, totals);
            (reading.drift_input_tokens.unwrap(), reading.drift_output_tokens.unwrap())
        };
        assert_eq!(drift(page(500.0, 50.0), totals(7, 3)), (0.0, 0.0), "the baseline");
        assert_eq!(drift(page(510.0, 55.0), totals(17, 8)), (0.0, 0.0));
        assert_eq!(drift(page(530.0, 60.0), totals(17, 8)), (20.0, 5.0), "another client");
        assert_eq!(drift(page(530.0, 60.0), totals(18, 18)), (19.0, -5.0), "the proxy counts more");
        assert_eq!(drift(page(0.0, 0.0), totals(20, 20)), (0.0, 0.0), "restarted");
        assert_eq!(drift(page(9.0, 1.0), totals(29, 21)), (0.0, 0.0));
    }

    #[test]
    fn restart_is_detected_by_counters_and_start_time() {
        let before = PageValues { started: Some(1.0), ..page(5.0, 5.0) };
        let none = Counters::default();
        for (then, now, another) in [
            (before, PageValues { started: Some(1.0), ..page(5.0, 5.0) }, false),
            (before, PageValues { started: None, ..page(6.0, 5.0) }, false),
            (before, PageValues { started: Some(1.0), ..page(6.0, 4.0) }, true),
            (before, PageValues { started: Some(2.0), ..page(9.0, 9.0) }, true),
            (before, PageValues { started: Some(1.0), counters: none, ..before }, true),
            (PageValues { counters: none, ..before }, before, false),
        ] {
            assert_eq!(now.is_restart_of(&then), another, "{now:?} after {then:?}");
        }
        let mut tracker = Tracker::default();
        tracker.take(ServerKind::Vllm, page(5.0, 5.0), totals(0, 0));
        let reading = tracker.take(ServerKind::Sglang, page(9.0, 9.0), totals(0, 0));
        assert_eq!(reading.prompt_tokens, Some(0.0), "another server behind the same address");
    }

    #[test]
    fn later_counter_began_at_zero() {
        let mut tracker = Tracker::default();
        let nothing = tracker.take(ServerKind::Tgi, PageValues::default(), totals(4, 4));
        assert_eq!((nothing.prompt_tokens, nothing.drift_input_tokens), (None, None));
        let reading = tracker.take(ServerKind::Tgi, page(12.0, 3.0), totals(16, 6));
        assert_eq!((reading.prompt_tokens, reading.generation_tokens), (Some(12.0), Some(3.0)));
        assert_eq!((reading.drift_input_tokens, reading.drift_output_tokens), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn hit_ratio_is_since_last_page() {
        let looked = |hits, lookups| PageValues {
            counters: Counters {
                cache_hits: Some(hits),
                cache_lookups: Some(lookups),
                ..Counters::default()
            },
            cache_hit_ratio: Some(0.99),
            ..PageValues::default()
        };
        let mut tracker = Tracker::default();
        let mut ratio =
            |values| tracker.take(ServerKind::Vllm, values, ProxyTotals::default()).prefix_cache_hit_ratio;
        assert_eq!(ratio(looked(10.0, 100.0)), None, "no previous page");
        assert_eq!(ratio(looked(25.0, 120.0)), Some(0.75));
        assert_eq!(ratio(looked(25.0, 120.0)), None, "no look-ups");
        assert_eq!(ratio(looked(25.0, 130.0)), Some(0.0));
        let stated = PageValues { cache_hit_ratio: Some(0.5), ..PageValues::default() };
        let mut tracker = Tracker::default();
        let reading = tracker.take(ServerKind::Sglang, stated, ProxyTotals::default());
        assert_eq!(reading.prefix_cache_hit_ratio, Some(0.5), "the server's ratio without counters");
    }

    /// Returns the hidden tokens for pages (prompt, cached) and proxy totals (input, reported).
    fn hidden(pages: &[(f64, f64, u64, u64)]) -> Vec<Option<f64>> {
        let mut tracker = Tracker::default();
        let mut take = |&(prompt, cached, input, reported): &(f64, f64, u64, u64)| {
            let counters = Counters {
                prompt_tokens: Some(prompt),
                prompt_sources: [Some(prompt - cached), Some(cached), Some(0.0)],
                ..Counters::default()
            };
            let totals = ProxyTotals { input, output: 0, cached: reported };
            let reading =
                tracker.take(ServerKind::Vllm, PageValues { counters, ..PageValues::default() }, totals);
            reading.hidden_cached_tokens
        };
        pages.iter().map(&mut take).collect()
    }

    #[test]
    fn cached_tokens_without_a_report_are_hidden() {
        let pages = [(100.0, 0.0, 0, 0), (1100.0, 600.0, 1000, 0), (1100.0, 600.0, 1000, 0)];
        assert_eq!(
            hidden(&pages),
            [None, Some(0.0), Some(600.0)],
            "one page later, because hits are counted first"
        );
    }

    #[test]
    fn reported_cached_tokens_are_not_hidden() {
        let pages = [(0.0, 0.0, 0, 0), (1000.0, 600.0, 900, 550), (1000.0, 600.0, 1000, 600)];
        assert_eq!(hidden(&pages), [None, Some(0.0), Some(0.0)]);
    }

    #[test]
    fn cached_tokens_of_others_are_not_hidden() {
        let pages = [(0.0, 0.0, 0, 0), (1000.0, 600.0, 0, 0), (1000.0, 600.0, 0, 0)];
        assert_eq!(hidden(&pages), [None, Some(0.0), Some(0.0)], "all of it bypassed the proxy");
        let pages = [(0.0, 0.0, 0, 0), (1000.0, 900.0, 700, 0), (1000.0, 900.0, 700, 0)];
        assert_eq!(hidden(&pages)[2], Some(600.0), "all 300 others may be cached ones");
    }

    #[test]
    fn restart_resets_hidden_tokens() {
        let pages =
            [(0.0, 0.0, 0, 0), (1000.0, 600.0, 1000, 0), (1000.0, 600.0, 1000, 0), (10.0, 0.0, 1010, 0)];
        assert_eq!(hidden(&pages)[2..], [Some(600.0), None]);
    }
}
