//! Recorded exchanges with real servers, read from `tests/transcripts`.

use std::fs;
use std::path::{Path, PathBuf};

use scan::{Dialect, Framing};
use serde::Deserialize;

use crate::message::Message;
use crate::truth::{Case, Truth};

/// One recorded exchange.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// `<server>-<version>/<case>`; for further exchanges on a connection, `#2` and so on follow.
    pub name: String,
    /// The case's folder.
    pub folder: PathBuf,
    /// Number of the exchange on its connection, from 0.
    pub number: usize,
    /// The request's target.
    pub path: String,
    /// The JSON shape of its path.
    pub dialect: Dialect,
    /// The framing of its body, by its content type.
    pub framing: Framing,
    /// HTTP status.
    pub status: u16,
    /// The request's body.
    pub request: Vec<u8>,
    /// The response's body, without its transfer coding.
    pub body: Vec<u8>,
    /// True if the body is complete by HTTP.
    pub whole: bool,
    /// The party that closed the connection before that, if it was the client.
    pub client_left: bool,
    /// The reads by which the body arrived.
    pub arrivals: Vec<Arrival>,
    /// The known facts from other sources.
    pub truth: Truth,
}

/// One read of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Microseconds since the first byte of the request was sent.
    pub us: u64,
    /// Bytes of the body that had arrived by then.
    pub body: usize,
}

#[derive(Deserialize)]
struct Read {
    us: u64,
    len: usize,
}

impl Transcript {
    /// Every recorded exchange, in the order of their names.
    pub fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts");
        let mut all = Vec::new();
        for server in folders(&root) {
            for case in folders(&server) {
                all.extend(Self::read(&case));
            }
        }
        assert!(all.len() > 100, "cannot read the transcripts");
        all
    }

    /// Those of one server.
    pub fn of_server(name: &str) -> Vec<Self> {
        Self::all().into_iter().filter(|t| t.name.starts_with(name)).collect()
    }

    /// The exchange of that name.
    pub fn named(name: &str) -> Self {
        Self::all().into_iter().find(|t| t.name == name).expect("no transcript has that name")
    }

    /// Body slices as they were read from the socket.
    pub fn reads(&self) -> Vec<(u64, &[u8])> {
        let mut from = 0;
        let mut reads = Vec::new();
        for arrival in &self.arrivals {
            if arrival.body > from {
                reads.push((arrival.us, &self.body[from..arrival.body]));
                from = arrival.body;
            }
        }
        reads
    }

    fn read(folder: &Path) -> Vec<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let case: Case = serde_json::from_slice(&file("truth.json")).expect("truth.json is ours");
        let (requests, responses) = (file("request.http"), file("response.http"));
        let reads: Vec<Read> = String::from_utf8_lossy(&file("arrivals.jsonl"))
            .lines()
            .map(|line| serde_json::from_str(line).expect("arrivals.jsonl is ours"))
            .collect();
        let (mut request_at, mut response_at) = (0, 0);
        let mut exchanges = Vec::new();
        for (number, truth) in case.responses.iter().enumerate() {
            let request_end = request_at + truth.request_bytes;
            let response_end = response_at + truth.response_bytes;
            let request = Message::read(&requests, request_at, request_end);
            let response = Message::read(&responses, response_at, response_end);
            exchanges.push(Self {
                name: name(folder, number),
                folder: folder.to_owned(),
                number,
                path: path(&request.start).to_owned(),
                dialect: dialect(path(&request.start)),
                framing: response
                    .header("content-type")
                    .and_then(|value| Framing::from_content_type(value.as_bytes()))
                    .expect("the content type is not metered"),
                status: truth.status,
                request: request.body,
                arrivals: arrivals(&reads, &response, truth.request_us),
                whole: response.whole,
                client_left: case.connection.starts_with("client closed"),
                body: response.body,
                truth: truth.clone(),
            });
            (request_at, response_at) = (request_end, response_end);
        }
        exchanges
    }
}

fn arrivals(reads: &[Read], response: &Message, sent_us: u64) -> Vec<Arrival> {
    let mut wire = 0;
    let mut arrivals: Vec<Arrival> = Vec::new();
    for read in reads {
        wire += read.len;
        arrivals.push(Arrival { us: read.us.saturating_sub(sent_us), body: response.arrived(wire) });
    }
    arrivals
}

fn name(folder: &Path, number: usize) -> String {
    let mut parts = folder.iter().rev().map(|part| part.to_string_lossy());
    let (case, server) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match number {
        0 => format!("{server}/{case}"),
        n => format!("{server}/{case}#{}", n + 1),
    }
}

fn path(start: &str) -> &str {
    start.split(' ').nth(1).unwrap_or_default()
}

fn dialect(path: &str) -> Dialect {
    match path {
        "/v1/chat/completions" | "/v1/chat/completions/batch" => Dialect::OpenaiChat,
        "/v1/completions" => Dialect::OpenaiCompletions,
        "/v1/responses" => Dialect::OpenaiResponses,
        "/v1/messages" => Dialect::Anthropic,
        "/completion" => Dialect::LlamacppCompletion,
        "/inference/v1/generate" => Dialect::VllmGenerate,
        "/v1/embeddings" | "/embedding" | "/pooling" => Dialect::Embeddings,
        other => panic!("{other}: the path has no dialect"),
    }
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap_or_else(|error| panic!("{}: {error}", of.display()));
    let mut folders: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect();
    folders.sort();
    folders
}
