//! The question for usage, merged into a request as it stands: nothing else of the body changes by
//! a byte. Where members stand is read off the parts of the body that serde_json lends out
//! (`RawValue`), so there is no second JSON grammar here.
//!
//! Only a request for a stream is touched: vLLM answers 400 to `stream_options` without one. Of
//! members that stand there twice the last counts, as it does for the servers' parsers. A yes and a no
//! may be written in any way that the server may take ([`scan::flag`]): a client that is counted only if it
//! writes `true` writes `1`.

use std::fmt;

use scan::flag;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::python;
use crate::splice::Splices;

/// What may be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Usage at the end: `stream_options.include_usage`.
    pub include: bool,
    /// Running counts in each frame: `stream_options.continuous_usage_stats` (vLLM, SGLang).
    pub continuous: bool,
    /// Running counts in each frame: `timings_per_token` (llama.cpp).
    pub timings: bool,
    /// The server ignores `continuous_usage_stats` without `include_usage` (vLLM).
    pub alone_is_void: bool,
    /// The server takes no flag but JSON's own, so that another must reach it as it is, to be refused.
    pub is_strict: bool,
}

/// What a request asks for now that its client had not asked for, and so what must be taken out of
/// the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Usage at the end.
    pub include: bool,
    /// Running counts, in a usage member of each frame.
    pub continuous: bool,
    /// Running counts, in a member `timings` of each frame.
    pub timings: bool,
}

impl Added {
    /// Returns whether running counts were added, of either form.
    pub fn is_running(self) -> bool {
        self.continuous || self.timings
    }
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// To be edited.
    Edit {
        /// The edit.
        edit: Splices,
        /// What it adds.
        added: Added,
        /// Each flag stood there as JSON has flags. Who refuses another says nothing of the question.
        plain: bool,
    },
    /// To be left as it is.
    Nothing(Why),
}

/// Why a request is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its top level does not ask for a stream.
    NotStreamed,
    /// What is wanted is in it already; or it asks for running counts but for none at the end,
    /// which servers take differently, so that nobody could say what an addition adds.
    AskedAlready,
    /// It is not JSON, not even as Python reads it: raw control characters, UTF-16, a second value, an
    /// end too soon.
    NotJson,
    /// `stream_options`, a flag in it or the body itself is of a type we do not expect.
    Odd,
}

const INCLUDE: &str = "include_usage";
const CONTINUOUS: &str = "continuous_usage_stats";
const TIMINGS: &str = "timings_per_token";

/// Says how `want` is merged into the request `body`. Takes time in proportion to the body, and
/// recurses nowhere.
pub fn ask(body: &[u8], want: Ask) -> Asking {
    let merged = match merge(body, want) {
        // Who refuses such a body refuses it with the question, too.
        Err(Why::NotJson) => python::as_json(body).map_or(Err(Why::NotJson), |copy| merge(&copy, want)),
        merged => merged,
    };
    match merged {
        Ok(Merged { edit, added, plain }) => Asking::Edit { edit, added, plain },
        Err(why) => Asking::Nothing(why),
    }
}

struct Merged {
    edit: Splices,
    added: Added,
    plain: bool,
}

fn merge(body: &[u8], want: Ask) -> Result<Merged, Why> {
    let top: Members<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => Why::Odd,
        _ => Why::NotJson,
    })?;
    let stream = top.stream.filter(|value| asks_for_frames(value)).ok_or(Why::NotStreamed)?;
    let mut merged =
        Merged { edit: Splices::default(), added: Added::default(), plain: is_plain(Some(stream)) };
    let (at, len) = place(body, stream);
    if want.timings {
        merged.ask_timings(body, want, top.timings, at + len)?;
    }
    match merged.ask_options(body, want, top.options, at + len) {
        // One question is as good as two where the other has its answer.
        Err(Why::AskedAlready) if merged.added.timings => Ok(merged),
        asked => asked.map(|()| merged),
    }
}

impl Merged {
    /// Merges `timings_per_token` in, at `end`, the end of a member, if the request has none.
    fn ask_timings(
        &mut self,
        body: &[u8],
        want: Ask,
        written: Option<&RawValue>,
        end: usize,
    ) -> Result<(), Why> {
        self.plain &= is_plain(written);
        match Flag::of(body, want, written)? {
            Flag::On => return Ok(()),
            Flag::Off(at, len) => self.edit.add(at, len, b"true"),
            Flag::Absent => self.edit.add(end, 0, b",\"timings_per_token\":true"),
        }
        self.added.timings = true;
        Ok(())
    }

    /// Merges the members of `stream_options` in; the object goes to `end` if there is none.
    fn ask_options(
        &mut self,
        body: &[u8],
        want: Ask,
        options: Option<&RawValue>,
        end: usize,
    ) -> Result<(), Why> {
        let all = Added { include: want.include, continuous: want.continuous, timings: false };
        if all == Added::default() {
            return Err(Why::AskedAlready);
        }
        let Some(options) = options else {
            self.edit.add(end, 0, text(all, Within::Request));
            self.add(all);
            return Ok(());
        };
        let (at, len) = place(body, options);
        if options.get() == "null" {
            self.edit.add(at, len, text(all, Within::Nothing));
            self.add(all);
            return Ok(());
        }
        // No server reads a list as the members of an object.
        let inner: Members<'_> = serde_json::from_str(options.get()).map_err(|_| Why::Odd)?;
        let include = Flag::of(body, want, inner.include)?;
        let continuous = Flag::of(body, want, inner.continuous)?;
        let is_alone = continuous == Flag::On && include != Flag::On;
        if is_alone && !want.alone_is_void {
            return Err(Why::AskedAlready);
        }
        let written = Added {
            include: want.include && include != Flag::On,
            continuous: want.continuous && continuous != Flag::On,
            timings: false,
        };
        if written == Added::default() {
            return Err(Why::AskedAlready);
        }
        let mut absent = Added::default();
        for (flag, wanted, absent) in [
            (include, written.include, &mut absent.include),
            (continuous, written.continuous, &mut absent.continuous),
        ] {
            match flag {
                Flag::Off(at, len) if wanted => self.edit.add(at, len, b"true"),
                Flag::Absent => *absent = wanted,
                Flag::Off(..) | Flag::On => {}
            }
        }
        if absent != Added::default() {
            let within = if inner.any { Within::Options } else { Within::Empty };
            self.edit.add(at + 1, 0, text(absent, within));
        }
        // The running counts that the client asked for in vain come with what we ask for.
        self.add(Added { continuous: written.continuous || is_alone, ..written });
        self.plain &= is_plain(inner.include) && is_plain(inner.continuous);
        Ok(())
    }

    fn add(&mut self, added: Added) {
        self.added = Added { timings: self.added.timings, ..added };
    }
}

/// What stands around the members that are inserted.
#[derive(Clone, Copy)]
enum Within {
    /// A request without `stream_options`, after one of its members.
    Request,
    /// `stream_options: null`.
    Nothing,
    /// `stream_options: {}`.
    Empty,
    /// `stream_options` with members.
    Options,
}

fn text(added: Added, within: Within) -> &'static [u8] {
    macro_rules! texts {
        ($members:literal) => {
            match within {
                Within::Request => concat!(",\"stream_options\":{", $members, "}"),
                Within::Nothing => concat!("{", $members, "}"),
                Within::Empty => $members,
                Within::Options => concat!($members, ","),
            }
        };
    }
    let text = match (added.include, added.continuous) {
        (true, true) => texts!("\"include_usage\":true,\"continuous_usage_stats\":true"),
        (true, false) => texts!("\"include_usage\":true"),
        (false, true) => texts!("\"continuous_usage_stats\":true"),
        (false, false) => "",
    };
    text.as_bytes()
}

/// What a request says of one flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Absent,
    On,
    /// A no, or `null`, and where it stands: offset and length.
    Off(usize, usize),
}

impl Flag {
    fn of(body: &[u8], want: Ask, value: Option<&RawValue>) -> Result<Self, Why> {
        if want.is_strict && !is_plain(value) {
            return Err(Why::Odd);
        }
        let Some(value) = value else { return Ok(Self::Absent) };
        match says(value) {
            Some(true) => Ok(Self::On),
            None if value.get() != "null" => Err(Why::Odd),
            _ => {
                let (at, len) = place(body, value);
                Ok(Self::Off(at, len))
            }
        }
    }
}

/// A value as a flag, as servers in Python take it; `None` if it is none.
fn says(value: &RawValue) -> Option<bool> {
    match value.get() {
        "true" => Some(true),
        "false" => Some(false),
        text if text.len() > FLAG_BYTES => None,
        text if text.starts_with('"') => flag::word(serde_json::from_str::<String>(text).ok()?.as_bytes()),
        text => flag::number(text.as_bytes()),
    }
}

/// Returns whether a value of `stream` asks for frames, as the most lenient server takes it.
fn asks_for_frames(value: &RawValue) -> bool {
    match value.get() {
        "null" => false,
        text if says(value).is_some() || text.starts_with(['[', '{']) => says(value) != Some(false),
        text if text.starts_with('"') => text != "\"\"",
        text => flag::number_truth(text.as_bytes()),
    }
}

/// Whether a value is absent, or a flag as JSON has them.
fn is_plain(value: Option<&RawValue>) -> bool {
    value.is_none_or(|value| matches!(value.get(), "true" | "false" | "null"))
}

/// No flag is written longer: the longest word, each character escaped, and its quotes.
const FLAG_BYTES: usize = 5 * 6 + 2;

/// Offset and length of a value lent out of `body`.
fn place(body: &[u8], value: &RawValue) -> (usize, usize) {
    let text = value.get();
    (text.as_ptr().addr() - body.as_ptr().addr(), text.len())
}

/// The members we look for, of a request or of its `stream_options`; the last of each.
#[derive(Default)]
struct Members<'a> {
    stream: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
    include: Option<&'a RawValue>,
    continuous: Option<&'a RawValue>,
    timings: Option<&'a RawValue>,
    /// There is a member at all.
    any: bool,
}

enum Key {
    Stream,
    Options,
    Include,
    Continuous,
    Timings,
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
                let mut found = Members::default();
                while let Some(key) = map.next_key()? {
                    found.any = true;
                    let slot = match Key::of(key) {
                        Key::Stream => &mut found.stream,
                        Key::Options => &mut found.options,
                        Key::Include => &mut found.include,
                        Key::Continuous => &mut found.continuous,
                        Key::Timings => &mut found.timings,
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *slot = Some(map.next_value()?);
                }
                Ok(found)
            }
        }
        from.deserialize_map(Read)
    }
}

impl Key {
    /// Reads a key as it stands in the body, in its quotes. One with half a surrogate pair, which only some servers
    /// refuse, is none of ours.
    fn of(key: &RawValue) -> Self {
        let text = key.get();
        let inside = &text[1..text.len() - 1];
        if !inside.contains('\\') {
            return Self::named(inside);
        }
        let is_short = text.len() <= KEY_BYTES;
        let name = is_short.then(|| serde_json::from_str::<String>(text).ok()).flatten();
        name.map_or(Self::Other, |name| Self::named(&name))
    }

    fn named(name: &str) -> Self {
        match name {
            "stream" => Self::Stream,
            "stream_options" => Self::Options,
            INCLUDE => Self::Include,
            CONTINUOUS => Self::Continuous,
            TIMINGS => Self::Timings,
            _ => Self::Other,
        }
    }
}

/// No key we look for is written longer: each character escaped, and its quotes.
const KEY_BYTES: usize = CONTINUOUS.len() * 6 + 2;
