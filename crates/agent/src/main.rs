//! The agent: builds a scenario's network out of a real kernel's namespaces, drives its traffic over real
//! sockets, and leaves the tables of a recording.
//!
//! Scope: everything that happens on the machine whose kernel carries the packets. Out of scope: how that machine was
//! set up (an emulator, this host, a testbed), and the evaluation of the tables.
//!
//! `dragstrip-agent first exchange=FILE watchdog=FILE`: as the first process of a separate machine.
//! `dragstrip-agent guest`: as the first process of a virtual machine in real time (machine/guest.rs).
//! `dragstrip-agent run exchange=FILE parent=PID [grant=WORDS]`: in a machine that runs already, as root or in a user
//! namespace, once; it ends with the process PID, which started it.
//! `dragstrip-agent conduct exchange=FILE parent=PID`: on hosts of a lab, which it reaches by ssh (lab/).
//! `dragstrip-agent`: on such a host, controlled by its conductor with frames on standard input and output.
//! `dragstrip-agent guard FOLDER`: undoes what such an agent leaves when it goes (lab/journal.rs).
//! `dragstrip-agent shell request=FD answer=FD parent=PID`: runs programs behind a described path (shell/mod.rs).
//! `dragstrip-agent about`: what such a machine can do, as JSON.
//! `dragstrip-agent missing [lines=WORD]`: what it lacks for each scenario of a JSON list on standard input, as a JSON list.
//! If it refuses these two itself, it ends with status 2 and field, value and what would be right, a line each.
//! FILE (or FILE:OFFSET:SIZE) is shared with the requester, or `-` for frames on standard input and output
//! (exchange.rs). WORDS list the permitted changes of the machine (machine/grant.rs).
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this crate is the edge: files, sockets and clocks are its business"
)]

mod changes;
mod checks;
mod commands;
mod conductor;
mod conform;
mod event_loop;
mod exchange;
mod fault;
mod forward;
mod kernel;
mod lab;
mod lines;
mod load;
mod local_machine;
mod machine;
mod netlink;
mod network;
mod plan;
mod ports;
mod programs;
mod qdisc;
mod record;
mod shell;
mod side;
mod stages;
mod sys;
mod trees;

use dragstrip_scenario::Scenario;
use exchange::Exchange;
use fault::{Fault, fault};
use kernel::Kernel;
use local_machine::Rights;
use machine::{Grant, Loaded, first, guest};
use plan::Plan;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("first") => {
            if let Err(fault) = as_first(&arguments) {
                first::tell(&format!("failed: {fault}"));
            }
            sys::power_off();
        }
        Some("guest") => {
            if let Err(fault) = guest::run() {
                first::tell(&format!("failed: {fault}"));
            }
            sys::sync();
            sys::power_off();
        }
        _ => {
            let mode = arguments.get(1).map(String::as_str);
            match as_guest(&arguments) {
                Ok(()) => {}
                Err(Fault::Refused(field, value, expected))
                    if matches!(mode, Some("about" | "missing")) =>
                {
                    eprintln!("{field}\n{value}\n{expected}");
                    std::process::exit(2);
                }
                Err(fault) => {
                    eprintln!("dragstrip-agent: {fault}");
                    std::process::exit(1);
                }
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
    let release = Some(network::kernel_release());
    serve(&exchange, Grant::MACHINE, || Ok(Kernel { release, ..Kernel::DEBIAN }))
}

fn as_guest(arguments: &[String]) -> Result<(), Fault> {
    match arguments.get(1).map(String::as_str) {
        None => lab::serve(),
        Some("guard") => lab::guard(arguments.get(2).map_or("", String::as_str)),
        Some("conduct") => conduct(arguments),
        Some("shell") => {
            let number = |name| {
                let number = option(arguments, name).and_then(|number| number.parse().ok());
                number.map_or_else(|| fault(format!("{name}=FD is missing")), Ok)
            };
            let (request, answer) = (number("request")?, number("answer")?);
            let parent = parent(arguments)?;
            let loaded = Loaded::now();
            let outcome = shell::serve(request, answer, parent);
            loaded.restore();
            outcome
        }
        Some("about") => in_namespaces(|| Rights::take(None).and_then(about)),
        Some("missing") => in_namespaces(|| Rights::take(None).and_then(|_| missing(arguments))),
        Some("run") => in_namespaces(|| run_here(arguments)),
        Some(_) => fault(
            "usage: dragstrip-agent run|conduct exchange=FILE parent=PID [grant=WORDS] | shell request=FD answer=FD parent=PID | \
             about | missing | guard FOLDER",
        ),
    }
}

/// Does something that may have the kernel load modules.
fn in_namespaces(action: impl FnOnce() -> Result<(), Fault>) -> Result<(), Fault> {
    sys::raise_file_limit()?;
    let loaded = Loaded::now();
    let outcome = action();
    loaded.restore();
    outcome
}

fn parent(arguments: &[String]) -> Result<i32, Fault> {
    let parent = option(arguments, "parent").and_then(|number| number.parse().ok());
    parent.map_or_else(|| fault("parent=PID is missing"), Ok)
}

fn conduct(arguments: &[String]) -> Result<(), Fault> {
    sys::die_with_parent(parent(arguments)?)?;
    let exchange = Exchange::open(file(arguments, "exchange")?)?;
    let request = exchange.request()?;
    let (line, raw) = parts(&request);
    let request = serde_json::from_slice(line);
    let request = request.map_err(|error| Fault::Failed(format!("request: {error}")));
    let progress = |now_ns| exchange.progress(now_ns, 0);
    let outcome = request.and_then(|request| lab::conduct(&request, raw, &progress));
    exchange.answer(outcome)
}

fn about(rights: Rights) -> Result<(), Fault> {
    let mut description = local_machine::kernel()?.describe();
    description["rights"] = rights.name().into();
    println!("{description}");
    Ok(())
}

/// For each scenario what keeps this kernel from running it: nothing, or field, value and what would be right.
fn missing(arguments: &[String]) -> Result<(), Fault> {
    let scenarios: Vec<Scenario> = serde_json::from_reader(std::io::stdin().lock())
        .map_err(|error| Fault::Failed(format!("scenarios: {error}")))?;
    let mut kernel = local_machine::kernel()?;
    if let Some(word) = option(arguments, "lines") {
        let lines = serde_json::from_value(word.into());
        kernel.lines = lines.map_err(|error| Fault::Failed(format!("lines={word}: {error}")))?;
    }
    let mut refusals = Vec::new();
    for scenario in &scenarios {
        refusals.push(match Plan::new(scenario, &kernel) {
            Ok(_) => serde_json::Value::Null,
            Err(Fault::Refused(field, value, expected)) => {
                serde_json::json!([field, value, expected])
            }
            Err(fault) => return Err(fault),
        });
    }
    println!("{}", serde_json::Value::from(refusals));
    Ok(())
}

fn run_here(arguments: &[String]) -> Result<(), Fault> {
    let parent = parent(arguments)?;
    let grant = Grant::parse(option(arguments, "grant").unwrap_or_default())?;
    let exchange = Exchange::open(file(arguments, "exchange")?)?;
    serve(&exchange, grant, || {
        Rights::take(Some(parent))?;
        sys::set_timer_slack()?;
        sys::raise_priority();
        local_machine::kernel()
    })
}

/// A request's line of JSON, and the bytes after it.
fn parts(request: &[u8]) -> (&[u8], &[u8]) {
    let end = request.iter().position(|byte| *byte == b'\n').unwrap_or(request.len());
    let (line, raw) = request.split_at(end);
    (line, raw.get(1..).unwrap_or_default())
}

/// Executes a request; `kernel` prepares the machine and describes its kernel.
fn serve(
    exchange: &Exchange,
    grant: Grant,
    kernel: impl FnOnce() -> Result<Kernel, Fault>,
) -> Result<(), Fault> {
    let request = exchange.request()?;
    let progress = |now_ns, arrived_bytes| exchange.progress(now_ns, arrived_bytes);
    let (line, raw) = parts(&request);
    let outcome = if let Ok(scripts) = serde_json::from_slice(line) {
        conform::run(&scripts, &|played| progress(played, 0))
    } else if let Ok(request) = serde_json::from_slice(line) {
        programs::run(&request, raw, grant, &kernel()?, &progress)
    } else {
        serde_json::from_slice(line)
            .map_err(|error| Fault::Failed(format!("scenario: {error}")))
            .and_then(|request| conductor::run(&request, raw, grant, &kernel()?, &progress))
    };
    exchange.answer(outcome)
}
