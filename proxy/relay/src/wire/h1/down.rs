//! A connection to a client by HTTP/1.1, for the response to one request.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use http::header::CONNECTION;
use http1::{LAST_CHUNK, write_chunk, write_field};
use tokio::task::coop;

use crate::engine::net::client::Client;
use crate::engine::net::socket::Output;
use crate::limits;
use crate::request::headers;
use crate::wire::{Buffers, Down, Framing, Head};

/// A connection with its response.
pub(crate) struct Http1Down {
    client: Rc<Client>,
    /// Bytes that are made anew, in the worker's memory, and later those of them that the client's socket did not take.
    out: Vec<u8>,
    /// The range of the received slice that follows them unchanged.
    run: Range<usize>,
    /// True if the client gets chunks.
    is_chunked: bool,
    /// True if the framing of its body is that of the upstream's.
    is_same: bool,
    /// True once an event of the client's socket wakes the task.
    is_watching: Cell<bool>,
    /// True if the client may close its half.
    half_close: bool,
    /// Sees the client leave once its socket is not read any more.
    gone: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
}

impl Http1Down {
    /// The connection of a client, to which nothing of the response was written.
    /// `half_close`: it may close its half.
    pub(crate) fn new(client: Rc<Client>, half_close: bool) -> Self {
        Self {
            client,
            out: Vec::new(),
            run: 0..0,
            is_chunked: false,
            is_same: true,
            is_watching: Cell::new(false),
            half_close,
            gone: RefCell::default(),
        }
    }

    /// Adds a range of the slice, which usually follows the one before.
    fn extend(&mut self, slice: &[u8], range: Range<usize>) {
        if self.run.end != range.start {
            self.flush_run(slice);
            self.run.start = range.start;
        }
        self.run.end = range.end;
    }

    /// Copies the range before what is made anew.
    fn flush_run(&mut self, slice: &[u8]) {
        let run = std::mem::take(&mut self.run);
        self.out.extend_from_slice(&slice[run]);
    }
}

impl Down for Http1Down {
    fn head(&mut self, head: &Head<'_>, is_edited: bool, is_last: bool) {
        self.is_chunked = is_edited || head.framing != Framing::Length;
        self.is_same = self.is_chunked == (head.framing == Framing::Chunked);
        let out = &mut self.out;
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(head.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(head.reason.as_bytes());
        out.extend_from_slice(b"\r\n");
        let has_named = head.fields.contains_key(CONNECTION);
        // A switch of protocols is repeated on this hop.
        let mut is_unnamed = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let switches = is_unnamed;
        for line in head.lines.iter() {
            let is = |field: &str| line.name.eq_ignore_ascii_case(field);
            if switches && is("upgrade") {
                write_field(out, line.name, line.value);
                continue;
            }
            if is("connection") && std::mem::take(&mut is_unnamed) {
                write_field(out, line.name, b"upgrade");
            }
            let is_length = is("content-length");
            let is_framing = is_length || is("transfer-encoding");
            let is_named = has_named && !is_framing && headers::lists(head.fields, &CONNECTION, line.name);
            if !(is_length && self.is_chunked || is_named || http1::is_hop_by_hop(line.name)) {
                write_field(out, line.name, line.value);
            }
        }
        if !self.is_same {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        if is_last {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    fn data(&mut self, slice: &[u8], data: &[u8], verbatim: Option<Range<usize>>) {
        if let Some(range) = verbatim.filter(|_| self.is_same) {
            return self.extend(slice, range);
        }
        self.flush_run(slice);
        // A chunk whose line was forwarded cannot become shorter: only whole chunks are forwarded unchanged.
        match self.is_chunked {
            true => write_chunk(&mut self.out, data),
            false => self.out.extend_from_slice(data),
        }
    }

    fn end(&mut self, slice: &[u8], verbatim: Option<Range<usize>>) {
        match verbatim.filter(|_| self.is_same) {
            Some(range) => self.extend(slice, range),
            None if self.is_chunked => {
                self.flush_run(slice);
                self.out.extend_from_slice(LAST_CHUNK);
            }
            None => {}
        }
    }

    fn begin(&mut self, buffers: &Buffers) {
        self.out = buffers.out.take();
    }

    fn write(&mut self, cx: &mut Context<'_>, slice: &[u8], buffers: &Buffers) -> io::Result<()> {
        let run = &slice[std::mem::take(&mut self.run)];
        let is_run = self.out.is_empty();
        let whole = if is_run {
            run
        } else {
            self.out.extend_from_slice(run);
            &self.out[..]
        };
        let written = match whole {
            [] => {
                // Interim responses may be all that there is.
                let _flushed = self.client.poll_flush(cx)?;
                0
            }
            whole => match self.client.poll_write(cx, Output::Slice(whole)) {
                Poll::Ready(written) => written?,
                Poll::Pending => 0,
            },
        };
        if is_run {
            self.out.extend_from_slice(&run[written..]);
        } else {
            self.out.drain(..written);
        }
        if self.out.is_empty() {
            buffers.put_back(std::mem::take(&mut self.out));
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<io::Result<()>> {
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.out.is_empty() {
            let written = ready!(self.client.poll_write(cx, Output::Slice(&self.out)))?;
            self.out.drain(..written);
        }
        buffers.put_back(std::mem::take(&mut self.out));
        Poll::Ready(Ok(()))
    }

    fn poll_gone(&self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<()> {
        if let Some(gone) = &mut *self.gone.borrow_mut() {
            return gone.as_mut().poll(cx);
        }
        if self.is_watching.get() && self.client.is_quiet() {
            return Poll::Pending;
        }
        let mut buffer = buffers.read.borrow_mut();
        while self.client.first_len() < limits::BUFFER_BYTES {
            // Without it, tokio registers no task.
            let registers = coop::has_budget_remaining();
            match self.client.poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    self.is_watching.set(registers);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) if self.half_close => break,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                // Further requests are kept for later.
                Poll::Ready(Ok(read)) => self.client.put_back(&buffer[..read]),
            }
        }
        let (client, half_close) = (Rc::clone(&self.client), self.half_close);
        // Boxed: few clients send so much ahead, or close their half.
        let mut gone = Box::pin(async move { client.gone(half_close).await });
        let polled = gone.as_mut().poll(cx);
        self.gone.replace(Some(gone));
        polled
    }
}
