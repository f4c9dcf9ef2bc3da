//! The end of an exchange: resolves its tokens, computes its times, determines its ending, and makes the
//! record.

use scan::{EndMark, ServerReport};

use super::Meter;
use crate::close::Close;
use crate::position;
use crate::record::{Identity, Record, Timing, Weight};
use crate::{Ending, LoadSpan, Provenance, Tick, Tokens};

impl Meter {
    /// Ends the exchange. `load` is the upstream's load meanwhile.
    pub fn end(mut self, identity: Identity, close: Close, load: LoadSpan, at: Tick) -> Record {
        self.resolver.is_entire = self.resolver.is_body
            && matches!(close, Close::Clean { whole: true } | Close::ClientGone { whole: true });
        let (tokens, cached_excess) = match self.status {
            // An error's body is never billed, whatever it claims.
            400.. => (Tokens::NONE, 0),
            _ if self.became_unreadable => (Tokens::NONE, 0),
            _ => self.resolver.billed(
                self.dialect,
                self.choices,
                &self.request,
                self.is_finished(),
                self.running(),
            ),
        };
        let ending = self.ending(close, self.content || tokens.output() > 0);
        let t0 = self.requested.unwrap_or(self.began);
        self.stall_at_end(at);
        let duration_ns = at.since(t0);
        let since_t0 = |tick: Option<Tick>| tick.map(|tick| tick.since(t0));
        let in_stream = |tick: Option<Tick>| since_t0(tick).filter(|_| self.streamed);
        let first_token_ns = in_stream(self.first_token);

        let output = tokens.output();
        let started = self.tracks().filter(|track| track.first.is_some()).count() as u64;
        let generation_ns: u64 = match self.streamed {
            true => self.tracks().filter_map(|t| t.first.map(|first| t.last.since(first))).sum(),
            false => 0,
        };
        let timed = self.timed_share(output);
        let generation_tokens = if generation_ns > 0 { timed.saturating_sub(started) } else { 0 };
        // Each frame holds at least one token, so a total equal to the number of frames proves one each. A
        // total that is itself the number of frames proves nothing.
        let proven = tokens.output_provenance != Provenance::Frames && output == self.weight;
        let weight = match proven || !self.inexact {
            true => Weight::Exact,
            false => Weight::Spread,
        };
        let inter_token = match weight {
            Weight::Exact => self.inter_token.exact(),
            Weight::Spread => self.inter_token.spread(timed.saturating_sub(started)),
        };
        let visible_ns = self.first_visible.map_or(0, |first| self.last_visible.since(first));
        let uncached = tokens.input().saturating_sub(tokens.of(crate::TokenType::InputCached));

        let timing = Timing {
            upload_ns: t0.since(self.began),
            duration_ns,
            first_byte_ns: since_t0(self.first_byte),
            first_chunk_ns: in_stream(self.first_chunk),
            first_token_ns,
            first_visible_ns: in_stream(self.first_visible),
            first_tool_ns: in_stream(self.first_tool),
            generation_ns,
            generation_tokens,
            per_output_token_ns: first_token_ns
                .filter(|_| output > 1)
                .map(|first| duration_ns.saturating_sub(first) / (output - 1)),
            output_rate: per_second(generation_tokens, generation_ns),
            input_rate: first_token_ns.and_then(|ns| per_second(uncached, ns)),
            visible_chars_rate: per_second(
                self.visible_chars - self.visible_chars_first,
                if self.streamed { visible_ns } else { 0 },
            ),
            inter_token,
            chunk_gap: self.chunk_gap.exact(),
            longest_gap_ns: self.longest_gap_ns,
            longest_token_gap_ns: if weight == Weight::Exact { self.longest_token_gap_ns } else { 0 },
            weight,
            position: match weight {
                Weight::Exact => self.position,
                Weight::Spread => position::spread(&self.position, self.track.weight, output, self.choices),
            },
            stalls: self.stalls,
            stalled_ns: self.stalled_ns,
            client_wait_ns: self.client_wait_ns,
            concurrency: load.concurrency(),
            server: match self.choices {
                0 | 1 => self.server,
                // Each of several answers has its own drafts, and the last report covers one.
                _ => ServerReport { draft_tokens: None, accepted_draft_tokens: None, ..self.server },
            },
        };
        Record {
            identity,
            asked_stream: self.streamed || self.request.stream == Some(true),
            streamed: self.streamed,
            status: self.status,
            answers: self.request.answers,
            choices: self.choices,
            finishes: self.finishes,
            sampling: self.request.sampling,
            load,
            ending,
            tokens,
            timing,
            visible_chars: self.visible_chars,
            usage_rejected: self.resolver.rejected,
            cached_excess,
            upstream_attempts: 1,
        }
    }

    fn ending(&self, close: Close, output: bool) -> Ending {
        if close == Close::Local {
            return Ending::ProxyError;
        }
        if self.status >= 400 {
            return Ending::ErrorStatus;
        }
        if self.error || self.aborted {
            return Ending::ErrorInBand;
        }
        if self.unreadable {
            return match close {
                Close::Clean { .. } => Ending::Complete,
                Close::ClientGone { .. } => Ending::ClientAbort,
                Close::Cut | Close::Local => Ending::UpstreamCut,
            };
        }
        // With an end mark, the finish of every requested answer may replace it. Without one, a server that
        // gives fewer answers than requested has still ended.
        let has_end_mark = self.dialect.end_mark() == EndMark::Done;
        let expected = if has_end_mark { self.request.answers.max(1) } else { 1 };
        let finished = self.finished >= self.choices.max(expected);
        let complete = match close {
            Close::Clean { whole } => {
                // transformers ends its streams without `[DONE]`: every answer finished and a clean end of
                // the body are enough.
                let eof = self.dialect.end_mark() == EndMark::Eof;
                if self.streamed { self.done || finished || eof } else { whole }
            }
            _ => self.streamed && (self.done || finished && !has_end_mark),
        };
        match (complete, close) {
            (false, Close::ClientGone { .. }) => Ending::ClientAbort,
            (false, _) => Ending::UpstreamCut,
            (true, _) if !output && self.dialect.generates() => Ending::NoOutput,
            (true, _) if self.length => Ending::Length,
            (true, _) => Ending::Complete,
        }
    }

    /// Returns the part of `output` that belongs to the timed choices, by their weight.
    fn timed_share(&self, output: u64) -> u64 {
        if self.timed_weight == self.weight {
            return output;
        }
        let share = u128::from(output) * u128::from(self.timed_weight) / u128::from(self.weight);
        u64::try_from(share).unwrap_or(u64::MAX)
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
