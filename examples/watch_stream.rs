//! Meters one stream from standard input, as the proxy does, and prints the record: no server and no proxy, only the
//! scanner and the meter.
//!
//! ```text
//! curl -sN http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' -d '{"stream": true, …}' |
//!     cargo run -q -p tokenmeter-examples --example watch_stream
//! ```

use std::io::{Read, Write};
use std::time::Instant;

use meter::{Body, Close, Identity, LoadSpan, Meter, Tick, TokenType};
use scan::{Dialect, Framing, Request, Scanner};

fn main() -> std::io::Result<()> {
    let dialect = Dialect::OpenaiChat;
    let origin = Instant::now();
    let now = || Tick(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX));

    let mut meter = Meter::new(dialect, now(), 1_000_000_000);
    meter.requested(Request::default(), now());
    meter.answered(200, Body::Frames);
    let mut scanner = Scanner::new(dialect, Framing::Sse);

    let mut buffer = [0; 16 * 1024];
    loop {
        let read = std::io::stdin().read(&mut buffer)?;
        if read == 0 {
            break;
        }
        scanner.feed(&buffer[..read], &mut meter.read(now()));
        eprint!("\r{} tokens", meter.live_output());
        std::io::stderr().flush()?;
    }
    scanner.end(&mut meter.tail(now()));

    let identity = Identity::new("stdin", "openai", dialect, scanner.names().model());
    let record = meter.end(identity, Close::Clean { whole: false }, LoadSpan::single(), now());
    eprintln!();
    println!("{} of {}", record.ending.name(), record.identity.model);
    for kind in TokenType::ALL {
        if record.tokens.of(kind) > 0 {
            let provenance = record.tokens.provenance(kind).name();
            println!("{:>8} {} tokens ({provenance})", record.tokens.of(kind), kind.name());
        }
    }
    if let Some(rate) = record.timing.output_rate {
        println!("{rate:8.1} tokens/s");
    }
    Ok(())
}
