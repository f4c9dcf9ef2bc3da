//! The instructions of tokenmeter per frame and per request, counted by valgrind's callgrind. The ends send in turn
//! ([`crate::lockstep`]), so that the counts of two runs differ by about a percent, on a busy machine too, and can have a
//! budget. Times and system calls are not in them.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::child::{Child, PROXY_CORE};
use crate::lockstep::{BYTES_PATH, Client, Server};
use crate::options::Options;
use crate::peers::{Binary, RunDir, free_address};
use crate::wire::{self, Ask};

/// Maximum time until tokenmeter accepts under callgrind.
const TO_START: Duration = Duration::from_secs(120);
/// A path that tokenmeter does not know. It searches the response for usage all the same.
const UNKNOWN_PATH: &str = "/v1/not/known/at/all";
/// Text frames of the two streams whose difference is the cost of a frame.
const FEW_FRAMES: u32 = 50;
const MANY_FRAMES: u32 = 450;
/// Unstreamed requests of a measurement.
const REQUESTS: u32 = 40;
/// The part of a budget by which a count may exceed it.
const TOLERANCE: f64 = 0.03;

// The heads are equally long.
const _: () = assert!(UNKNOWN_PATH.len() == wire::PATH.len() && BYTES_PATH.len() == wire::PATH.len());

/// The cost of one frame or of one request.
struct Cost {
    name: &'static str,
    /// Counts of the forwarding thread.
    worker: Counts,
    /// Instructions of all other threads, which also work once a second, with traffic or without.
    others: f64,
}

/// Events of callgrind, per operation.
#[derive(Clone, Copy, Default)]
struct Counts {
    instructions: f64,
    /// Misses of the first-level data cache, as callgrind simulates it.
    first_level_misses: f64,
    /// Misses of the last-level cache.
    last_level_misses: f64,
}

impl Counts {
    fn per_one(self, less: Self, times: u32) -> Self {
        let per = |more: f64, less: f64| (more - less) / f64::from(times);
        Self {
            instructions: per(self.instructions, less.instructions),
            first_level_misses: per(self.first_level_misses, less.first_level_misses),
            last_level_misses: per(self.last_level_misses, less.last_level_misses),
        }
    }
}

/// Counts, prints a table, and compares it with the budget if one is named.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let removed = RunDir::new()?;
    let folder = options.profiles.as_ref().unwrap_or(&removed.path);
    fs::create_dir_all(folder)?;
    let server = Server::start()?;
    let address = free_address()?;
    let mut profile = Profile::start(options.binary()?, &address, &server, folder)?;
    let mut client = Client::connect(&address, &server)?;
    let mut costs = Vec::new();
    for (path, frame, request) in [
        (wire::PATH, "frame", "request"),
        (UNKNOWN_PATH, "frame, unknown path", "request, unknown path"),
        (BYTES_PATH, "frame, not metered", "request, not metered"),
    ] {
        let stream = |text| Ask::Stream { text, pause_us: 0, pad: 0 };
        for _ in 0..10 {
            client.exchange(Ask::Json, path)?;
            client.exchange(stream(FEW_FRAMES), path)?;
        }
        profile.part()?;
        client.exchange(stream(FEW_FRAMES), path)?;
        let few = profile.part()?;
        client.exchange(stream(MANY_FRAMES), path)?;
        let many = profile.part()?;
        for _ in 0..REQUESTS {
            client.exchange(Ask::Json, path)?;
        }
        let requests = profile.part()?;
        let frames = MANY_FRAMES - FEW_FRAMES;
        costs.push(Cost {
            name: frame,
            worker: many.worker.per_one(few.worker, frames),
            others: (many.others - few.others) / f64::from(frames),
        });
        costs.push(Cost {
            name: request,
            worker: requests.worker.per_one(Counts::default(), REQUESTS),
            others: requests.others / f64::from(REQUESTS),
        });
    }
    println!(
        "| | instructions | first-level data misses | last-level misses | instructions of other threads |"
    );
    println!("|---|--:|--:|--:|--:|");
    for Cost { name, worker, others } in &costs {
        let Counts { instructions, first_level_misses, last_level_misses } = worker;
        println!(
            "| {name} | {instructions:.0} | {first_level_misses:.1} | {last_level_misses:.1} | {others:.0} |"
        );
    }
    match &options.budget {
        Some(path) => compare(&costs, &fs::read_to_string(path)?),
        None => Ok(()),
    }
}

/// Compares with a budget: a line for each cost, its instructions and its name; `#` begins a comment.
fn compare(costs: &[Cost], budget: &str) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for cost in costs {
        let line =
            budget.lines().find_map(|line| line.split_once(' ').filter(|(_, name)| *name == cost.name));
        let Some(allowed) = line.and_then(|(count, _)| count.parse::<f64>().ok()) else {
            return Err(format!("the budget has no line for `{}`", cost.name).into());
        };
        let share = cost.worker.instructions / allowed - 1.0;
        if share > TOLERANCE {
            wrong.push(format!(
                "{}: {:.0} instructions, {:.1} % over its budget of {allowed}",
                cost.name,
                cost.worker.instructions,
                share * 100.0
            ));
        } else if share < -TOLERANCE {
            println!(
                "\n{}: {:.1} % below its budget; lower the budget, so that it stays there.",
                cost.name,
                -share * 100.0
            );
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}

/// The events between two readings.
struct Part {
    worker: Counts,
    others: f64,
}

/// A tokenmeter under callgrind.
struct Profile<'a> {
    child: Child,
    folder: &'a Path,
    parts: u32,
}

impl<'a> Profile<'a> {
    fn start(tokenmeter: Binary, listen: &str, server: &Server, folder: &'a Path) -> Result<Self, Failure> {
        let file = format!("--callgrind-out-file={}", folder.join("out").display());
        let before =
            ["valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", "--separate-threads=yes", &file];
        let (upstream, admin) = (format!("http://{}", server.address), free_address()?);
        let words = ["run", "--upstream", &upstream, "--kind", "vllm", "--listen", listen, "--admin", &admin];
        let words =
            words.iter().chain(&["--workers", "1", "--engine-metrics", "off"]).map(|word| (*word).to_owned());
        let log = folder.join("log");
        let mut child =
            Child::start(PROXY_CORE, &before, tokenmeter.path, &words.collect::<Vec<_>>(), Some(&log))?;
        let began = Instant::now();
        while TcpStream::connect(listen).is_err() {
            if child.has_ended() || began.elapsed() > TO_START {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("tokenmeter under valgrind did not start: {said}").into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { child, folder, parts: 0 })
    }

    /// Returns the events since the last call.
    fn part(&mut self) -> Result<Part, Failure> {
        // By then, the other threads have taken the record of the last exchange.
        std::thread::sleep(Duration::from_millis(500));
        self.parts += 1;
        let id = self.child.tree()[0].to_string();
        let output = Command::new("callgrind_control").args(["-d", &id]).output();
        let output =
            output.map_err(|error| format!("callgrind_control, of the package valgrind: {error}"))?;
        let mut threads = Vec::new();
        for entry in fs::read_dir(self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(&format!("out.{}-", self.parts)) {
                threads.push(
                    counts(&fs::read_to_string(&path)?).ok_or_else(|| format!("{name} has no totals"))?,
                );
            }
        }
        // The forwarding thread does more work than any other thread.
        threads.sort_by(|a, b| b.instructions.total_cmp(&a.instructions));
        let (worker, others) = threads
            .split_first()
            .ok_or_else(|| format!("callgrind wrote no part: {}", String::from_utf8_lossy(&output.stdout)))?;
        Ok(Part { worker: *worker, others: others.iter().map(|thread| thread.instructions).sum() })
    }
}

/// Reads the totals of one thread's file.
fn counts(file: &str) -> Option<Counts> {
    let line = |key: &str| file.lines().find_map(|line| line.strip_prefix(key));
    let events: Vec<&str> = line("events: ")?.split_whitespace().collect();
    let totals: Vec<f64> =
        line("totals: ")?.split_whitespace().map_while(|total| total.parse().ok()).collect();
    let of = |names: &[&str]| {
        let found =
            names.iter().filter_map(|name| totals.get(events.iter().position(|event| event == name)?));
        found.sum::<f64>()
    };
    Some(Counts {
        instructions: of(&["Ir"]),
        first_level_misses: of(&["D1mr", "D1mw"]),
        last_level_misses: of(&["ILmr", "DLmr", "DLmw"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_by_their_events() {
        let read =
            counts("events: Ir Dr D1mr D1mw ILmr DLmr\n1 2\ntotals: 100 7 3 2 4 1\n").expect("it has totals");
        assert_eq!([read.instructions, read.first_level_misses, read.last_level_misses], [100.0, 5.0, 5.0]);
        assert!(counts("events: Ir\n").is_none());
    }

    #[test]
    fn budget_allows_three_percent_more() {
        let cost = |instructions| Cost {
            name: "frame",
            worker: Counts { instructions, ..Counts::default() },
            others: 0.0,
        };
        let budget = "# instructions\n1000 frame\n";
        assert!(compare(&[cost(1020.0)], budget).is_ok());
        let failure = compare(&[cost(1040.0)], budget).expect_err("it is more").to_string();
        assert_eq!(failure, "frame: 1040 instructions, 4.0 % over its budget of 1000");
        assert!(compare(&[cost(1.0)], "1 request\n").is_err());
    }
}
