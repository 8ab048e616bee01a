//! The agent: builds a scenario's network out of a real kernel's namespaces, drives its traffic over real
//! sockets, and leaves the tables of a recording.
//!
//! What lives here: everything that happens on the machine whose kernel carries the packets.
//! What must not: anything about how that machine came to be (an emulator, this host, a testbed), or what is done
//! with the tables.
//!
//! `dragstrip-agent first exchange=FILE watchdog=FILE`: as the first process of a machine of its own.
//! `dragstrip-agent run exchange=FILE [grant=WORDS]`: in a machine that runs already (as root), once.
//! FILE (or FILE:OFFSET:SIZE) is shared with whoever asks, or `-` for frames on standard input and output
//! (exchange.rs). WORDS say what of the machine may be changed (machine/grant.rs).
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this crate is the edge: files, sockets and clocks are its business"
)]

mod conductor;
mod conform;
mod exchange;
mod fault;
mod machine;
mod netlink;
mod network;
mod plan;
mod qdisc;
mod record;
mod side;
mod sys;

use exchange::Exchange;
use fault::{Fault, fault};
use machine::{Grant, first};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("first") => {
            if let Err(fault) = as_first(&arguments) {
                first::tell(&format!("failed: {fault}"));
            }
            sys::power_off();
        }
        _ => {
            if let Err(fault) = as_guest(&arguments) {
                eprintln!("dragstrip-agent: {fault}");
                std::process::exit(1);
            }
        }
    }
}

fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn file<'a>(arguments: &'a [String], name: &str) -> Result<&'a str, Fault> {
    option(arguments, name).map_or_else(|| fault(format!("{name}=FILE is missing")), Ok)
}

fn as_first(arguments: &[String]) -> Result<(), Fault> {
    first::prepare()?;
    let exchange = Exchange::open(file(arguments, "exchange")?)?;
    first::ready(file(arguments, "watchdog")?)?;
    serve(&exchange, Grant::MACHINE)
}

fn as_guest(arguments: &[String]) -> Result<(), Fault> {
    match arguments.get(1).map(String::as_str) {
        Some("run") => {
            sys::raise_file_limit()?;
            let grant = Grant::parse(option(arguments, "grant").unwrap_or_default())?;
            serve(&Exchange::open(file(arguments, "exchange")?)?, grant)
        }
        _ => fault("usage: dragstrip-agent run exchange=FILE [grant=WORDS]"),
    }
}

fn serve(exchange: &Exchange, grant: Grant) -> Result<(), Fault> {
    let request = exchange.request()?;
    let progress = |now_ns| exchange.progress(now_ns);
    let end = request.iter().position(|byte| *byte == b'\n').unwrap_or(request.len());
    let (line, raw) = request.split_at(end);
    let raw = raw.get(1..).unwrap_or_default();
    let outcome = if let Ok(scripts) = serde_json::from_slice(line) {
        conform::run(&scripts, &progress)
    } else {
        serde_json::from_slice(line)
            .map_err(|error| Fault::Failed(format!("scenario: {error}")))
            .and_then(|request| conductor::run(&request, raw, grant, &progress))
    };
    exchange.answer(outcome)
}
