//! The times of one client while another one, at another address, takes as much as it can. In each round tokenmeter is
//! measured under each attack and without it, alternately and restarted each time.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::child::{self, Child};
use crate::options::Options;
use crate::peers::{RunDir, Running};
use crate::reply::Reply;
use crate::tls::Tls;
use crate::wire::{self, Ask, Frames};
use crate::{Failure, cpu, quantile, socket};

/// Requests of the second client in one run, each on a connection of its own.
const REQUESTS: u32 = 200;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(20);
/// Requests for each probe.
const PROBE_EVERY: u32 = 4;
/// Timeout of a request or a probe.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time from the attack's last connection to the second client's first request.
const HEAD_START: Duration = Duration::from_secs(1);
/// The pause before the attacker reconnects after a closed connection.
const REOPEN: Duration = Duration::from_secs(1);
/// Time between two drips.
const DRIP: Duration = Duration::from_millis(500);

const ASK: Ask = Ask::Stream { text: 3, pause_us: 0, pad: 0 };
const PROBE: &[u8] = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// An attack: connections from one address, held as long as the proxy permits.
struct Attack {
    name: &'static str,
    /// The setting that it exhausts, lowered so that the machine can reach it.
    limit: (&'static str, &'static str),
    connections: usize,
    on_admin: bool,
    /// The first bytes of each connection.
    opening: fn() -> Vec<u8>,
    /// The bytes of each drip.
    drip: &'static [u8],
    /// The time after which a connection is replaced, because its streams may have been ended one by one.
    lasts: Duration,
}

const FOR_EVER: Duration = Duration::from_secs(3600);

const ATTACKS: [Attack; 5] = [
    Attack {
        name: "stalled uploads",
        limit: ("TOKENMETER_GATHER_MEMORY_MIB", "16"),
        connections: 24,
        on_admin: false,
        opening: || upload(1 << 20, (1 << 20) - 1),
        drip: b"",
        lasts: FOR_EVER,
    },
    Attack {
        name: "half-open requests",
        limit: ("TOKENMETER_UPSTREAM_CONNECTIONS", "200"),
        connections: 2,
        on_admin: false,
        opening: half_open,
        drip: b"",
        lasts: Duration::from_secs(3),
    },
    Attack {
        name: "dripping uploads",
        limit: ("TOKENMETER_UPSTREAM_CONNECTIONS", "200"),
        connections: 300,
        on_admin: false,
        opening: || upload_to("/anything", 60_000, 200),
        drip: &[b' '; 200],
        lasts: FOR_EVER,
    },
    Attack {
        name: "silent connections",
        limit: ("TOKENMETER_CONNECTIONS", "500"),
        connections: 1000,
        on_admin: false,
        opening: Vec::new,
        drip: b"",
        lasts: FOR_EVER,
    },
    Attack {
        name: "probes",
        limit: ("TOKENMETER_CONNECTIONS", "500"),
        connections: 1000,
        on_admin: true,
        opening: || b"GET".to_vec(),
        drip: b"",
        lasts: FOR_EVER,
    },
];

fn upload(announced: usize, sent: usize) -> Vec<u8> {
    upload_to("/v1/chat/completions", announced, sent)
}

fn upload_to(path: &str, announced: usize, sent: usize) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {announced}\r\n\r\n");
    [head.as_bytes(), &vec![b' '; sent]].concat()
}

/// 250 requests over HTTP/2, of each the head and one byte of its body.
fn half_open() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // POST, http, and three literals without indexing: the path, the authority, the content's length.
    let fields = b"\x83\x86\x04\x09/anything\x01\x01h\x0f\x0d\x0560000";
    for stream in (1_u32..).step_by(2).take(250) {
        for (kind, flags, payload) in [(1, 4, &fields[..]), (0, 0, b"{")] {
            bytes.extend_from_slice(&[0, 0, payload.len() as u8, kind, flags]);
            bytes.extend_from_slice(&stream.to_be_bytes());
            bytes.extend_from_slice(payload);
        }
    }
    bytes
}

/// Attacks until it is ended. Prints a line once every connection is open.
pub(crate) fn attack(name: &str, address: &str, admin: &str) -> Result<(), Failure> {
    let attack = ATTACKS.iter().find(|attack| attack.name == name).ok_or("there is no such attack")?;
    let address: std::net::SocketAddr = if attack.on_admin { admin } else { address }.parse()?;
    tokio::task::LocalSet::new().block_on(&socket::runtime()?, async {
        for _ in 0..attack.connections {
            tokio::task::spawn_local(async move {
                loop {
                    // Reconnects after any end.
                    let _ = timeout(attack.lasts, hold(attack, address)).await;
                    sleep(REOPEN).await;
                }
            });
        }
        sleep(HEAD_START).await;
        child::say("begun")?;
        std::future::pending::<Result<(), Failure>>().await
    })
}

/// Holds one connection until it is ended.
async fn hold(attack: &Attack, address: std::net::SocketAddr) -> std::io::Result<()> {
    let attacker = TcpSocket::new_v4()?;
    attacker.bind(([127, 0, 0, 2], 0).into())?;
    let mut stream = attacker.connect(address).await?;
    stream.write_all(&(attack.opening)()).await?;
    loop {
        match timeout(DRIP, socket::read(&mut stream, |bytes| bytes.len())).await {
            Ok(Ok(0)) => return Ok(()),
            Ok(read) => drop(read?),
            Err(_) => stream.write_all(attack.drip).await?,
        }
    }
}

/// The second client's times in one run, microseconds.
#[derive(Default)]
struct Times {
    whole: Vec<f64>,
    probes: Vec<f64>,
    failed: u32,
    wrong: Option<String>,
}

impl Times {
    fn note(&mut self, is_probe: bool, began: Instant, done: Result<(), String>) {
        let us = began.elapsed().as_secs_f64() * 1e6;
        if is_probe {
            self.probes.push(us)
        } else {
            self.whole.push(us)
        }
        if let Err(wrong) = done {
            self.failed += 1;
            self.wrong.get_or_insert(wrong);
        }
    }
}

/// Runs the second client, with requests and probes.
fn ask(address: &str, admin: &str) -> Result<Times, Failure> {
    let (frames, request) = (Frames::new(0), ASK.request(wire::PATH, address));
    let mut times = Times::default();
    socket::runtime()?.block_on(async {
        for n in 0..REQUESTS {
            let began = Instant::now();
            let done = timeout(PATIENCE, exchange(address, &request, &frames)).await;
            times.note(false, began, done.unwrap_or_else(|_| Err("no whole reply in time".into())));
            if n % PROBE_EVERY == 0 {
                let began = Instant::now();
                let done = timeout(PATIENCE, probe(admin)).await;
                times.note(true, began, done.unwrap_or_else(|_| Err("no probe in time".into())));
            }
            sleep(PAUSE).await;
        }
    });
    Ok(times)
}

async fn exchange(address: &str, request: &[u8], frames: &Frames) -> Result<(), String> {
    let mut stream = begin(address, request).await.map_err(|error| error.to_string())?;
    let mut reply = Reply::new(ASK, frames);
    while !reply.is_whole() {
        let checked = socket::read(&mut stream, |bytes| match bytes {
            [] => Err("cut off".to_owned()),
            bytes => reply.feed(bytes, wire::now_us(), |_| ()),
        });
        checked.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

async fn probe(admin: &str) -> Result<(), String> {
    let mut stream = begin(admin, PROBE).await.map_err(|error| error.to_string())?;
    let answer = socket::read(&mut stream, |bytes| bytes.starts_with(b"HTTP/1.1 200"));
    match answer.await.map_err(|error| error.to_string())? {
        true => Ok(()),
        false => Err("a probe was not answered by 200".into()),
    }
}

async fn begin(address: &str, bytes: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = socket::connect(address).await?;
    stream.write_all(bytes).await?;
    Ok(stream)
}

/// One round of one attack, without it and under it.
struct Pair {
    attack: &'static str,
    sides: [Times; 2],
}

/// Runs all rounds and prints the table.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let place = RunDir::new()?;
    let mut mock = Child::ourselves(child::ENDS_CORE, &["mock".to_owned()])?;
    let upstream = mock.line()?;
    println!("- Machine: {}", cpu::machine());
    println!("- {} rounds, {}", options.rounds, options.tokenmeter()?.version()?);
    println!("- Load average before: {}", cpu::load_average());
    let mut pairs = Vec::new();
    for round in 0..options.rounds {
        for attack in &ATTACKS {
            let mut sides = [Times::default(), Times::default()];
            for turn in 0..2 {
                let side = (round + turn) as usize % 2;
                sides[side] = measure(options, &place, &upstream, (attack, side == 1))?;
            }
            for (name, times) in ["without", "under it"].iter().zip(&mut sides) {
                let [p50, p99] =
                    [0.5, 0.99].map(|share| quantile::of(&mut times.whole, share).unwrap_or(0.0));
                eprintln!(
                    "round {} {:<18} {name:<8} p50 {p50:>6.0} µs, p99 {p99:>8.0} µs, failed {} {}",
                    round + 1,
                    attack.name,
                    times.failed,
                    times.wrong.as_deref().unwrap_or_default()
                );
            }
            pairs.push(Pair { attack: attack.name, sides });
        }
    }
    println!("- Load average after: {}\n\n{}", cpu::load_average(), table(&mut pairs));
    Ok(())
}

fn measure(
    options: &Options,
    place: &RunDir,
    upstream: &str,
    (attack, is_under): (&Attack, bool),
) -> Result<Times, Failure> {
    let running = Running::start(options.tokenmeter()?, upstream, place, &[attack.limit], Tls::Off)?;
    let admin = running.admin.as_deref().ok_or("tokenmeter has an admin address")?;
    let _attacker = match is_under {
        true => {
            let words = ["attack", attack.name, &running.address, admin].map(str::to_owned);
            let mut attacker = Child::ourselves(child::ENDS_CORE, &words)?;
            attacker.line()?;
            Some(attacker)
        }
        false => None,
    };
    ask(&running.address, admin)
}

fn table(pairs: &mut [Pair]) -> String {
    let mut table = String::from(
        "| attack | p50 µs without | under it | p99 µs without | under it | p99, × | slowest ms | failed | \
         slowest probe ms without | under it |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for attack in &ATTACKS {
        let mut all = [Times::default(), Times::default()];
        let mut ratios = Vec::new();
        for pair in pairs.iter_mut().filter(|pair| pair.attack == attack.name) {
            let p99 = |times: &mut Times| quantile::of(&mut times.whole, 0.99).unwrap_or(f64::NAN);
            ratios.push(p99(&mut pair.sides[1]) / p99(&mut pair.sides[0]));
            for (all, side) in all.iter_mut().zip(&mut pair.sides) {
                all.whole.append(&mut side.whole);
                all.probes.append(&mut side.probes);
                all.failed += side.failed;
            }
        }
        let mut of = |side: usize, share| quantile::of(&mut all[side].whole, share).unwrap_or(f64::NAN);
        let [quiet_p50, p50, quiet_p99, p99] = [of(0, 0.5), of(1, 0.5), of(0, 0.99), of(1, 0.99)];
        let slowest_ms = of(1, 1.0) / 1e3;
        let mut probe_ms = |side: usize| quantile::of(&mut all[side].probes, 1.0).unwrap_or(f64::NAN) / 1e3;
        let (quiet_probe, probe) = (probe_ms(0), probe_ms(1));
        let [least, median, most] =
            [0.0, 0.5, 1.0].map(|share| quantile::of(&mut ratios, share).unwrap_or(f64::NAN));
        table += &format!(
            "| {} | {quiet_p50:.0} | {p50:.0} | {quiet_p99:.0} | {p99:.0} | {median:.2} [{least:.2}–{most:.2}] | \
             {slowest_ms:.0} | {} | {quiet_probe:.1} | {probe:.1} |\n",
            attack.name, all[1].failed
        );
    }
    table
}
