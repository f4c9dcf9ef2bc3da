//! The oracle: reads a whole message, line by line, and copies what it reads.

/// The reading of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read<T> {
    /// A message, and the bytes behind it.
    Whole(T, Vec<u8>),
    /// The beginning of a message.
    Partial,
    /// Not a message.
    Invalid,
}

/// Fields: names and values.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// A head: the words of its first line, and its fields.
pub(crate) type Head = ([String; 3], Fields);

/// Payload and trailers of a chunked body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunked {
    pub(crate) payload: Vec<u8>,
    pub(crate) trailers: Fields,
}

/// Reads the head of a request whose lines are not too long.
pub(crate) fn request(bytes: &[u8]) -> Read<Head> {
    let mut rest = bytes;
    for _ in 0..2 {
        rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
    }
    let (lines, rest) = match lines(rest) {
        Read::Whole(lines, rest) => (lines, rest),
        Read::Partial => return Read::Partial,
        Read::Invalid => return Read::Invalid,
    };
    let [first, fields @ ..] = &lines[..] else { return Read::Invalid };
    let words: Vec<_> = first.split(|&byte| byte == b' ').map(String::from_utf8_lossy).collect();
    let [method, target, version] = &words[..] else { return Read::Invalid };
    let is_line = !method.is_empty()
        && method.bytes().all(is_token)
        && !target.is_empty()
        && target.bytes().all(|byte| (0x21..=0x7E).contains(&byte) && byte != b'#')
        && ["HTTP/1.0", "HTTP/1.1"].contains(&&**version);
    let fields: Option<Vec<_>> = fields.iter().map(|line| field(line)).collect();
    match fields.filter(|fields| is_line && fields.len() <= 100) {
        Some(fields) => {
            let start = [method, target, version].map(ToString::to_string);
            Read::Whole((start, fields), rest)
        }
        None => Read::Invalid,
    }
}

/// Reads the head of a response that is not too long: its version, status and reason phrase, and its fields.
pub(crate) fn response(bytes: &[u8]) -> Read<Head> {
    let (mut rest, mut lines) = (bytes, Vec::new());
    loop {
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { return Read::Partial };
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let [first, fields @ ..] = &lines[..] else { return Read::Invalid };
    let is_text = first.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E | 0x80..));
    let (version, behind) = first.split_at(first.len().min(9));
    let (code, reason) = behind.split_at(behind.len().min(3));
    let is_line = [&b"HTTP/1.0 "[..], b"HTTP/1.1 "].contains(&version)
        && code.len() == 3
        && code.iter().all(u8::is_ascii_digit)
        && code[0] != b'0'
        && (reason.is_empty() || reason[0] == b' ');
    let fields = fields.iter().map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let to =
            line[..colon].iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
        field(&[&line[..to], &line[colon..]].concat())
    });
    let fields: Option<Vec<_>> = fields.collect();
    match fields.filter(|fields| is_text && is_line && fields.len() <= 100) {
        Some(fields) => {
            let reason = str::from_utf8(reason).ok().filter(|reason| reason.is_ascii()).unwrap_or_default();
            let words = [version, code].map(|word| String::from_utf8_lossy(word).trim_end().to_string());
            let [version, code] = words;
            Read::Whole(
                ([version, code, reason.strip_prefix(' ').unwrap_or(reason).to_string()], fields),
                rest.to_vec(),
            )
        }
        None => Read::Invalid,
    }
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    Close,
}

/// The framing of a request's body; `None` if it is invalid.
pub(crate) fn request_framing(([.., version], fields): &Head) -> Option<Framing> {
    match (&values(fields, "content-length")[..], &values(fields, "transfer-encoding")[..]) {
        ([], []) => Some(Framing::Length(0)),
        ([length], []) => number(length).map(Framing::Length),
        ([], [coding]) if version == "HTTP/1.1" && is_chunked(coding) => Some(Framing::Chunked),
        _ => None,
    }
}

/// The framing of a response's body, and whether its connection may carry another response; `None` if it is invalid.
pub(crate) fn response_framing(
    ([version, code, _], fields): &Head,
    to_head: bool,
) -> Option<(Framing, bool)> {
    let lengths = values(fields, "content-length");
    let mut lengths: Vec<_> = lengths
        .iter()
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(|item| number(item.trim_ascii()))
        .collect::<Option<_>>()?;
    lengths.dedup();
    let codings = values(fields, "transfer-encoding");
    if lengths.len() > 1 || codings.len() > 1 || !codings.iter().all(|coding| is_chunked(coding)) {
        return None;
    }
    let is_bare = to_head || code.starts_with('1') || ["204", "304"].contains(&&**code);
    Some(match (codings.first(), lengths.first()) {
        _ if is_bare => (Framing::Length(0), true),
        (Some(_), length) => (Framing::Chunked, length.is_none() && version == "HTTP/1.1"),
        (None, Some(length)) => (Framing::Length(*length), true),
        (None, None) => (Framing::Close, false),
    })
}

fn values<'f>(fields: &'f Fields, name: &str) -> Vec<&'f [u8]> {
    fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &value[..]).collect()
}

fn is_chunked(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"chunked")
}

/// A decimal number below 2^63.
fn number(digits: &[u8]) -> Option<u64> {
    let text = str::from_utf8(digits).ok().filter(|text| !text.is_empty())?;
    let number = text.bytes().try_fold(0_u128, |number, byte| {
        byte.is_ascii_digit().then(|| (number * 10 + u128::from(byte - b'0')).min(1 << 64))
    })?;
    (number < 1 << 63).then_some(number as u64)
}

/// Reads lines up to an empty one.
fn lines(bytes: &[u8]) -> Read<Vec<&[u8]>> {
    let (mut rest, mut lines) = (bytes, Vec::new());
    loop {
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { return Read::Partial };
        let Some(line) = rest[..end].strip_suffix(b"\r") else { return Read::Invalid };
        rest = &rest[end + 1..];
        if line.is_empty() {
            return Read::Whole(lines, rest.to_vec());
        }
        lines.push(line);
    }
}

/// Reads a chunked body whose trailers are within their bounds. Its payload up to an error or to the end of the input is in
/// `seen`.
pub(crate) fn chunked(bytes: &[u8], is_request: bool, seen: &mut Vec<u8>) -> Read<Chunked> {
    let (mut rest, mut extensions) = (bytes, 0);
    loop {
        let end = rest.iter().position(|&byte| byte == b'\n');
        let line = &rest[..end.map_or(rest.len(), |end| end + 1)];
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let extension = line[digits..].iter().filter(|byte| !b"\r\n".contains(byte)).count();
        extensions += extension;
        if extension > 256 || extensions > 4096 {
            return Read::Invalid;
        }
        let Some(end) = end else {
            let is_begin = completions().any(|end| size(&[rest, end].concat(), is_request).is_some());
            return if is_begin { Read::Partial } else { Read::Invalid };
        };
        let Some(size) = size(line, is_request) else { return Read::Invalid };
        rest = &rest[end + 1..];
        if size == 0 {
            break;
        }
        let here = usize::try_from(size).map_or(rest.len(), |size| size.min(rest.len()));
        seen.extend_from_slice(&rest[..here]);
        if here as u64 != size {
            return Read::Partial;
        }
        match &rest[here..] {
            [b'\r', b'\n', next @ ..] => rest = next,
            [] | [b'\r'] => return Read::Partial,
            _ => return Read::Invalid,
        }
    }
    let (trailers, rest) = match lines(rest) {
        Read::Whole(lines, rest) => (lines, rest),
        Read::Partial => return Read::Partial,
        Read::Invalid => return Read::Invalid,
    };
    let trailers = trailers.iter().map(|line| field(line)).collect::<Option<Vec<_>>>();
    match trailers.filter(|fields| fields.len() <= 100) {
        Some(trailers) => Read::Whole(Chunked { payload: seen.clone(), trailers }, rest),
        None => Read::Invalid,
    }
}

/// Ends of a chunk's line. Each valid beginning of a line is completed by one of them.
fn completions() -> impl Iterator<Item = &'static [u8]> {
    [&b"\n"[..], b"\r\n", b"1\r\n", b";\r\n", b"\"\r\n", b"a\"\r\n"].into_iter()
}

/// The size in a chunk's line.
fn size(line: &[u8], is_request: bool) -> Option<u64> {
    let line = line.strip_suffix(b"\r\n")?;
    let (digits, extension) = match line.iter().position(|&byte| byte == b';') {
        Some(at) => (&line[..at], &line[at..]),
        None => (line, &b""[..]),
    };
    let text = str::from_utf8(digits).ok()?;
    let number = text.trim_end_matches([' ', '\t']);
    if number != text && is_request && extension.is_empty() {
        return None;
    }
    let is_number = (1..=13).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_extension = extension.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E | 0x80..));
    let mut quoted = extension.iter();
    let mut is_open = false;
    while let Some(byte) = quoted.next() {
        match byte {
            b'"' => is_open = !is_open,
            b'\\' if is_open => drop(quoted.next()),
            _ => {}
        }
    }
    u64::from_str_radix(number, 16).ok().filter(|_| is_number && is_extension && !is_open)
}

fn field(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_name = !name.is_empty() && name.iter().copied().all(is_token);
    let is_value = value.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E | 0x80..));
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let from = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let to = value.iter().rposition(|byte| !blank(byte)).map_or(from, |last| last + 1);
    (is_name && is_value).then(|| (String::from_utf8_lossy(name).into_owned(), value[from..to].to_vec()))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
