//! The end of an exchange: resolves its tokens, computes its times, determines its ending, and makes the
//! record.

use scan::{EndMark, ServerReport};

use super::Meter;
use crate::close::Close;
use crate::position;
use crate::record::{Identity, Record, StreamPace, Timing, Weight};
use crate::track::Track;
use crate::usage_resolver::Resolved;
use crate::{Ending, LoadSpan, Provenance, Tick, Tokens};

impl Meter {
    /// Ends the exchange. `load` is the upstream's load meanwhile.
    pub fn end(mut self, identity: Identity, close: Close, load: LoadSpan, at: Tick) -> Record {
        self.resolver.is_entire = self.resolver.is_body
            && matches!(close, Close::Clean { whole: true } | Close::ClientGone { whole: true });
        let resolved = self.engine_tokens().unwrap_or_else(|| self.body_tokens());
        let Resolved { tokens, cached_excess, disagreement } = resolved;
        self.keep_times_of_streams();
        let ending = self.ending(close, self.choices.has_content || tokens.output() > 0);
        self.stall_at_end(at);
        let timing = self.timing(&tokens, &load, at);
        Record {
            identity,
            asked_stream: self.answer.is_streamed() || self.sent.facts.stream == Some(true),
            streamed: self.answer.is_streamed(),
            status: self.answer.status,
            answers: self.sent.facts.answers,
            choices: self.choices.count,
            finishes: self.choices.finishes,
            sampling: self.sent.facts.sampling,
            load,
            ending,
            tokens,
            timing,
            visible_chars: self.visible.chars,
            usage_rejected: self.resolver.rejected,
            cached_excess,
            disagreement,
            unknown_counts: self.unknown_counts.map(|names| names.0).unwrap_or_default(),
            is_compacted: false,
            upstream_attempts: 1,
        }
    }

    /// The counts of the body.
    fn body_tokens(&self) -> Resolved {
        // An error's body counts nothing, whatever it claims.
        if self.answer.is_broken() || self.answer.is_error() {
            return Resolved::new(Tokens::NONE, 0, None);
        }
        self.resolver.billed(
            self.dialect,
            self.choices.count,
            &self.sent.facts,
            self.is_finished(),
            self.tracks.running(),
        )
    }

    /// The times of an exchange with `tokens` that ended at `at`.
    fn timing(&mut self, tokens: &Tokens, load: &LoadSpan, at: Tick) -> Timing {
        let t0 = self.sent.t0();
        let is_streamed = self.answer.is_streamed();
        let duration_ns = at.since(t0);
        let since_t0 = |tick: Option<Tick>| tick.map(|tick| tick.since(t0));
        let in_stream = |tick: Option<Tick>| since_t0(tick).filter(|_| is_streamed);
        let first_token_ns = in_stream(self.firsts.token);

        // Speed is that of the model, whatever the invoice counts.
        let used = match tokens.output_provenance {
            Provenance::Reported => self.resolver.used(),
            _ => [None; 2],
        };
        let [input, output] = [used[0].unwrap_or(tokens.input()), used[1].unwrap_or(tokens.output())];
        let started = self.tracks.timed().filter(|track| track.first.is_some()).count() as u64;
        let generation_ns: u64 = match is_streamed {
            true => self.tracks.timed().filter_map(Track::generation_ns).sum(),
            false => 0,
        };
        let timed = self.tracks.timed_share(output);
        let generation_tokens = if generation_ns > 0 { timed.saturating_sub(started) } else { 0 };
        // Each frame holds at least one token, so a total equal to the number of frames proves one each. A
        // total that is itself the number of frames proves nothing.
        let proven = tokens.output_provenance != Provenance::Frames && output == self.tracks.weight;
        let weight = match proven || !self.tracks.is_inexact {
            true => Weight::Exact,
            false => Weight::Spread,
        };
        let output_chunk = self.chunks.as_ref().map(|chunks| chunks.gaps());
        let mut pace =
            output_chunk.map(|gaps| Box::new(StreamPace { output_chunk: gaps, ..StreamPace::default() }));
        if let Some(own) = &self.pace {
            let pace = pace.get_or_insert_default();
            pace.chunk_gap = own.chunk_gap().exact();
            (pace.inter_token, pace.position) = match weight {
                Weight::Exact => (own.inter_token().exact(), own.position),
                Weight::Spread => {
                    let seen = self.tracks.first_weight();
                    let position = position::spread(&own.position, seen, output, self.choices.count);
                    (own.inter_token().spread(timed.saturating_sub(started)), position)
                }
            };
        }
        if let (Some(report), 2..) = (&mut self.server, self.choices.count) {
            // Each of several answers has its own drafts, and the last report covers one.
            (report.draft_tokens, report.accepted_draft_tokens) = (None, None);
        }
        let (visible_chars, visible_ns) = self.visible.paced();
        let uncached = input.saturating_sub(tokens.cached());

        Timing {
            upload_ns: t0.since(self.sent.began),
            duration_ns,
            first_byte_ns: since_t0(self.firsts.byte),
            first_chunk_ns: since_t0(self.chunks.as_ref().map(|chunks| chunks.first)),
            first_token_ns,
            first_visible_ns: in_stream(self.visible.first()),
            first_tool_ns: in_stream(self.firsts.tool),
            generation_ns,
            generation_tokens,
            per_output_token_ns: first_token_ns
                .filter(|_| output > 1)
                .map(|first| duration_ns.saturating_sub(first) / (output - 1)),
            output_rate: per_second(generation_tokens, generation_ns),
            input_rate: first_token_ns.and_then(|ns| per_second(uncached, ns)),
            visible_chars_rate: per_second(visible_chars, if is_streamed { visible_ns } else { 0 }),
            pace,
            longest_gap_ns: self.pace.as_ref().map_or(0, |pace| pace.longest_gap_ns),
            longest_token_gap_ns: match (&self.pace, weight) {
                (Some(pace), Weight::Exact) => pace.longest_token_gap_ns,
                _ => 0,
            },
            weight,
            stalls: self.stalls.count,
            stalled_ns: self.stalls.ns,
            client_wait_ns: self.client_wait_ns,
            concurrency: load.concurrency(),
            server: self.server.take().filter(|report| **report != ServerReport::default()),
        }
    }

    fn ending(&self, close: Close, output: bool) -> Ending {
        if close == Close::Local {
            return Ending::ProxyError;
        }
        if self.answer.status >= 400 {
            return Ending::ErrorStatus;
        }
        if self.choices.marks.error || self.choices.marks.aborted {
            return Ending::ErrorInBand;
        }
        if self.choices.marks.engine_aborted {
            return match close {
                Close::ClientGone { .. } => Ending::ClientAbort,
                Close::Clean { .. } | Close::Cut | Close::Local => Ending::ErrorInBand,
            };
        }
        if self.answer.is_unreadable() {
            return match close {
                Close::Clean { .. } => Ending::Complete,
                Close::ClientGone { .. } => Ending::ClientAbort,
                Close::Cut | Close::Local => Ending::UpstreamCut,
            };
        }
        // With an end mark, the finish of every requested answer may replace it. Without one, a server that
        // gives fewer answers than requested has still ended.
        let has_end_mark = self.dialect.end_mark() == EndMark::Done;
        let expected = if has_end_mark { self.sent.facts.answers.max(1) } else { 1 };
        let finished = self.choices.are_finished(expected);
        let complete = match close {
            Close::Clean { whole } => {
                // transformers ends its streams without `[DONE]`: every answer finished and a clean end of
                // the body are enough.
                let eof = self.dialect.end_mark() == EndMark::Eof;
                // Of an engine without a response, the finish of every answer is the whole answer.
                let is_engines = self.engine.is_some() && self.answer.is_awaited();
                match self.answer.is_streamed() {
                    true => self.choices.marks.done || finished || eof,
                    false => whole || is_engines && finished,
                }
            }
            _ => self.answer.is_streamed() && (self.choices.marks.done || finished && !has_end_mark),
        };
        match (complete, close) {
            (false, Close::ClientGone { .. }) => Ending::ClientAbort,
            (false, _) => Ending::UpstreamCut,
            (true, _) if !output && self.dialect.generates() => Ending::NoOutput,
            (true, _) if self.choices.marks.length => Ending::Length,
            (true, _) => Ending::Complete,
        }
    }
}

fn per_second(amount: u64, ns: u64) -> Option<f64> {
    (amount > 0 && ns > 0).then(|| amount as f64 * 1e9 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn a_rate_is_an_amount_per_second() {
        assert_eq!(per_second(5, 2_000_000_000), Some(2.5));
        assert_eq!((per_second(0, 1), per_second(1, 0), per_second(0, 0)), (None, None, None));
    }
}
