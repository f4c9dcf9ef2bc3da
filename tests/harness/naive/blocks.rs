//! "Server-sent events" of the WHATWG HTML standard, to the letter: decode, split into lines, process the lines one by
//! one.

/// The events that a client library would dispatch, and the comments, which it would not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A comment line.
    Comment,
    /// A dispatched event, or the unfinished one at the end of the body.
    Block {
        /// The data, if present.
        data: Option<Vec<u8>>,
        /// The event's name.
        event: Vec<u8>,
        /// True if one of its lines began like JSON, without a field name: Gemini's error.
        stray: bool,
        /// True if it was dispatched.
        whole: bool,
        /// True if it contains a comment.
        commented: bool,
    },
}

#[derive(Default)]
struct Block {
    data: Option<Vec<u8>>,
    event: Vec<u8>,
    stray: bool,
    commented: bool,
    /// True if a line is the end mark, without a field name.
    done: bool,
}

/// The comments and blocks of a body in order.
pub(crate) fn items(body: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut block = Block::default();
    let mut lines = lines(body);
    let unfinished = lines.pop().unwrap_or_default();
    for line in lines {
        match line.first() {
            None => items.extend(std::mem::take(&mut block).end(true)),
            Some(b':') => {
                items.push(Item::Comment);
                block.commented = true;
            }
            Some(first) => {
                block.stray |= *first == b'{';
                block.field(&line);
            }
        }
    }
    block.stray |= unfinished.starts_with(b"{");
    // The end of the body tore the line: it counts if its field name is complete.
    if !unfinished.starts_with(b":") && unfinished.contains(&b':') {
        block.field(&unfinished);
    }
    block.done |= unfinished == b"[DONE]";
    items.extend(block.end(false));
    items
}

impl Block {
    fn field(&mut self, line: &[u8]) {
        self.done |= line == b"[DONE]";
        let (name, value) = match line.iter().position(|&b| b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                let data = self.data.get_or_insert_default();
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"event" => self.event = value.to_vec(),
            _ => {}
        }
    }

    fn end(self, whole: bool) -> Option<Item> {
        let Self { mut data, event, stray, commented, done } = self;
        if let Some(data) = &mut data {
            data.pop();
        }
        if done && data.is_none() && event != b"error" && !stray {
            data = Some(b"[DONE]".to_vec());
        }
        let has_content = data.is_some() || event == b"error" || stray;
        has_content.then_some(Item::Block { data, event, stray, whole, commented })
    }
}

/// The lines without their ends; the last has none.
fn lines(body: &[u8]) -> Vec<Vec<u8>> {
    let body = body.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(body);
    let mut lines = vec![Vec::new()];
    let mut bytes = body.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => lines.push(Vec::new()),
            b'\r' => {
                bytes.next_if_eq(&b'\n');
                lines.push(Vec::new());
            }
            _ => lines.last_mut().expect("at least one line").push(byte),
        }
    }
    lines
}
