//! Faults of one response, from a request header.
//!
//! `x-simulate: slow-head=200ms, cut-after=7`: a list of directives for that request alone.
//!
//! | Directive | Effect |
//! |---|---|
//! | `error-status=503` | the response is this status in the server's own error shape |
//! | `no-head` | the connection closes before any response |
//! | `slow-head=200ms` | the response head is delayed |
//! | `error-in-band-after=5` | an error event after 5 token frames; unstreamed, status 500 |
//! | `cut-after=7` | the socket closes (FIN) after 7 token frames, without the last chunk |
//! | `reset-after=7` | as `cut-after`, with a TCP reset |
//! | `end-after=7` | HTTP ends cleanly after 7 token frames, without the dialect's end mark |
//! | `hang-after=4` | no more data after 4 token frames, until the client leaves |
//! | `stall-after=3`, `stall=300ms` | one pause after 3 token frames (default: 300 ms) |
//! | `ping-every=50ms` | a comment event after each such time without data |
//! | `no-usage` | no usage event, even if requested |
//! | `force-usage` | usage, even if not requested |
//! | `refuse-usage` | status 400 if the request has `stream_options` |
//! | `tear=5` | each event is sent in chunks of 5 bytes |
//! | `close` | `Connection: close` after this response |
//!
//! Durations are real, in `ms` or `s`. A count of frames that the response never reaches has no effect;
//! a count equal to its frames takes effect before usage and end mark.
//!
//! The law: an unknown directive is an error and never ignored. A test with a misspelt directive
//! must not pass.

use std::str::FromStr;
use std::time::Duration;

/// The faults of one response. The default has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Respond with this status at once.
    pub(crate) error_status: Option<u16>,
    /// Close the connection instead of responding.
    pub(crate) no_head: bool,
    /// Delay of the response head, in real time.
    pub(crate) slow_head: Option<Duration>,
    /// A break after this number of token frames.
    pub(crate) breaks: Option<(u64, Break)>,
    /// A pause after this number of token frames.
    pub(crate) stall: Option<(u64, Duration)>,
    /// A comment event after this time without data.
    pub(crate) ping_every: Option<Duration>,
    /// The treatment of usage.
    pub(crate) usage: Usage,
    /// Maximum bytes per chunk.
    pub(crate) tear: Option<usize>,
    /// Close the connection after the response.
    pub(crate) close: bool,
}

/// The way a stream breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// With an error event, followed by what the server sends after one.
    ErrorInBand,
    /// With a closed socket and no last chunk.
    Cut,
    /// With a TCP reset.
    Reset,
    /// With a last chunk and no end mark.
    End,
    /// Ends with silence: no more data until the client leaves.
    Hang,
}

/// The treatment of usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Usage {
    /// Sent if requested.
    #[default]
    AsAsked,
    /// Never sent.
    Never,
    /// Always sent.
    Always,
    /// A request for it is answered with status 400.
    Refused,
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(header: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        let mut stall = (None, None);
        for directive in header.split(',').map(str::trim).filter(|d| !d.is_empty()) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name {
                "error-status" => {
                    let status = number(name, value)?;
                    if !(400..=599).contains(&status) {
                        return Err(format!("{name}={value}: not a status of 400 to 599"));
                    }
                    faults.error_status = Some(status as u16);
                }
                "no-head" => faults.no_head = flag(name, value)?,
                "slow-head" => faults.slow_head = Some(duration(name, value)?),
                "error-in-band-after" => faults.break_off(name, value, Break::ErrorInBand)?,
                "cut-after" => faults.break_off(name, value, Break::Cut)?,
                "reset-after" => faults.break_off(name, value, Break::Reset)?,
                "end-after" => faults.break_off(name, value, Break::End)?,
                "hang-after" => faults.break_off(name, value, Break::Hang)?,
                "stall-after" => stall.0 = Some(number(name, value)?),
                "stall" => stall.1 = Some(duration(name, value)?),
                "ping-every" => {
                    // Below a millisecond the timer would turn this into a busy loop.
                    let every = duration(name, value)?.max(Duration::from_millis(1));
                    faults.ping_every = Some(every);
                }
                "no-usage" if flag(name, value)? => faults.usage = Usage::Never,
                "force-usage" if flag(name, value)? => faults.usage = Usage::Always,
                "refuse-usage" if flag(name, value)? => faults.usage = Usage::Refused,
                "tear" => faults.tear = Some(number(name, value)?.clamp(1, 1 << 20) as usize),
                "close" => faults.close = flag(name, value)?,
                _ => return Err(format!("{directive}: not a directive of x-simulate")),
            }
        }
        faults.stall = match stall {
            (Some(after), pause) => Some((after, pause.unwrap_or(DEFAULT_STALL))),
            (None, Some(_)) => return Err("stall without stall-after".to_owned()),
            (None, None) => None,
        };
        Ok(faults)
    }
}

impl Faults {
    fn break_off(&mut self, name: &str, value: &str, how: Break) -> Result<(), String> {
        if self.breaks.is_some() {
            return Err(format!("{name}: a stream breaks off once"));
        }
        self.breaks = Some((number(name, value)?, how));
        Ok(())
    }
}

/// Above every gap of the default speed model, below the timeout of every test.
const DEFAULT_STALL: Duration = Duration::from_millis(300);

/// Maximum duration: no test waits longer, and an instant plus this cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(3_600);

fn flag(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "" => Ok(true),
        _ => Err(format!("{name} takes no value")),
    }
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name}={value}: not a whole number"))
}

fn duration(name: &str, value: &str) -> Result<Duration, String> {
    let wrong = || format!("{name}={value}: not a duration in ms or s");
    let (digits, unit) = match value.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => (value.strip_suffix('s').ok_or_else(wrong)?, 1_000),
    };
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    Ok(Duration::from_millis(count.saturating_mul(unit)).min(MAX_DURATION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_parse_in_any_order_and_spacing() {
        let faults: Faults = " cut-after=7,slow-head=200ms ,ping-every=1s,, no-usage".parse().unwrap();
        assert_eq!(
            faults,
            Faults {
                slow_head: Some(Duration::from_millis(200)),
                breaks: Some((7, Break::Cut)),
                ping_every: Some(Duration::from_secs(1)),
                usage: Usage::Never,
                ..Faults::default()
            }
        );
        assert_eq!("".parse(), Ok(Faults::default()));
    }

    #[test]
    fn stall_has_a_position_and_a_default_length() {
        let faults: Faults = "stall=1s,stall-after=3".parse().unwrap();
        assert_eq!(faults.stall, Some((3, Duration::from_secs(1))));
        let faults: Faults = "stall-after=3".parse().unwrap();
        assert_eq!(faults.stall, Some((3, DEFAULT_STALL)));
    }

    #[test]
    fn unknown_or_invalid_directives_are_errors() {
        for header in [
            "cut",
            "cut-after",
            "cut-after=x",
            "cut-after=-1",
            "cut-after=1,hang-after=2",
            "slow-head=200",
            "slow-head=fast",
            "error-status=200",
            "error-status=70000",
            "no-usage=yes",
            "stall=1s",
            "cutafter=1",
        ] {
            assert!(header.parse::<Faults>().is_err(), "{header}");
        }
    }
}
