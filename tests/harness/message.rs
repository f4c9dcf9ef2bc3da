//! Recorded HTTP/1.x messages: the head, and the decoded body with the position of each part on the wire.

/// One message of a recording.
#[derive(Clone, Debug)]
pub struct Message {
    /// The first line.
    pub start: String,
    /// Header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
    /// True if the body is complete by its transfer coding or length. A body that ends with the connection is complete.
    pub whole: bool,
    /// Parts of the body on the wire: position in the recording, and length.
    stretches: Vec<(usize, usize)>,
}

impl Message {
    /// Reads the message from `from` to `to` of `wire`, after any interim ones.
    pub fn read(wire: &[u8], mut from: usize, to: usize) -> Self {
        loop {
            let head_end = from + find(&wire[from..to], b"\r\n\r\n").expect("a head") + 4;
            let message = Self::read_body(wire, &wire[from..head_end], head_end, to);
            if !message.start.contains(" 100 ") {
                return message;
            }
            from = head_end;
        }
    }

    /// The value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The number of body bytes that had arrived with this many bytes of the recording.
    pub fn arrived(&self, wire: usize) -> usize {
        self.stretches.iter().map(|&(at, len)| wire.saturating_sub(at).min(len)).sum()
    }

    fn read_body(wire: &[u8], head: &[u8], from: usize, to: usize) -> Self {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let start = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut message = Self { start, headers, body: Vec::new(), whole: true, stretches: Vec::new() };
        let length = message.header("content-length").and_then(|n| n.parse::<usize>().ok());
        if message.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            message.whole = message.read_chunks(wire, from, to);
        } else {
            let end = length.map_or(to, |n| (from + n).min(to));
            message.whole = length.is_none_or(|n| from + n <= to);
            message.take(wire, from, end);
        }
        message
    }

    /// Reads chunks up to the last; false if the recording ends before it.
    fn read_chunks(&mut self, wire: &[u8], mut at: usize, to: usize) -> bool {
        loop {
            let Some(line) = find(&wire[at..to], b"\r\n") else { return false };
            let size = str::from_utf8(&wire[at..at + line]).ok().and_then(|s| s.split(';').next());
            let size = size.and_then(|s| usize::from_str_radix(s.trim(), 16).ok()).expect("a size");
            at += line + 2;
            if size == 0 {
                return true;
            }
            self.take(wire, at, (at + size).min(to));
            at += size + 2;
            if at > to {
                return false;
            }
        }
    }

    fn take(&mut self, wire: &[u8], from: usize, to: usize) {
        self.body.extend_from_slice(&wire[from..to]);
        self.stretches.push((from, to - from));
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
