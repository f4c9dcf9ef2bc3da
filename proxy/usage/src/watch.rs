//! What of a response is not for the client. A [`Watch`] stands between scanner and meter: it hands
//! every event on and notes the frames that only our question brought.
//!
//! A server that sends usage unasked sends it to clients that did not ask, too. As soon as a stream
//! gives that away, nothing more is cut from it.

use scan::{Counts, Event, Extent, Scanner, Scope, Sink, Usage};

use crate::ask::Added;
use crate::mark::{Cut, Marks, Part};

/// Watches one response.
#[derive(Debug)]
pub struct Watch {
    added: Added,
    /// The client asked for usage itself.
    asked: bool,
    unasked: bool,
    /// There is nothing to cut and nothing to learn: events only pass.
    idle: bool,
    /// Answers finished.
    finished: u32,
    /// So many have to be before bytes may be held.
    awaited: u32,
    /// A frame with content had no usage in it.
    bare: bool,
    /// A frame before an answer's last one had usage in it.
    running: bool,
    /// Of the frame at hand.
    frame: Facts,
    marks: Marks,
}

#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    content: bool,
    finish: bool,
    /// A running count above zero.
    counted: bool,
    /// The server's own times.
    times: bool,
    /// An answer, or all of them, ended.
    ends: bool,
}

impl Watch {
    /// A watch for the response to a request to which this was `added`; `client_asked` if the client
    /// had asked for usage itself, at the end or running. Only an event stream may be watched: an
    /// unstreamed answer has usage always.
    pub fn new(added: Option<Added>, client_asked: bool) -> Self {
        let added = added.unwrap_or_default();
        Self {
            added,
            asked: client_asked,
            unasked: false,
            idle: client_asked && added == Added::default(),
            finished: 0,
            awaited: 1,
            bare: false,
            running: false,
            frame: Facts::default(),
            marks: Marks::new(),
        }
    }

    /// Lets bytes be held (without running counts) only when so many answers are finished, in place of
    /// the first: for servers that count all of them at the end.
    #[must_use]
    pub fn awaiting(mut self, answers: u32) -> Self {
        self.awaited = answers.max(1);
        self
    }

    /// Returns whether frames have to say where their counts stand.
    pub fn locates(&self) -> bool {
        self.added.is_running()
    }

    /// Makes the scanner say what this watch needs to know. To be called before the first byte.
    pub fn arm(&self, scanner: &mut Scanner) {
        if self.locates() {
            scanner.locate_usage();
        }
    }

    /// A sink that hands everything on to `sink` and lets this watch see it.
    #[inline]
    pub fn listen<'a, S: Sink>(&'a mut self, sink: &'a mut S) -> Listen<'a, S> {
        Listen { watch: self, sink }
    }

    /// What is to be done with the slice that was just fed to `scanner`; the editor takes it away.
    #[inline]
    pub fn marks(&mut self, scanner: &Scanner) -> &mut Marks {
        let armed = self.added.is_running() || self.added.include && self.finished >= self.awaited;
        self.marks.hold = if armed && !self.unasked { scanner.unfinished() } else { None };
        &mut self.marks
    }

    /// Whether usage was asked for, by the client or by us.
    pub fn asked(&self) -> bool {
        self.asked || self.added != Added::default()
    }

    /// Whether this server was seen to send usage that nobody asked for.
    pub fn unasked(&self) -> bool {
        self.unasked
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
            Event::Usage(Usage { scope: Scope::Running(_), counts }) => {
                self.frame.counted = self.finished == 0 && is_above_zero(&counts);
            }
            Event::Usage(_) | Event::Error | Event::Done => self.frame.ends = true,
            Event::Server(_) => self.frame.times = true,
            _ => {}
        }
    }

    #[inline]
    fn end_frame(&mut self, extent: Extent) {
        // Most frames are of no interest.
        if extent.is_usage || self.added.is_running() || self.frame.counted {
            self.end_telling_frame(extent);
        }
        self.frame = Facts::default();
    }

    fn end_telling_frame(&mut self, extent: Extent) {
        let Facts { content, finish, counted, times, ends } = self.frame;
        let nothing_added = self.added == Added::default();
        // llama.cpp counts in `timings`, which is no usage member: a client may ask for those alone.
        let is_member = extent.usage.is_some() || !times && !self.added.timings;
        if counted && is_member && !extent.is_usage && !self.added.continuous && !self.asked {
            self.give_up();
        } else if !extent.whole {
            // The client discards a torn block, so there is nothing to hide.
        } else if extent.is_usage {
            if self.added.include {
                self.cut(extent, Part::Event);
            } else if nothing_added && !self.asked {
                self.give_up();
            }
        } else if self.added.continuous {
            self.end_counted_frame(extent, content, finish);
        }
        if let Some(timings) = extent.timings.filter(|_| self.added.timings && extent.whole) {
            // The timings of an answer's end come unasked.
            let is_running = !ends && extent.usage.is_none();
            let member = |place: Option<(u64, u64)>| {
                place.filter(|_| is_running).map(|(from, to)| (from, Part::Member(from, to)))
            };
            let setting = timings.setting.map(|(from, to)| (from, Part::Flag(from, to)));
            let mut parts = [member(timings.member), member(timings.verbose), setting];
            parts.sort_by_key(|part| part.map(|(from, _)| from));
            parts.into_iter().flatten().for_each(|(_, part)| self.cut(extent, part));
        }
    }

    fn cut(&mut self, extent: Extent, part: Part) {
        self.marks.cut(Cut { frame: (extent.from, extent.to), part });
    }

    fn end_counted_frame(&mut self, extent: Extent, content: bool, finish: bool) {
        let Some(member) = extent.usage else {
            self.bare |= content;
            return;
        };
        // Some servers have usage in an answer's last frame always (llama.cpp's and mistral.rs's
        // completions). One that then was silent before does not count for us.
        let own = finish && self.bare && !self.running;
        self.running |= !finish;
        if !own {
            self.cut(extent, Part::Member(member.0, member.1));
        }
    }

    fn give_up(&mut self) {
        self.unasked = true;
        self.idle = true;
    }
}

/// Zeros prove nothing: Ollama sends them in every frame when usage was asked for at the end.
fn is_above_zero(counts: &Counts) -> bool {
    counts.input.is_some_and(|n| n > 0) || counts.output.is_some_and(|n| n > 0)
}

/// Hands everything on, and lets its watch see it. See [`Watch::listen`].
#[derive(Debug)]
pub struct Listen<'a, S> {
    watch: &'a mut Watch,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Listen<'_, S> {
    #[inline]
    fn event(&mut self, event: Event) {
        if !self.watch.idle {
            self.watch.event(event);
        }
        self.sink.event(event);
    }

    #[inline]
    fn frame(&mut self, extent: Extent) {
        if !self.watch.idle {
            self.watch.end_frame(extent);
        }
        self.sink.frame(extent);
    }
}
