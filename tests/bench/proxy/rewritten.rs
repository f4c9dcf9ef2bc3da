//! The check of a response that a proxy writes anew: its texts, in order and complete.

use serde_json::Value;

use crate::wire::{self, Ask, Frames, JSON_REPLY};

/// The body of a rewritten response while it is received.
pub(crate) struct Rewritten {
    ask: Ask,
    /// The current line.
    line: Vec<u8>,
    /// Frames with the text that was sent.
    texts: u32,
    is_done: bool,
}

impl Rewritten {
    /// A body before its first byte.
    pub(crate) fn new(ask: Ask) -> Self {
        Self { ask, line: Vec::new(), texts: 0, is_done: false }
    }

    /// Text frames so far.
    pub(crate) fn texts(&self) -> u32 {
        self.texts
    }

    /// Processes bytes read at `now`; calls `aged` with the age of each text frame.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        now: u32,
        frames: &Frames,
        mut aged: impl FnMut(u32),
    ) -> Result<(), String> {
        for &byte in bytes {
            if byte != b'\n' || self.ask == Ask::Json {
                self.line.push(byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            match line.trim_ascii_end().strip_prefix(b"data: ") {
                Some(b"[DONE]") => self.is_done = true,
                Some(frame) => self.frame(frame, now, frames, &mut aged)?,
                None => {}
            }
        }
        Ok(())
    }

    fn frame(
        &mut self,
        frame: &[u8],
        now: u32,
        frames: &Frames,
        aged: &mut impl FnMut(u32),
    ) -> Result<(), String> {
        let frame: Value =
            serde_json::from_slice(frame).map_err(|error| format!("a frame is no JSON: {error}"))?;
        let Some(text) = frame["choices"][0]["delta"]["content"].as_str().filter(|text| !text.is_empty())
        else {
            return Ok(());
        };
        let (stamp, padding) =
            text.as_bytes().split_at_checked(frames.stamp.len()).ok_or("a text was changed")?;
        aged(
            wire::age_us(stamp, now)
                .filter(|_| padding.iter().all(|&x| x == b'x'))
                .ok_or("a text was changed")?,
        );
        self.texts += 1;
        Ok(())
    }

    /// Checks a body that has ended.
    pub(crate) fn end(&self) -> Result<(), String> {
        match self.ask {
            Ask::Json => {
                let text = |json: &[u8]| {
                    let json: Value = serde_json::from_slice(json).unwrap_or_default();
                    json["choices"][0]["message"]["content"].as_str().map(str::to_owned)
                };
                let is_same = text(&self.line) == text(JSON_REPLY.as_bytes());
                if is_same { Ok(()) } else { Err("the text was changed".into()) }
            }
            Ask::Stream { text, .. } if text == self.texts && self.is_done => Ok(()),
            _ => Err(format!("ended after {} texts", self.texts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: Ask = Ask::Stream { text: 2, pause_us: 0, pad: 1 };

    fn check(ask: Ask, body: &str) -> Result<u32, String> {
        let mut reply = Rewritten::new(ask);
        let frames = Frames::new(1);
        for byte in body.as_bytes() {
            reply.feed(&[*byte], 7, &frames, |_| ())?;
        }
        reply.end().map(|()| reply.texts())
    }

    #[test]
    fn texts_are_compared_and_counted() {
        let text =
            |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
        let whole = [role, &text("00001x"), &text("00002x"), "data: [DONE]\n\n"].concat();
        assert_eq!(check(ASK, &whole), Ok(2));
        for (from, to) in [("00001x", "00001y"), ("00001x", "0"), ("[DONE]", "x")] {
            assert!(check(ASK, &whole.replace(from, to)).is_err(), "{to}");
        }
        assert!(check(ASK, &whole.replace(&text("00001x"), "")).is_err());
        assert_eq!(check(Ask::Json, JSON_REPLY), Ok(0));
        assert!(check(Ask::Json, &JSON_REPLY.replace("meter", "metre")).is_err());
    }
}
