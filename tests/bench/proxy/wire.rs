//! The bytes known to both mock and load: a chat stream as vLLM writes it, a JSON reply of 16 tokens, and their
//! requests.
//!
//! A text frame's content begins with five characters, the time of its sending, from which the load computes its age.
//! They count microseconds modulo 2^30, some 18 minutes.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// The path of every metered request.
pub(crate) const PATH: &str = "/v1/chat/completions";

/// A path that tokenmeter knows and does not meter.
pub(crate) const UNMETERED_PATH: &str = "/v1/messages/count_tokens";

/// Bytes of a text frame without padding, its blank line included.
pub(crate) const FRAME_BYTES: usize = 217;

/// The mock's answer to an unstreamed request.
pub(crate) const JSON_REPLY: &str = concat!(
    r#"{"id":"chatcmpl-b13ebc9dedd34fac","object":"chat.completion","created":1795220670,"#,
    r#""model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"#,
    r#""A meter counts what passes and leaves it as it was; so does this one.","refusal":null,"#,
    r#""annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"#,
    r#""finish_reason":"stop","stop_reason":null,"token_ids":null}],"service_tier":null,"#,
    r#""system_fingerprint":null,"usage":{"prompt_tokens":19,"total_tokens":35,"#,
    r#""completion_tokens":16,"prompt_tokens_details":null},"prompt_logprobs":null}"#
);

/// Output tokens that reply reports.
pub(crate) const JSON_TOKENS: u64 = 16;

/// The reply that one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The JSON reply.
    Json,
    /// A stream.
    Stream {
        /// Text frames in it.
        text: u32,
        /// The pause between two of them; 0 is none.
        pause_us: u32,
        /// Bytes of padding in each.
        pad: u32,
    },
    /// A stream of a text frame every 10 ms, until the client closes the connection.
    Held,
}

impl Ask {
    /// The request to a path, head and body. The mock reads the parameters from the body, which every proxy forwards
    /// unchanged.
    pub(crate) fn request(&self, path: &str, host: &str) -> Vec<u8> {
        let wish = match self {
            Self::Json => r#""max_tokens":16"#.to_owned(),
            Self::Stream { text, pause_us, pad } => {
                format!(r#""max_tokens":{text},"pause_us":{pause_us},"pad":{pad},"stream":true"#)
            }
            Self::Held => r#""max_tokens":1,"held":true,"stream":true"#.to_owned(),
        };
        let body = format!(
            r#"{{"model":"tiny","messages":[{{"role":"system","content":"You are a careful clerk."}},{{"role":"user","content":"Tell me in one sentence what a meter does, please."}}],"temperature":0.7,{wish}}}"#
        );
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// Parses a request's body.
    pub(crate) fn read(body: &str) -> Option<Self> {
        if !body.contains(r#""stream":true"#) {
            return Some(Self::Json);
        }
        if body.contains(r#""held":true"#) {
            return Some(Self::Held);
        }
        let number = |key: &str| {
            let (_, value) = body.split_once(key)?;
            value.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Some(Self::Stream {
            text: number(r#""max_tokens":"#)?,
            pause_us: number(r#""pause_us":"#)?,
            pad: number(r#""pad":"#)?,
        })
    }

    /// Frames of a whole reply; a JSON reply is one.
    pub(crate) fn frames(&self) -> u64 {
        match self {
            Self::Json => 1,
            Self::Held => u64::MAX,
            // The role, the finish and `[DONE]`.
            Self::Stream { text, .. } => u64::from(*text) + 3,
        }
    }

    /// Output tokens of a whole reply, for a meter.
    pub(crate) fn tokens(&self) -> u64 {
        match self {
            Self::Json => JSON_TOKENS,
            // The client leaves after the first frame; one that is sent meanwhile may be counted.
            Self::Held => 1,
            Self::Stream { text, .. } => u64::from(*text),
        }
    }
}

/// The frames of a stream, in order: role, text, …, text, finish, done.
pub(crate) struct Frames {
    /// The first frame, without a token.
    pub(crate) role: Vec<u8>,
    /// A frame with a token, except its stamp.
    pub(crate) text: Vec<u8>,
    /// The position of the stamp in `text`.
    pub(crate) stamp: Range<usize>,
    /// The last JSON frame.
    pub(crate) finish: Vec<u8>,
    /// The end mark.
    pub(crate) done: Vec<u8>,
}

impl Frames {
    /// The frames of a stream with padded text frames.
    pub(crate) fn new(pad: u32) -> Self {
        const STAMP: &str = "-----";
        let choice = |delta: &str, rest: &str| {
            format!(
                "data: {{\"id\":\"chatcmpl-b13ebc9dedd34fac\",\"object\":\"chat.completion.chunk\",\
                 \"created\":1795220670,\"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
                 \"logprobs\":null,{rest}}}]}}\n\n"
            )
        };
        let padding = "x".repeat(pad as usize);
        let text = choice(
            &format!(r#"{{"content":"{STAMP}{padding}"}}"#),
            r#""finish_reason":null,"token_ids":null"#,
        );
        let at = text.find(STAMP).unwrap_or(0);
        Self {
            role: choice(r#"{"role":"assistant","content":""}"#, r#""finish_reason":null"#).into_bytes(),
            stamp: at..at + STAMP.len(),
            text: text.into_bytes(),
            finish: choice(r#"{"content":""}"#, r#""finish_reason":"length","stop_reason":null"#)
                .into_bytes(),
            done: b"data: [DONE]\n\n".to_vec(),
        }
    }
}

/// A frame as one chunk of HTTP/1.1.
pub(crate) fn chunk(frame: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", frame.len()).into_bytes();
    chunk.extend_from_slice(frame);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// The alphabet of stamps: six bits a character, without JSON's special characters.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const STAMP_MODULUS: u32 = 1 << 30;

/// The current time for a stamp: the wall clock, which two processes share.
pub(crate) fn now_us() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_micros() % u128::from(STAMP_MODULUS)) as u32
}

/// Writes a stamp.
pub(crate) fn stamp(to: &mut [u8], mut us: u32) {
    for byte in to.iter_mut().rev() {
        *byte = DIGITS[(us % 64) as usize];
        us /= 64;
    }
}

/// Returns the microseconds from a time to a later one.
pub(crate) fn since_us(earlier: u32, later: u32) -> u32 {
    later.wrapping_sub(earlier) % STAMP_MODULUS
}

/// The age of a stamp; `None` if it is invalid.
pub(crate) fn age_us(stamp: &[u8], now: u32) -> Option<u32> {
    let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte);
    let sent = stamp.iter().try_fold(0, |us, byte| Some(us * 64 + digit(byte)? as u32))?;
    Some(since_us(sent, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_frame_has_the_promised_size() {
        assert_eq!(Frames::new(0).text.len(), FRAME_BYTES);
        assert_eq!(Frames::new(100).text.len(), FRAME_BYTES + 100);
    }

    #[test]
    fn a_stamp_round_trips() {
        let mut bytes = [0; 5];
        stamp(&mut bytes, STAMP_MODULUS - 2);
        assert_eq!(age_us(&bytes, 5), Some(7));
        assert_eq!(age_us(b"ab\"cd", 5), None);
    }

    #[test]
    fn a_request_round_trips() {
        for ask in [Ask::Json, Ask::Stream { text: 7, pause_us: 50_000, pad: 3 }, Ask::Held] {
            let request = String::from_utf8(ask.request(PATH, "h")).unwrap();
            let (_, body) = request.split_once("\r\n\r\n").unwrap();
            assert_eq!(Ask::read(body), Some(ask));
        }
    }
}
