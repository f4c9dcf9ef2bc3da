//! Merges usage options into a request without changing any other byte of its body. The positions of members
//! come from the parts of the body that serde_json borrows (`RawValue`), so there is no second JSON grammar
//! here.
//!
//! Only a request for a stream is edited: vLLM answers 400 to `stream_options` without one. The last of two
//! equal members counts, as in the servers' parsers. Flags may be written in any form that the server may
//! accept ([`scan::flag`]): otherwise a client could avoid being counted by writing `1` for `true`.

use std::fmt;

use scan::flag;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::python;
use crate::splice::Splices;

/// The usage options that may be injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageOptions {
    /// Usage at the end: `stream_options.include_usage`.
    pub include: bool,
    /// Running counts in each frame: `stream_options.continuous_usage_stats` (vLLM, SGLang).
    pub continuous: bool,
    /// Running counts in each frame: `timings_per_token` (llama.cpp).
    pub timings: bool,
    /// The server ignores `continuous_usage_stats` without `include_usage` (vLLM).
    pub alone_is_void: bool,
    /// The server accepts JSON booleans only; other flags must reach it unchanged, so that it refuses them.
    pub is_strict: bool,
}

/// The options added to a request, whose effects must be removed from the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedOptions {
    /// Usage at the end.
    pub include: bool,
    /// Running counts, in a usage member of each frame.
    pub continuous: bool,
    /// Running counts, in a member `timings` of each frame.
    pub timings: bool,
}

impl AddedOptions {
    /// Returns true if running counts of either form were added.
    pub fn is_running(self) -> bool {
        self.continuous || self.timings
    }
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// The request is edited.
    Edit {
        /// The edit.
        edit: Splices,
        /// The options that it adds.
        added: AddedOptions,
        /// True if every flag was a JSON boolean. Then a refusal may be due to the injected options.
        plain: bool,
    },
    /// The request stays unchanged.
    Nothing(NotInjected),
}

/// The reason a request stays unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInjected {
    /// It does not ask for a stream at the top level.
    NotStreamed,
    /// It already has all allowed options; or it asks for running counts without a final count, which
    /// servers read differently, so that the effect of an addition is unknown.
    AlreadyRequested,
    /// It is not JSON, not even as Python reads it: raw control characters, UTF-16, a second value, or cut
    /// off.
    NotJson,
    /// `stream_options`, a flag in it or the body itself has an unexpected type.
    UnexpectedType,
}

const INCLUDE: &str = "include_usage";
const CONTINUOUS: &str = "continuous_usage_stats";
const TIMINGS: &str = "timings_per_token";

/// Merges the `allowed` options into the request `body`. Takes time proportional to the body and does not
/// recurse.
pub fn inject_usage(body: &[u8], allowed: UsageOptions) -> Injection {
    let merged = match merge(body, allowed) {
        // A server that refuses such a body refuses it with the options, too.
        Err(NotInjected::NotJson) => {
            python::as_json(body).map_or(Err(NotInjected::NotJson), |copy| merge(&copy, allowed))
        }
        merged => merged,
    };
    match merged {
        Ok(Merged { edit, added, plain }) => Injection::Edit { edit, added, plain },
        Err(why) => Injection::Nothing(why),
    }
}

struct Merged {
    edit: Splices,
    added: AddedOptions,
    plain: bool,
}

fn merge(body: &[u8], allowed: UsageOptions) -> Result<Merged, NotInjected> {
    let top: Members<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => NotInjected::UnexpectedType,
        _ => NotInjected::NotJson,
    })?;
    let stream = top.stream.filter(|value| requests_stream(value)).ok_or(NotInjected::NotStreamed)?;
    let mut merged =
        Merged { edit: Splices::default(), added: AddedOptions::default(), plain: is_plain(Some(stream)) };
    let (at, len) = span(body, stream);
    if allowed.timings {
        merged.inject_timings(body, allowed, top.timings, at + len)?;
    }
    match merged.inject_options(body, allowed, top.options, at + len) {
        // The timings alone are enough where the other option is already present.
        Err(NotInjected::AlreadyRequested) if merged.added.timings => Ok(merged),
        result => result.map(|()| merged),
    }
}

impl Merged {
    /// Merges `timings_per_token` in, at `end`, the end of a member, if the request has none.
    fn inject_timings(
        &mut self,
        body: &[u8],
        allowed: UsageOptions,
        written: Option<&RawValue>,
        end: usize,
    ) -> Result<(), NotInjected> {
        self.plain &= is_plain(written);
        match Flag::of(body, allowed, written)? {
            Flag::On => return Ok(()),
            Flag::Off(at, len) => self.edit.add(at, len, b"true"),
            Flag::Absent => self.edit.add(end, 0, b",\"timings_per_token\":true"),
        }
        self.added.timings = true;
        Ok(())
    }

    /// Merges the members of `stream_options` in; a new object goes to `end`.
    fn inject_options(
        &mut self,
        body: &[u8],
        allowed: UsageOptions,
        options: Option<&RawValue>,
        end: usize,
    ) -> Result<(), NotInjected> {
        let all = AddedOptions { include: allowed.include, continuous: allowed.continuous, timings: false };
        if all == AddedOptions::default() {
            return Err(NotInjected::AlreadyRequested);
        }
        let Some(options) = options else {
            self.edit.add(end, 0, text(all, InsertContext::Request));
            self.add(all);
            return Ok(());
        };
        let (at, len) = span(body, options);
        if options.get() == "null" {
            self.edit.add(at, len, text(all, InsertContext::Nothing));
            self.add(all);
            return Ok(());
        }
        // No server reads a list as the members of an object.
        let inner: Members<'_> =
            serde_json::from_str(options.get()).map_err(|_| NotInjected::UnexpectedType)?;
        let include = Flag::of(body, allowed, inner.include)?;
        let continuous = Flag::of(body, allowed, inner.continuous)?;
        let is_continuous_only = continuous == Flag::On && include != Flag::On;
        if is_continuous_only && !allowed.alone_is_void {
            return Err(NotInjected::AlreadyRequested);
        }
        let written = AddedOptions {
            include: allowed.include && include != Flag::On,
            continuous: allowed.continuous && continuous != Flag::On,
            timings: false,
        };
        if written == AddedOptions::default() {
            return Err(NotInjected::AlreadyRequested);
        }
        let mut absent = AddedOptions::default();
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
        if absent != AddedOptions::default() {
            let context = if inner.any { InsertContext::Options } else { InsertContext::Empty };
            self.edit.add(at + 1, 0, text(absent, context));
        }
        // Running counts that the client requested without effect arrive with the injected option.
        self.add(AddedOptions { continuous: written.continuous || is_continuous_only, ..written });
        self.plain &= is_plain(inner.include) && is_plain(inner.continuous);
        Ok(())
    }

    fn add(&mut self, added: AddedOptions) {
        self.added = AddedOptions { timings: self.added.timings, ..added };
    }
}

/// The context of the inserted members.
#[derive(Clone, Copy)]
enum InsertContext {
    /// A request without `stream_options`, after one of its members.
    Request,
    /// `stream_options: null`.
    Nothing,
    /// `stream_options: {}`.
    Empty,
    /// `stream_options` with members.
    Options,
}

fn text(added: AddedOptions, context: InsertContext) -> &'static [u8] {
    macro_rules! texts {
        ($members:literal) => {
            match context {
                InsertContext::Request => concat!(",\"stream_options\":{", $members, "}"),
                InsertContext::Nothing => concat!("{", $members, "}"),
                InsertContext::Empty => $members,
                InsertContext::Options => concat!($members, ","),
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

/// A flag of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Absent,
    On,
    /// `false` or `null`, with its offset and length.
    Off(usize, usize),
}

impl Flag {
    fn of(body: &[u8], allowed: UsageOptions, value: Option<&RawValue>) -> Result<Self, NotInjected> {
        if allowed.is_strict && !is_plain(value) {
            return Err(NotInjected::UnexpectedType);
        }
        let Some(value) = value else { return Ok(Self::Absent) };
        match as_flag(value) {
            Some(true) => Ok(Self::On),
            None if value.get() != "null" => Err(NotInjected::UnexpectedType),
            _ => {
                let (at, len) = span(body, value);
                Ok(Self::Off(at, len))
            }
        }
    }
}

/// A value as a flag, as servers in Python read it; `None` if it is none.
fn as_flag(value: &RawValue) -> Option<bool> {
    match value.get() {
        "true" => Some(true),
        "false" => Some(false),
        text if text.len() > FLAG_MAX_BYTES => None,
        text if text.starts_with('"') => flag::word(serde_json::from_str::<String>(text).ok()?.as_bytes()),
        text => flag::number(text.as_bytes()),
    }
}

/// Returns true if a value of `stream` requests a stream, as the most lenient server reads it.
fn requests_stream(value: &RawValue) -> bool {
    match value.get() {
        "null" => false,
        text if as_flag(value).is_some() || text.starts_with(['[', '{']) => as_flag(value) != Some(false),
        text if text.starts_with('"') => text != "\"\"",
        text => flag::number_truth(text.as_bytes()),
    }
}

/// Returns true for an absent value, `null` or a JSON boolean.
fn is_plain(value: Option<&RawValue>) -> bool {
    value.is_none_or(|value| matches!(value.get(), "true" | "false" | "null"))
}

/// The longest flag: the longest word with each character escaped, and its quotes.
const FLAG_MAX_BYTES: usize = 5 * 6 + 2;

/// The offset and length in `body` of a value borrowed from it.
fn span(body: &[u8], value: &RawValue) -> (usize, usize) {
    let text = value.get();
    (text.as_ptr().addr() - body.as_ptr().addr(), text.len())
}

/// The relevant members of a request or of its `stream_options`; the last of each.
#[derive(Default)]
struct Members<'a> {
    stream: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
    include: Option<&'a RawValue>,
    continuous: Option<&'a RawValue>,
    timings: Option<&'a RawValue>,
    /// True if there is any member.
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
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
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
        from.deserialize_map(MembersVisitor)
    }
}

impl Key {
    /// Reads a key as it is in the body, with its quotes. A key with half a surrogate pair, which only some
    /// servers refuse, is another key.
    fn of(key: &RawValue) -> Self {
        let text = key.get();
        let inside = &text[1..text.len() - 1];
        if !inside.contains('\\') {
            return Self::from_name(inside);
        }
        let is_short = text.len() <= KEY_MAX_BYTES;
        let name = is_short.then(|| serde_json::from_str::<String>(text).ok()).flatten();
        name.map_or(Self::Other, |name| Self::from_name(&name))
    }

    fn from_name(name: &str) -> Self {
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

/// The longest relevant key: each character escaped, and its quotes.
const KEY_MAX_BYTES: usize = CONTINUOUS.len() * 6 + 2;
