//! The cost of a proxy in front of an inference server: CPU per frame, added time, memory per stream. It measures
//! tokenmeter with full metering beside nginx, HAProxy and a relay that only receives and sends.
//!
//! `tests/bench/run` installs the peers and runs it; `tests/bench/performance.md` explains the numbers. In reading
//! order: [`wire`] has the bytes, [`mock`] sends them, [`load`] requests and checks them ([`reply`], [`rewritten`]),
//! [`floor`] is the lower bound of a proxy, [`peers`] starts the others, [`scenario`] lists the loads, [`rounds`]
//! alternates, [`report`] compares. [`instructions`] counts instead of measuring time.

mod books;
mod child;
mod collectors;
mod cpu;
mod crowd;
mod floor;
mod instructions;
mod load;
mod lockstep;
mod mock;
mod options;
mod peers;
mod quantile;
mod reply;
mod report;
mod rewritten;
mod rounds;
mod scenario;
mod scrape;
mod socket;
mod spin;
mod tls;
mod wire;

use std::process::ExitCode;

use options::Options;

/// An error for people; no code depends on its kind.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The first seven are the parts it starts itself, each a process pinned to its core.
    let done = match words.as_slice() {
        ["mock"] => mock::run(None),
        ["mock", folder] => mock::run(Some(&tls::Certificate::of(folder))),
        ["load", rest @ ..] => load::run(rest),
        ["floor", listen, upstream] => floor::run(listen, upstream),
        ["spin"] => spin::run(),
        ["collector", fault] => collectors::serve(fault),
        ["attack", name, address, admin] => crowd::attack(name, address, admin),
        ["crowd", rest @ ..] => Options::read(rest).and_then(|options| crowd::run(&options)),
        ["instructions", rest @ ..] => Options::read(rest).and_then(|options| instructions::run(&options)),
        ["--help" | "-h"] => {
            println!("{}", options::HELP);
            Ok(())
        }
        all => {
            Options::read(all).and_then(|options| match (&options.ledger, options.collectors.is_empty()) {
                (Some(folder), _) => books::run(&options, folder),
                (None, true) => rounds::run(&options),
                (None, false) => collectors::run(&options),
            })
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench-proxy: {failure}");
            ExitCode::FAILURE
        }
    }
}
