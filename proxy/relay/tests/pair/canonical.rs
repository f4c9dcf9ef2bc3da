//! A recogniser of canonical HTTP/1.1, for all bytes of one direction of a connection. All bytes that the proxy sends must
//! be canonical, so that no other parser reads them as different messages.

use super::naive::Fields;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The words of its first line. The last one of a response may have blanks.
    pub(crate) start: [String; 3],
    pub(crate) fields: Fields,
    pub(crate) payload: Vec<u8>,
    pub(crate) trailers: Fields,
    /// False if it is incomplete.
    pub(crate) is_whole: bool,
}

impl Message {
    /// The values of the fields with this name.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let is = move |field: &&'a (String, Vec<u8>)| field.0.eq_ignore_ascii_case(name);
        let fields: Vec<_> = self.fields.iter().filter(is).collect();
        fields.into_iter().map(|(_, value)| str::from_utf8(value).unwrap_or("\u{fffd}"))
    }

    /// The status of a response.
    pub(crate) fn status(&self) -> u16 {
        self.start[1].parse().unwrap_or(0)
    }

    fn body(&self, is_request: bool, to_head: bool) -> Result<Framing, String> {
        let lengths: Vec<_> = self.all("content-length").collect();
        let codings: Vec<_> = self.all("transfer-encoding").collect();
        let framing = match (&lengths[..], &codings[..]) {
            ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked,
            ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().map(Framing::Length).map_err(|_| format!("length {length:?}"))?
            }
            ([], []) if is_request => Framing::Length(0),
            ([], []) => Framing::Close,
            both => return Err(format!("framing {both:?}")),
        };
        let is_empty = to_head || !is_request && matches!(self.status(), 100..=199 | 204 | 304);
        Ok(if is_empty { Framing::Length(0) } else { framing })
    }
}

enum Framing {
    Length(usize),
    Chunked,
    Close,
}

/// Reads requests.
pub(crate) fn requests(bytes: &[u8]) -> Result<Vec<Message>, String> {
    messages(bytes, true, |_| false)
}

/// Reads responses. `to_head`: returns true if the method of the request with this number was HEAD. Interim responses have
/// no number.
pub(crate) fn responses(bytes: &[u8], to_head: impl Fn(usize) -> bool) -> Result<Vec<Message>, String> {
    messages(bytes, false, to_head)
}

fn messages(bytes: &[u8], is_request: bool, to_head: impl Fn(usize) -> bool) -> Result<Vec<Message>, String> {
    let (mut rest, mut messages, mut number) = (bytes, Vec::new(), 0);
    while !rest.is_empty() {
        let Some(lines) = lines(&mut rest)? else { break };
        let (start, fields) = lines.split_first().ok_or("an empty line before a message")?;
        let words: Vec<&str> = start.splitn(3, ' ').collect();
        let &[first, second, third] = &words[..] else { return Err(format!("start line {start:?}")) };
        let fields = fields.iter().map(|line| field(line)).collect::<Result<_, _>>()?;
        let start = [first, second, third].map(str::to_owned);
        let mut message =
            Message { start, fields, payload: Vec::new(), trailers: Vec::new(), is_whole: false };
        let [first, second, third] = &message.start;
        let is_start = match is_request {
            true => first.bytes().all(is_token) && second.bytes().all(is_target) && third == "HTTP/1.1",
            false => {
                ["HTTP/1.0", "HTTP/1.1"].contains(&first.as_str())
                    && second.len() == 3
                    && message.status() >= 100
            }
        };
        if !is_start || message.fields.len() > 110 {
            return Err(format!("start line {start:?}", start = message.start));
        }
        let is_interim = !is_request && (100..200).contains(&message.status());
        body(&mut rest, &mut message, is_request, to_head(number))?;
        number += usize::from(!is_interim);
        messages.push(message);
    }
    Ok(messages)
}

fn body(rest: &mut &[u8], message: &mut Message, is_request: bool, to_head: bool) -> Result<(), String> {
    let length = match message.body(is_request, to_head)? {
        Framing::Length(length) => length,
        Framing::Close => {
            message.payload = std::mem::take(rest).to_vec();
            return Ok(());
        }
        Framing::Chunked => return chunks(rest, message),
    };
    message.payload = take(rest, length).to_vec();
    message.is_whole = message.payload.len() == length;
    Ok(())
}

fn chunks(rest: &mut &[u8], message: &mut Message) -> Result<(), String> {
    loop {
        let Some(size) = line(rest)? else { return Ok(()) };
        let digits = size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_size = digits && (1..=8).contains(&size.len()) && (size == "0" || !size.starts_with('0'));
        let size = usize::from_str_radix(&size, 16).ok().filter(|_| is_size);
        let size = size.ok_or_else(|| "a chunk's line".to_owned())?;
        if size == 0 {
            break;
        }
        let data = take(rest, size);
        message.payload.extend_from_slice(data);
        let end = take(rest, 2);
        if !b"\r\n".starts_with(end) {
            return Err(format!("{end:?} after a chunk"));
        }
        if end.len() < 2 {
            return Ok(());
        }
    }
    if let Some(trailers) = lines(rest)? {
        message.trailers = trailers.iter().map(|line| field(line)).collect::<Result<_, _>>()?;
        message.is_whole = true;
    }
    Ok(())
}

/// Takes at most `len` bytes.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(len.min(rest.len()));
    *rest = left;
    taken
}

/// Takes a line; `None` if it is incomplete. Bytes beyond ASCII have no meaning for the framing.
fn line(rest: &mut &[u8]) -> Result<Option<String>, String> {
    let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
        *rest = &[];
        return Ok(None);
    };
    let line = take(rest, end + 1).strip_suffix(b"\r\n").ok_or("LF without CR")?;
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}

/// Takes lines up to an empty one.
fn lines(rest: &mut &[u8]) -> Result<Option<Vec<String>>, String> {
    let mut lines = Vec::new();
    loop {
        match line(rest)? {
            None => return Ok(None),
            Some(line) if line.is_empty() => return Ok(Some(lines)),
            Some(line) => lines.push(line),
        }
    }
}

fn field(line: &str) -> Result<(String, Vec<u8>), String> {
    let (name, value) = line.split_once(": ").ok_or_else(|| format!("field {line:?}"))?;
    let is_name = !name.is_empty() && name.bytes().all(is_token);
    let is_value = value.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E | 0x80..));
    if !is_name || !is_value || value.trim_matches([' ', '\t']) != value {
        return Err(format!("field {line:?}"));
    }
    Ok((name.to_owned(), value.as_bytes().to_vec()))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_target(byte: u8) -> bool {
    (0x21..=0x7E).contains(&byte) && byte != b'#'
}
