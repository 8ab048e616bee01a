//! The first process of the programs' process namespace: starts them, waits for them, and takes all of them with it.

use super::{Request, Space};
use crate::fault::{Fault, refusal};
use crate::network;
use crate::sys::{self, process};
use process::{Place, Start};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Ends of the programs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Status of the command, as a shell has it.
    pub status: Option<i32>,
    /// Field, value and what would be right, if they could not be started.
    pub refused: Option<(String, String, String)>,
    /// Status of the server, if it ended before the command.
    pub server_status: Option<i32>,
    /// Names of the two ends are known to programs.
    pub names: bool,
}

/// Does everything, tells it and ends. Something can be read of `listening` once the server listens.
pub fn run(
    request: &Request,
    spaces: &[Space; 2],
    user: Option<(u32, u32)>,
    (to, listening): (fs::File, fs::File),
) -> ! {
    let mut outcome = Outcome::default();
    match programs(request, spaces, user, &mut outcome, listening) {
        Ok(()) => {}
        Err(Fault::Refused(field, value, expected)) => {
            outcome.refused = Some((field, value, expected));
        }
        Err(Fault::Failed(text)) => {
            outcome.refused = Some(("shell".to_owned(), String::new(), text));
        }
    }
    let mut to = to;
    let _ = to.write_all(serde_json::to_string(&outcome).unwrap_or_default().as_bytes());
    process::leave(0)
}

fn programs(
    request: &Request,
    spaces: &[Space; 2],
    user: Option<(u32, u32)>,
    outcome: &mut Outcome,
    mut listening: fs::File,
) -> Result<(), Fault> {
    process::die_with_maker()?;
    outcome.names = names(request.network).is_ok();
    let mut server = None;
    if let [program, arguments @ ..] = request.server.as_slice() {
        let output = match request.server_output {
            Some(number) => process::inherited(number).into(),
            None => std::io::stderr().as_fd().try_clone_to_owned()?,
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        let start =
            Start { space: &spaces[0].namespace, user, place: Place::Background, confined: false };
        let started = start_program(&mut command, &start, "--server", request)?;
        listens(&spaces[0], started, program)?;
        server = Some(started);
    }
    listening.write_all(&[1])?;
    let [program, arguments @ ..] = request.command.as_slice() else {
        return refusal("COMMAND", "", "a command");
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let place = if request.interactive { Place::Shell } else { Place::Foreground };
    let start = Start { space: &spaces[1].namespace, user, place, confined: false };
    let started = start_program(&mut command, &start, "COMMAND", request)?;
    while let Some((ended, status)) = process::next_end() {
        if ended == started {
            outcome.status = Some(status);
            break;
        }
        if Some(ended) == server {
            outcome.server_status = Some(status);
        }
    }
    Ok(())
}

fn start_program(
    command: &mut Command,
    start: &Start<'_, fs::File>,
    field: &str,
    request: &Request,
) -> Result<i32, Fault> {
    command.envs(&request.environment);
    process::start(command, start, field)
}

/// Waits until the server listens on a TCP port or has bound a UDP one.
fn listens(space: &Space, server: i32, program: &str) -> Result<(), Fault> {
    sys::enter(&space.namespace)?;
    let start = Instant::now();
    while !network::has_listener() {
        let ended = process::has_ended(server);
        if ended.is_some() || start.elapsed() > network::LISTEN_WAIT {
            return network::no_listener("--server", program, ended, network::LISTEN_WAIT, "");
        }
        std::thread::sleep(network::LISTEN_STEP);
    }
    Ok(())
}

/// Mounts the process namespace's own /proc, where that is allowed, an /etc/hosts that has the ends' names, and with the
/// real network an /etc/resolv.conf that names the server inside.
fn names(has_network: bool) -> Result<(), Fault> {
    process::unshare_mounts()?;
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let _ = sys::mount("proc", "/proc", "proc", quiet, ""); // else the machine's numbers are seen
    let mut text = fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (index, name) in ["server", "client"].into_iter().enumerate() {
        let [address, address6] = super::addresses(index);
        text.push_str(&format!("{address} {name}\n{address6} {name}6\n"));
    }
    let resolver = "/etc/resolv.conf";
    let mut files = vec![("/etc/hosts", text)];
    if has_network && fs::exists(resolver).unwrap_or(false) {
        files.push((resolver, format!("nameserver {}\n", super::exit::NAME_SERVER)));
    }
    process::mount_files(&files)
}
