//! Lists of `name=value`, separated by commas and percent-encoded: `OTEL_EXPORTER_OTLP_HEADERS` and
//! `OTEL_RESOURCE_ATTRIBUTES`.

/// Returns the pairs, or the error of the first invalid member, without its value.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let members = text.split(',').map(str::trim).enumerate().filter(|(_, member)| !member.is_empty());
    members
        .map(|(at, member)| {
            let at = at + 1;
            let (name, value) = member.split_once('=').ok_or(format!("has no = in member {at}"))?;
            let name = percent_decoded(name.trim()).filter(|name| !name.is_empty());
            let name = name.ok_or(format!("has no name in member {at}"))?;
            let value = percent_decoded(value.trim());
            Ok((name, value.ok_or(format!("has an invalid percent-encoding in member {at}"))?))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
