//! A script of a pair of connections, read from any bytes: the messages of the client and of the server, and the order and
//! the pieces in which they are sent.

use std::fmt;

/// The separator of the client's bytes and the answers: a byte that few messages have.
const SEPARATOR: u8 = 0xFE;

/// The bound of the number of steps, exclusive.
const STEPS_MAX: usize = 32;

/// A script.
#[derive(Clone)]
pub(crate) struct Script {
    /// True if the proxy requests usage, and removes it from the answers.
    pub(crate) is_edited: bool,
    /// True if a client that has closed its half still gets its answers.
    pub(crate) half_close: bool,
    pub(crate) steps: Vec<Step>,
    /// All bytes of the client.
    pub(crate) client: Vec<u8>,
    /// The answers of the server, in their order. Further requests get the last one again.
    pub(crate) answers: Vec<Vec<u8>>,
}

/// A step. After the last one, the rest of all messages is sent, and the sockets are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The client sends this many of its bytes.
    Send(usize),
    /// The server sends this many bytes of its answers to the requests that it has received.
    Answer(usize),
    /// The server begins its next answer before it has the whole request.
    AnswerEarly,
    /// The client stops reading, or reads again.
    Stall,
    /// The server stops reading, or reads again.
    StallServer,
    /// The client closes its half.
    EndClient,
    /// The client closes its socket.
    CloseClient,
    /// The server closes its half.
    EndServer,
    /// The server closes its socket.
    CloseServer,
}

impl Script {
    /// Reads a script: the number of steps, with 128 for edits and 64 for clients that may close their half, one byte for
    /// each step, then the client's bytes and the answers.
    pub(crate) fn read(input: &[u8]) -> Self {
        let (count, rest) = input.split_first().unwrap_or((&0, &[]));
        let (steps, rest) = rest.split_at((usize::from(*count) % STEPS_MAX).min(rest.len()));
        let mut parts = rest.split(|&byte| byte == SEPARATOR).map(<[u8]>::to_vec);
        let client = parts.next().unwrap_or_default();
        let steps = steps.iter().map(|&step| Step::read(step)).collect();
        let (is_edited, half_close) = (count & 128 > 0, count & 64 > 0);
        Self { is_edited, half_close, steps, client, answers: parts.collect() }
    }

    /// The same bytes, without pauses.
    pub(crate) fn whole(&self) -> Self {
        Self { steps: Vec::new(), ..self.clone() }
    }

    /// Returns true if its steps only cut messages into pieces.
    pub(crate) fn only_cuts(&self) -> bool {
        // The proxy holds torn events for a time.
        !self.is_edited
            && self
                .steps
                .iter()
                .all(|step| matches!(step, Step::Send(_) | Step::Answer(_) | Step::Stall | Step::StallServer))
    }

    /// The answer to the request with this number.
    pub(crate) fn answer(&self, number: usize) -> &[u8] {
        match self.answers.get(number).or(self.answers.last()) {
            Some(answer) => answer,
            None => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "edited: {}, half-close: {}", self.is_edited, self.half_close)?;
        writeln!(f, "{:?}\n{}", self.steps, self.client.escape_ascii())?;
        self.answers.iter().try_for_each(|answer| writeln!(f, "{}", answer.escape_ascii()))
    }
}

impl Step {
    fn read(byte: u8) -> Self {
        let amount = match usize::from(byte & 31) {
            exact @ 0..16 => exact + 1,
            power => 1 << (power - 11),
        };
        match byte >> 5 {
            0..=2 => Self::Send(amount),
            3..=5 => Self::Answer(amount),
            6 if byte & 1 > 0 => Self::StallServer,
            6 => Self::Stall,
            _ => match byte & 7 {
                0 => Self::EndClient,
                1 => Self::CloseClient,
                2 => Self::EndServer,
                3 => Self::CloseServer,
                _ => Self::AnswerEarly,
            },
        }
    }
}
