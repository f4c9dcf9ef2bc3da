//! AWS event streams, as Bedrock writes them. The checksums are zero: nothing here reads them.

/// A message with this payload; `name` is the event's type or, of an error, the exception's.
pub fn message(name: &str, is_error: bool, payload: &[u8]) -> Vec<u8> {
    let (kind, name_of) = if is_error { ("exception", ":exception-type") } else { ("event", ":event-type") };
    let mut headers = Vec::new();
    for (key, value) in [(name_of, name), (":content-type", "application/json"), (":message-type", kind)] {
        headers.push(u8::try_from(key.len()).expect("short"));
        headers.extend(key.as_bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
    let mut message = Vec::new();
    message.extend(length(16 + headers.len() + payload.len()));
    message.extend(length(headers.len()));
    message.extend([0; 4]);
    message.extend(headers);
    message.extend(payload);
    message.extend([0; 4]);
    message
}

/// A message of `invoke-with-response-stream` that wraps this payload.
pub fn wrapped(payload: &[u8]) -> Vec<u8> {
    message("chunk", false, format!(r#"{{"bytes":"{}","p":"abcdefgh"}}"#, base64(payload)).as_bytes())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = [16, 8, 0].iter().zip(three).map(|(shift, byte)| u32::from(*byte) << shift).sum::<u32>();
        let letter = |at: usize| char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]);
        (0..4).map(|at| if at <= three.len() { letter(at) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}
