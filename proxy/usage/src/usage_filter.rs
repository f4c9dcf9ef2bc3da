//! Finds the parts of a response that are not for the client. A [`UsageFilter`] stands between scanner and meter:
//! it passes every event on and cuts the frames that exist only due to injected options.
//!
//! A server that sends usage without a request sends it to every client. Once a stream proves that, nothing
//! more is cut from it.

use scan::{Count, Counts, Event, Extent, Scanner, Scope, Sink, Timings, Usage, UsageValue};

use crate::cut::{Cut, Cuts};
use crate::inject_usage::AddedOptions;

/// Filters one response.
#[derive(Debug)]
pub struct UsageFilter {
    added: AddedOptions,
    /// The client requested usage itself.
    asked: bool,
    sends_unrequested: bool,
    /// Nothing to cut and nothing to detect: events only pass.
    idle: bool,
    /// Number of finished answers.
    finished: u32,
    /// Number of finished answers from which bytes may be held.
    min_finished: u32,
    /// A frame with content had no usage.
    content_without_usage: bool,
    /// A frame before an answer's last one had usage.
    running_usage: bool,
    /// A usage member without counts is due to the added option.
    cuts_placeholders: bool,
    /// The facts of the current frame.
    frame: Facts,
    cuts: Cuts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    content: bool,
    finish: bool,
    /// A running count above zero.
    counted: bool,
    /// An answer, or all of them, ended.
    ends: bool,
}

impl UsageFilter {
    /// Creates the filter of the response to a request with these `added` options; `client_asked` if the client
    /// requested usage itself, final or running. Only an event stream may be filtered: an unstreamed answer
    /// always has usage.
    pub fn new(added: Option<AddedOptions>, client_asked: bool) -> Self {
        let added = added.unwrap_or_default();
        Self {
            added,
            asked: client_asked,
            sends_unrequested: false,
            idle: client_asked && added == AddedOptions::default(),
            finished: 0,
            min_finished: 1,
            content_without_usage: false,
            running_usage: false,
            cuts_placeholders: false,
            frame: Facts::default(),
            cuts: Cuts::new(),
        }
    }

    /// Lets bytes be held (without running counts) only after this number of finished answers, in place of
    /// one: for servers that report all counts at the end.
    #[must_use]
    pub fn expecting(mut self, answers: u32) -> Self {
        self.min_finished = answers.max(1);
        self
    }

    /// Removes usage members without counts, too, if usage at the end was added: for servers that send one in each
    /// other frame of such a stream, and none otherwise.
    #[must_use]
    pub fn without_placeholders(mut self) -> Self {
        self.cuts_placeholders = self.added.include;
        self
    }

    /// Returns true if the scanner must report the position of counts.
    pub fn locates(&self) -> bool {
        self.added.is_running()
    }

    /// Configures the scanner for this filter. Must be called before the first byte.
    pub fn arm(&self, scanner: &mut Scanner) {
        if self.locates() {
            scanner.locate_usage();
        }
    }

    /// A sink that passes everything on to `sink` and to this filter.
    #[inline]
    pub fn listen<'a, S: Sink>(&'a mut self, sink: &'a mut S) -> FilterSink<'a, S> {
        FilterSink { filter: self, sink }
    }

    /// The changes for the slice that `scanner` just read; the editor removes them.
    #[inline]
    pub fn cuts(&mut self, scanner: &Scanner) -> &mut Cuts {
        // An unfinished frame is held if it may have to be cut. With running counts, that is any frame. Without them it
        // is only a frame after the last answer, for which no token waits (law 2), or the part with a usage member.
        let armed = self.added.is_running() || self.added.include && self.finished >= self.min_finished;
        self.cuts.hold = match (armed, self.cuts_placeholders) {
            _ if self.sends_unrequested => None,
            (true, _) => scanner.unfinished_from(),
            (false, true) => scanner.usage_from(),
            (false, false) => None,
        };
        &mut self.cuts
    }

    /// Returns true if the client or the proxy requested usage.
    pub fn asked(&self) -> bool {
        self.asked || self.added != AddedOptions::default()
    }

    /// Returns true if the server sent usage without a request.
    pub fn sends_unrequested(&self) -> bool {
        self.sends_unrequested
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Text(_)
            | Event::Reasoning(_)
            | Event::Tool(_)
            | Event::Refusal(_)
            | Event::Audio(_)
            | Event::Empty(_) => self.frame.content = true,
            Event::Finish { .. } => {
                self.frame.finish = true;
                self.frame.ends = true;
                self.finished = self.finished.saturating_add(1);
            }
            // A count with or after a finish proves nothing: some servers always send one in an answer's last frame. In a
            // frame, usage follows the finish.
            Event::Usage(Usage { scope: Scope::Running(_), counts }) => {
                self.frame.counted = self.finished == 0 && is_above_zero(&counts);
            }
            Event::Usage(_) | Event::Error | Event::Done => self.frame.ends = true,
            _ => {}
        }
    }

    #[inline]
    fn end_frame(&mut self, extent: Extent) {
        // Most frames are irrelevant.
        if extent.is_usage || self.added.is_running() || extent.usage.is_some() {
            self.end_relevant_frame(extent);
        }
        self.frame = Facts::default();
    }

    fn end_relevant_frame(&mut self, extent: Extent) {
        let Facts { content, finish, counted, ends } = self.frame;
        let nothing_added = self.added == AddedOptions::default();
        let value = extent.usage.map(|usage| usage.value);
        // The options bring a member of the frame. A count elsewhere (in llama.cpp's timings, in a choice, below a vendor's
        // member) is sent to everyone, and says nothing about the member.
        let is_member = value == Some(UsageValue::Counts);
        let mut usage = None;
        // This case is the first: the usage that proves that the server sends it to everyone is not cut.
        if counted && is_member && !extent.is_usage && !self.added.continuous && !self.asked {
            self.disarm();
        } else if !extent.whole {
            // The client discards a torn block, so nothing has to be removed.
            return;
        } else if extent.is_usage && self.added.include {
            // The frame has nothing but usage, so the client would not have received it at all.
            self.cuts.cut(Cut::Event(extent.from, extent.to));
            return;
        } else if extent.is_usage {
            if nothing_added && !self.asked {
                self.disarm();
            }
        } else if matches!(value, None | Some(UsageValue::Null)) {
            self.content_without_usage |= content;
            usage = extent.usage.filter(|_| self.cuts_placeholders);
        } else if self.added.continuous {
            // Some servers always send usage in an answer's last frame (the completions of llama.cpp and
            // mistral.rs). If earlier frames had none, it is not due to the injected option.
            let own = finish && self.content_without_usage && !self.running_usage;
            self.running_usage |= !finish;
            usage = extent.usage.filter(|_| !own);
        } else if value == Some(UsageValue::Zeros) {
            usage = extent.usage.filter(|_| self.cuts_placeholders);
        }
        let usage = usage.map(|usage| Cut::Member(usage.from, usage.to));
        match extent.timings.filter(|_| self.added.timings && extent.whole) {
            // The server always sends the timings of an answer's end.
            Some(timings) => {
                let is_running = !ends && matches!(value, None | Some(UsageValue::Null));
                self.cut_in_order(usage, timings, is_running);
            }
            None => usage.into_iter().for_each(|cut| self.cuts.cut(cut)),
        }
    }

    /// Cuts the usage and the timings of a frame; those of a frame that `is_running` only.
    fn cut_in_order(&mut self, usage: Option<Cut>, timings: Timings, is_running: bool) {
        let running = |(from, to)| is_running.then_some(Cut::Member(from, to));
        let mut cuts = [
            usage,
            timings.member.and_then(running),
            timings.verbose.and_then(running),
            timings.setting.map(|(from, to)| Cut::Flag(from, to)),
        ];
        // The editor removes parts in the order of the bytes, and the server may send the members in any order.
        cuts.sort_by_key(|cut| cut.map(Cut::from));
        cuts.into_iter().flatten().for_each(|cut| self.cuts.cut(cut));
    }

    fn disarm(&mut self) {
        // For the rest of the stream: nothing is held any more, so a later cut would miss its bytes.
        self.sends_unrequested = true;
        self.idle = true;
    }
}

/// Zeros prove nothing: Ollama sends them in every frame when final usage was requested.
fn is_above_zero(counts: &Counts) -> bool {
    counts.or_zero(Count::Input) > 0 || counts.or_zero(Count::Output) > 0
}

/// Passes everything on to a sink and to its filter. See [`UsageFilter::listen`].
#[derive(Debug)]
pub struct FilterSink<'a, S> {
    filter: &'a mut UsageFilter,
    sink: &'a mut S,
}

impl<S: Sink> Sink for FilterSink<'_, S> {
    #[inline]
    fn event(&mut self, event: Event) {
        if !self.filter.idle {
            self.filter.event(event);
        }
        self.sink.event(event);
    }

    #[inline]
    fn frame(&mut self, extent: Extent) {
        if !self.filter.idle {
            self.filter.end_frame(extent);
        }
        self.sink.frame(extent);
    }
}
