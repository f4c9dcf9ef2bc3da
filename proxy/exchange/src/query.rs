//! The parameters of a query, unescaped: `+` is a space, and `;` separates parameters as `&` does, as in some servers.

/// Returns the names and values of a query's parameters, in their order.
pub(crate) fn parameters(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let pairs = query.split(['&', ';']).filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescaped(name.as_bytes()), unescaped(value.as_bytes()))
    })
}

/// Returns the text of a name or a value.
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let [first, after @ ..] = rest {
        // `%u0061` is not an escape of a query.
        let escaped = tenant::escape(rest).filter(|(_, length)| *length == 3);
        let (byte, length) = match (escaped, first) {
            (Some((byte, length)), _) => (u8::try_from(byte).unwrap_or_default(), length),
            (None, b'+') => (b' ', 1),
            (None, first) => (*first, 1),
        };
        plain.push(byte);
        rest = after.get(length - 1..).unwrap_or_default();
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn parameters_are_unescaped_once() {
        let read = |query| {
            let pairs = super::parameters(query);
            let text = |bytes| String::from_utf8(bytes).unwrap();
            pairs.map(|(name, value)| format!("{}={}", text(name), text(value))).collect::<Vec<_>>()
        };
        assert_eq!(read("model=a%2Fb%20c+d&x"), ["model=a/b c d", "x="]);
        assert_eq!(read("mod%65l=a;model=%&&%256d=1=2"), ["model=a", "model=%", "%6d=1=2"]);
        assert_eq!(read("a=%u0061%4"), ["a=%u0061%4"]);
    }
}
