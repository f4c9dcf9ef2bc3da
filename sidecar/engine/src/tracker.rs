//! From what a page says to what is reported: counters become differences, to the baseline and to
//! the last page, and the drift is their difference to ours.
//!
//! The law: the baseline is the first page read of a server's life. A counter that fell, a counter
//! that went or another start time is another life, and begins at zero again; what was done between
//! its start and its first page is nobody's drift.

use metrics::{EngineReading, PROMPT_SOURCES};
use relay::Kind;

use crate::vocabulary::{Counters, Said};

/// Our own totals of an upstream, since we started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ours {
    /// Prompt tokens of ended exchanges, cached ones included.
    pub input: u64,
    /// Of them, those that usage reported as cached.
    pub cached: u64,
    /// Generated tokens of ended exchanges.
    pub output: u64,
}

/// The pages of one upstream so far.
#[derive(Debug, Default)]
pub(crate) struct Reckoning(Option<Life>);

#[derive(Debug)]
struct Life {
    kind: Kind,
    /// What the counters, and ours, were at the baseline.
    base: Counters,
    ours: Ours,
    last: Said,
}

impl Reckoning {
    /// What to report of a page, given our own totals at that moment.
    pub(crate) fn take(&mut self, kind: Kind, said: Said, ours: Ours) -> EngineReading {
        let goes_on = |life: &Life| life.kind == kind && !said.is_another_life(&life.last);
        let life = self.0.take().filter(goes_on);
        let last = life.as_ref().map(|life| life.last.counters);
        let mut life = life.unwrap_or(Life { kind, base: said.counters, ours, last: said });
        life.last = said;
        let reading = reading(&life, last.as_ref(), ours);
        self.0 = Some(life);
        reading
    }
}

fn reading(life: &Life, last: Option<&Counters>, ours: Ours) -> EngineReading {
    let Life { kind, base, ours: ours_then, last: said } = life;
    let now = &said.counters;
    let prompt_tokens = since(now.prompt_tokens, base.prompt_tokens);
    let generation_tokens = since(now.generation_tokens, base.generation_tokens);
    let less = |theirs: Option<f64>, now: u64, then: u64| Some(theirs? - now.saturating_sub(then) as f64);
    EngineReading {
        up: Some(true),
        kind: Some(*kind),
        running_requests: said.running,
        waiting_requests: said.waiting,
        kv_cache_usage_ratio: said.kv_cache,
        prefix_cache_hit_ratio: hit_ratio(said, last),
        prompt_tokens,
        generation_tokens,
        prompt_source_tokens: now.sources_since(base),
        hidden_cached_tokens: hidden_cached(life, last, ours),
        preemptions: since(now.preemptions, base.preemptions),
        admission_rejections: since(now.admission_rejections, base.admission_rejections),
        drift_input_tokens: less(prompt_tokens, ours.input, ours_then.input),
        drift_output_tokens: less(generation_tokens, ours.output, ours_then.output),
    }
}

/// A counter's growth. One that was not there yet had counted nothing: several servers write a
/// counter's first line when it first counts.
fn since(now: Option<f64>, then: Option<f64>) -> Option<f64> {
    Some(now? - then.unwrap_or(0.0))
}

fn hit_ratio(said: &Said, last: Option<&Counters>) -> Option<f64> {
    let now = &said.counters;
    if now.cache_lookups.is_none() {
        return said.cache_hit_ratio;
    }
    let last = last?;
    let lookups = since(now.cache_lookups, last.cache_lookups)?;
    let hits = since(now.cache_hits, last.cache_hits)?;
    (lookups > 0.0).then(|| hits / lookups)
}

/// The cached prompt tokens of the page before that are neither reported to us nor, whatever they were,
/// work that we did not see. The page before, because a server may count a hit when a request begins, and
/// we count it when the exchange ends.
fn hidden_cached(life: &Life, last: Option<&Counters>, ours: Ours) -> Option<f64> {
    let Life { base, ours: ours_then, last: said, .. } = life;
    let cached = since(last?.cached(), base.cached())?;
    let prompt = since(said.counters.prompt_tokens, base.prompt_tokens)?;
    let unseen = prompt - ours.input.saturating_sub(ours_then.input) as f64;
    let reported = ours.cached.saturating_sub(ours_then.cached) as f64;
    Some((cached - unseen.max(0.0) - reported).max(0.0))
}

impl Said {
    /// Whether these are another process's numbers.
    fn is_another_life(&self, last: &Self) -> bool {
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

    /// Prompt tokens that were not computed, as the server counts prompts; else the hits of its cache.
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
    use super::{Ours, Reckoning};
    use crate::vocabulary::{Counters, Said};
    use relay::Kind;

    fn page(prompt: f64, generation: f64) -> Said {
        let counters = Counters {
            prompt_tokens: Some(prompt),
            generation_tokens: Some(generation),
            ..Counters::default()
        };
        Said { counters, ..Said::default() }
    }

    fn ours(input: u64, output: u64) -> Ours {
        Ours { input, output, cached: 0 }
    }

    #[test]
    fn drift_is_theirs_less_ours_since_the_first_page() {
        let mut reckoning = Reckoning::default();
        let mut drift = |said, ours| {
            let reading = reckoning.take(Kind::Vllm, said, ours);
            (reading.drift_input_tokens.unwrap(), reading.drift_output_tokens.unwrap())
        };
        assert_eq!(drift(page(500.0, 50.0), ours(7, 3)), (0.0, 0.0), "whatever went before");
        assert_eq!(drift(page(510.0, 55.0), ours(17, 8)), (0.0, 0.0));
        assert_eq!(drift(page(530.0, 60.0), ours(17, 8)), (20.0, 5.0), "somebody beside us");
        assert_eq!(drift(page(530.0, 60.0), ours(18, 18)), (19.0, -5.0), "we claim more than they");
        assert_eq!(drift(page(0.0, 0.0), ours(20, 20)), (0.0, 0.0), "restarted");
        assert_eq!(drift(page(9.0, 1.0), ours(29, 21)), (0.0, 0.0));
    }

    #[test]
    fn another_life_is_told_by_what_fell_what_went_and_when_it_started() {
        let lived = Said { started: Some(1.0), ..page(5.0, 5.0) };
        let none = Counters::default();
        for (then, now, another) in [
            (lived, Said { started: Some(1.0), ..page(5.0, 5.0) }, false),
            (lived, Said { started: None, ..page(6.0, 5.0) }, false),
            (lived, Said { started: Some(1.0), ..page(6.0, 4.0) }, true),
            (lived, Said { started: Some(2.0), ..page(9.0, 9.0) }, true),
            (lived, Said { started: Some(1.0), counters: none, ..lived }, true),
            (Said { counters: none, ..lived }, lived, false),
        ] {
            assert_eq!(now.is_another_life(&then), another, "{now:?} after {then:?}");
        }
        let mut reckoning = Reckoning::default();
        reckoning.take(Kind::Vllm, page(5.0, 5.0), ours(0, 0));
        let reading = reckoning.take(Kind::Sglang, page(9.0, 9.0), ours(0, 0));
        assert_eq!(reading.prompt_tokens, Some(0.0), "another server behind the same address");
    }

    #[test]
    fn a_counter_that_comes_later_began_at_zero() {
        let mut reckoning = Reckoning::default();
        let nothing = reckoning.take(Kind::Tgi, Said::default(), ours(4, 4));
        assert_eq!((nothing.prompt_tokens, nothing.drift_input_tokens), (None, None));
        let reading = reckoning.take(Kind::Tgi, page(12.0, 3.0), ours(16, 6));
        assert_eq!((reading.prompt_tokens, reading.generation_tokens), (Some(12.0), Some(3.0)));
        assert_eq!((reading.drift_input_tokens, reading.drift_output_tokens), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn the_hit_ratio_is_of_what_was_looked_up_since_the_last_page() {
        let looked = |hits, lookups| Said {
            counters: Counters {
                cache_hits: Some(hits),
                cache_lookups: Some(lookups),
                ..Counters::default()
            },
            cache_hit_ratio: Some(0.99),
            ..Said::default()
        };
        let mut reckoning = Reckoning::default();
        let mut ratio = |said| reckoning.take(Kind::Vllm, said, Ours::default()).prefix_cache_hit_ratio;
        assert_eq!(ratio(looked(10.0, 100.0)), None, "no page before it");
        assert_eq!(ratio(looked(25.0, 120.0)), Some(0.75));
        assert_eq!(ratio(looked(25.0, 120.0)), None, "nothing was looked up");
        assert_eq!(ratio(looked(25.0, 130.0)), Some(0.0));
        let stated = Said { cache_hit_ratio: Some(0.5), ..Said::default() };
        let mut reckoning = Reckoning::default();
        let reading = reckoning.take(Kind::Sglang, stated, Ours::default());
        assert_eq!(reading.prefix_cache_hit_ratio, Some(0.5), "where only that is said");
    }

    /// A page whose cache had `cached` of `prompt` tokens, and our own counts.
    fn hidden(pages: &[(f64, f64, u64, u64)]) -> Vec<Option<f64>> {
        let mut reckoning = Reckoning::default();
        let mut take = |&(prompt, cached, input, reported): &(f64, f64, u64, u64)| {
            let counters = Counters {
                prompt_tokens: Some(prompt),
                prompt_sources: [Some(prompt - cached), Some(cached), Some(0.0)],
                ..Counters::default()
            };
            let ours = Ours { input, output: 0, cached: reported };
            let reading = reckoning.take(Kind::Vllm, Said { counters, ..Said::default() }, ours);
            reading.hidden_cached_tokens
        };
        pages.iter().map(&mut take).collect()
    }

    #[test]
    fn cached_tokens_without_a_report_are_hidden() {
        let pages = [(100.0, 0.0, 0, 0), (1100.0, 600.0, 1000, 0), (1100.0, 600.0, 1000, 0)];
        assert_eq!(hidden(&pages), [None, Some(0.0), Some(600.0)], "a page later, since hits come first");
    }

    #[test]
    fn reported_cached_tokens_are_not_hidden() {
        let pages = [(0.0, 0.0, 0, 0), (1000.0, 600.0, 900, 550), (1000.0, 600.0, 1000, 600)];
        assert_eq!(hidden(&pages), [None, Some(0.0), Some(0.0)]);
    }

    #[test]
    fn cached_tokens_of_others_are_not_hidden() {
        let pages = [(0.0, 0.0, 0, 0), (1000.0, 600.0, 0, 0), (1000.0, 600.0, 0, 0)];
        assert_eq!(hidden(&pages), [None, Some(0.0), Some(0.0)], "none of it passed through us");
        let pages = [(0.0, 0.0, 0, 0), (1000.0, 900.0, 700, 0), (1000.0, 900.0, 700, 0)];
        assert_eq!(hidden(&pages)[2], Some(600.0), "300 may all have been others' cached ones");
    }

    #[test]
    fn restart_begins_hidden_tokens_anew() {
        let pages =
            [(0.0, 0.0, 0, 0), (1000.0, 600.0, 1000, 0), (1000.0, 600.0, 1000, 0), (10.0, 0.0, 1010, 0)];
        assert_eq!(hidden(&pages)[2..], [Some(600.0), None]);
    }
}
