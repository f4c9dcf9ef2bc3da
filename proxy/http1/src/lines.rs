//! The fields of a head, in the buffer that received it.

/// One field: its name as sent, and its value without the blanks around it.
pub type Line<'b> = httparse::Header<'b>;

/// The fields of a head, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines<'h, 'b>(pub(crate) &'h [Line<'b>]);

impl<'h, 'b> Lines<'h, 'b> {
    /// All fields.
    pub fn iter(self) -> impl Iterator<Item = &'h Line<'b>> {
        self.0.iter()
    }

    /// The names of all fields.
    pub fn names(self) -> impl Iterator<Item = &'b [u8]> + Clone + use<'h, 'b> {
        self.0.iter().map(|line| line.name.as_bytes())
    }

    /// The values of the fields with this name.
    pub fn all(self, name: &str) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b, '_> {
        self.0.iter().filter(move |line| line.name.eq_ignore_ascii_case(name)).map(|line| line.value)
    }
}

/// The names of the fields in a valid head of a request, in their order.
pub fn names(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = head;
    std::iter::from_fn(move || {
        loop {
            let (line, behind) = rest.split_at(memchr::memchr(b'\n', rest)? + 1);
            rest = behind;
            let name = &line[..line.iter().position(|&byte| byte == b':').unwrap_or_default()];
            // A request line has a blank before any colon; a name has none.
            if !name.is_empty() && !name.contains(&b' ') {
                return Some(name);
            }
        }
    })
}

/// The elements of a comma-separated list (RFC 9110 §5.6.1), without the blanks around them; empty ones are skipped.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    value.split(|&byte| byte == b',').filter_map(move |item| {
        let from = item.iter().position(|byte| !is_blank(byte))?;
        let to = item.iter().rposition(|byte| !is_blank(byte))?;
        Some(&item[from..=to])
    })
}

/// Returns true if a field of this name ends at each hop (RFC 9110 §7.6.1). So do the fields that `Connection` names.
pub fn is_hop_by_hop(name: &str) -> bool {
    let is = |field: &str| name.eq_ignore_ascii_case(field);
    match name.len() {
        2 => is("te"),
        7 => is("upgrade"),
        10 => is("connection") || is("keep-alive"),
        14 => is("http2-settings"),
        16 => is("proxy-connection"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_parsed_lines() {
        for head in [
            "GET http://a:1/ HTTP/1.1\r\nHost: a:1\r\nX-a:\r\nx-A: b c: d\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "\r\nPOST /a:b HTTP/1.0\r\n!: \u{e4}\r\n\r\n",
        ] {
            let mut table = crate::Table::default();
            let parsed = crate::request(head.as_bytes(), &mut table).unwrap().unwrap();
            assert!(names(head.as_bytes()).eq(parsed.lines.names()), "{head:?}");
        }
        assert_eq!(names(b"").count(), 0);
    }

    #[test]
    fn lists_are_split_at_commas() {
        let items: Vec<_> = tokens(b" a ,,\tb c,").collect();
        assert_eq!(items, [&b"a"[..], b"b c"]);
    }
}
