//! A client and a server that send in turn: the server sends a text frame only after the client has received the one
//! before. So a proxy between them makes the same steps in every run, however slow it is, and its instructions can be
//! counted.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::reply::Reply;
use crate::wire::{self, Ask, Frames};
use crate::{Failure, mock};

/// A coding that the proxy cannot read, in place of a field that every other response has.
const UNREAD_CODING: (&str, &str) = ("server: uvicorn", "content-encoding: x-own");

/// Maximum time until the next bytes arrive; a proxy under callgrind is fifty times slower.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The path to whose requests the server answers in a coding that is not metered.
pub(crate) const BYTES_PATH: &str = "/v1/bytes/of/no/type";

/// The server, a thread per connection.
pub(crate) struct Server {
    /// Its address.
    pub(crate) address: String,
    turns: Sender<()>,
}

impl Server {
    /// Starts it.
    pub(crate) fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let (turns, taken) = channel();
        let taken = Arc::new(Mutex::new(taken));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = taken.clone();
                // A connection that the proxy closes ends its thread only.
                std::thread::spawn(move || drop(serve(stream, &taken)));
            }
        });
        Ok(Self { address, turns })
    }
}

fn serve(mut stream: TcpStream, turns: &Mutex<Receiver<()>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let frames = Frames::new(0);
    let mut inbox = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let Some((ask, bytes)) = mock::request(&inbox)? else {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                read => inbox.extend_from_slice(&buffer[..read]),
            }
            continue;
        };
        let is_metered = memchr::memmem::find(&inbox[..bytes], BYTES_PATH.as_bytes()).is_none();
        inbox.drain(..bytes);
        let typed = |head: &str| match is_metered {
            true => head.to_owned(),
            false => head.replace(UNREAD_CODING.0, UNREAD_CODING.1),
        };
        let Ask::Stream { text, .. } = ask else {
            stream.write_all(typed(&mock::json_reply()).as_bytes())?;
            continue;
        };
        stream.write_all(typed(mock::STREAM_HEAD).as_bytes())?;
        stream.write_all(&wire::chunk(&frames.role))?;
        let chunk = wire::chunk(&frames.text);
        for _ in 0..text {
            let turn = turns.lock().unwrap_or_else(PoisonError::into_inner).recv();
            turn.map_err(|_| io::ErrorKind::BrokenPipe)?;
            stream.write_all(&chunk)?;
        }
        let mut end = wire::chunk(&frames.finish);
        end.extend_from_slice(&wire::chunk(&frames.done));
        end.extend_from_slice(&wire::chunk(b""));
        stream.write_all(&end)?;
    }
}

/// The client, with one connection to the proxy.
pub(crate) struct Client<'a> {
    stream: TcpStream,
    server: &'a Server,
    frames: Frames,
}

impl<'a> Client<'a> {
    /// Connects to a proxy before the server.
    pub(crate) fn connect(proxy: &str, server: &'a Server) -> Result<Self, Failure> {
        let stream = TcpStream::connect(proxy)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self { stream, server, frames: Frames::new(0) })
    }

    /// Sends a request to a path and receives its reply, whose every byte is compared.
    pub(crate) fn exchange(&mut self, ask: Ask, path: &str) -> Result<(), Failure> {
        self.stream.write_all(&ask.request(path, "proxy"))?;
        let mut reply = Reply::new(ask, &self.frames);
        let mut turns = match ask {
            Ask::Json | Ask::Held => 0,
            Ask::Stream { text, .. } => text,
        };
        let mut buffer = [0; 16 * 1024];
        // The role frame comes without a turn.
        let mut received = 1;
        loop {
            while !reply.is_whole() && (turns == 0 || reply.frames() < received) {
                match self.stream.read(&mut buffer)? {
                    0 => return Err("the proxy closed the connection".into()),
                    read => reply.feed(&buffer[..read], 0, |_| ())?,
                }
            }
            if turns == 0 {
                return Ok(());
            }
            self.server.turns.send(())?;
            turns -= 1;
            received += 1;
        }
    }
}
