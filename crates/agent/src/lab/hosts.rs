//! The hosts of a lab from the conductor's point of view: the contents of the lab's file, and the line to each host by
//! the system's own ssh, which honours the user's configuration, keys and jump hosts.
//!
//! The remote command is a constant; it is followed by a constant script, with nothing in it but a hash and a size,
//! and the agent's bytes if the host lacks them.

use super::frames::{self, Frame, HEARTBEAT, PROTOCOL};
use super::line::MAGIC;
use super::messages::{Ask, Connection};
use crate::fault::{Fault, fault};
use crate::side::Order;
use crate::sys;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const BOOTSTRAP: &str = include_str!("bootstrap.sh");
/// Most bytes that a login shell may print before the agent starts.
const BANNER_MAX: usize = 64 << 10;
/// To connect, to log in, and to store the agent.
const BEGIN_WITHIN_MS: i32 = 60_000;
/// The machine that the agent is compiled for.
const MACHINE: &str = "Linux x86_64";

/// A lab, as described by its file.
#[derive(Debug, Deserialize)]
pub struct Lab {
    pub name: String,
    pub revert_after_ns: u64,
    /// Only addresses in here are touched.
    pub prefixes: Vec<(Ipv4Addr, u8)>,
    pub hosts: Vec<Host>,
    /// The host that each of a scenario's nodes lives on.
    pub nodes: BTreeMap<String, String>,
    pub allow: Allow,
    /// The program that connects, with its first arguments.
    pub ssh: Vec<String>,
    /// A private folder for its sockets.
    pub control: String,
    pub owner: String,
}

/// Changes that are permitted on the hosts.
#[derive(Debug, Deserialize)]
pub struct Allow {
    /// Settings, each with a star at its end or none.
    pub sysctl: Vec<String>,
    pub offloads: bool,
    pub replace_qdisc: bool,
    /// Congestion controls may be loaded into the kernels.
    pub programs: bool,
}

impl Allow {
    pub fn sysctl(&self, name: &str) -> bool {
        self.sysctl.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        })
    }
}

/// A host.
#[derive(Debug, Deserialize)]
pub struct Host {
    pub name: String,
    /// One argument of ssh(1).
    pub ssh: String,
    pub role: String,
    pub management: String,
    pub rights: String,
    pub interfaces: Vec<Cable>,
}

/// An interface of a host, and where its cable goes.
#[derive(Debug, Deserialize)]
pub struct Cable {
    pub name: String,
    pub address: Ipv4Addr,
    pub length: u8,
    pub to: String,
    /// It is a real medium, on which nothing is configured.
    #[serde(default)]
    pub real: bool,
}

impl Host {
    /// The interface whose cable goes to another host.
    pub fn towards(&self, host: &str) -> Option<&Cable> {
        self.interfaces.iter().find(|cable| cable.to == host)
    }
}

/// The program that runs on the hosts.
pub struct Agent {
    bytes: Vec<u8>,
    hash: String,
}

impl Agent {
    /// This program itself.
    pub fn running_program() -> Result<Self, Fault> {
        let bytes = fs::read("/proc/self/exe")?;
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, hash })
    }
}

/// The line to a host.
pub struct Remote {
    pub name: String,
    pub connection: Option<Connection>,
    input: Arc<Mutex<ChildStdin>>,
    frames: Mutex<Receiver<Result<Frame, Fault>>>,
    child: Mutex<Child>,
    hold: Duration,
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Remote {
    /// Connects, copies the agent if necessary, and reads its greeting.
    pub fn connect(lab: &Lab, host: &Host, agent: &Agent) -> Result<Self, Fault> {
        let stderr_path = format!("{}/{}-{}.said", lab.control, std::process::id(), host.name);
        let result = Self::begin(lab, host, agent, &stderr_path);
        let stderr_text = fs::read_to_string(&stderr_path).unwrap_or_default();
        let _ = fs::remove_file(&stderr_path); // ssh has it open still
        let last = stderr_text.lines().map(str::trim).rfind(|line| !line.is_empty());
        result.map_err(|fault| match last {
            Some(line) => Fault::Failed(format!("host {}: {line} ({fault})", host.name)),
            None => fault.at(&format!("host {}", host.name)),
        })
    }

    fn begin(lab: &Lab, host: &Host, agent: &Agent, stderr_path: &str) -> Result<Self, Fault> {
        let Some((program, first)) = lab.ssh.split_first() else { return fault("no ssh") };
        let control = format!("ControlPath={}/%C", lab.control);
        let options = [
            "BatchMode=yes",
            "ControlMaster=auto",
            "ControlPersist=60",
            &control,
            "ServerAliveInterval=2",
            "ServerAliveCountMax=3",
            "ConnectTimeout=10",
            "ForwardAgent=no",
            "ClearAllForwardings=yes",
        ];
        let mut child = Command::new(program)
            .args(first)
            .arg("-T")
            .args(options.iter().flat_map(|option| ["-o", option]))
            .args(["--", &host.ssh, "exec /bin/sh -s"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(stderr_path)?)
            .spawn()
            .map_err(|error| Fault::Failed(format!("{program}: {error}")))?;
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return fault("no pipes");
        };
        let introduction = introduce(host, agent, &mut input, &mut output);
        let connection = match introduction {
            Ok(connection) => connection,
            Err(fault) => {
                let _ = child.kill(); // it may have gone by itself
                let _ = child.wait();
                return Err(fault);
            }
        };
        let (sender, frames) = channel();
        let input = Arc::new(Mutex::new(input));
        let beats = input.clone();
        std::thread::spawn(move || {
            loop {
                let next = Frame::read(&mut output);
                let next = next.and_then(|frame| frame.map_or_else(|| fault("has gone"), Ok));
                let over = next.is_err();
                if sender.send(next).is_err() || over {
                    return;
                }
            }
        });
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(HEARTBEAT);
                let mut input = beats.lock().unwrap_or_else(PoisonError::into_inner);
                if frames::write_bytes(&mut *input, b'b', &[]).is_err() {
                    return;
                }
            }
        });
        let hold = Duration::from_nanos(lab.revert_after_ns);
        Ok(Self {
            name: host.name.clone(),
            connection,
            input,
            frames: Mutex::new(frames),
            child: Mutex::new(child),
            hold,
        })
    }

    /// The next frame other than a heartbeat.
    pub fn next(&self) -> Result<Frame, Fault> {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match frames.recv_timeout(self.hold) {
                Ok(Ok(Frame { kind: b'b', .. })) => {}
                Ok(Ok(frame)) => return Ok(frame),
                Ok(Err(fault)) => return Err(self.at(fault)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return fault(format!(
                        "host {}: no answer for {} s; it undoes its changes by itself (dragstrip lab show)",
                        self.name,
                        self.hold.as_secs()
                    ));
                }
            }
        }
    }

    /// A fault of this host.
    pub fn at(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Refused(field, value, expected) => {
                Fault::Refused(format!("host {}: {field}", self.name), value, expected)
            }
            failed @ Fault::Failed(_) => failed.at(&format!("host {}", self.name)),
        }
    }

    /// Sends a question.
    pub fn send(&self, ask: &Ask) -> Result<(), Fault> {
        self.put_with(ask, &[])
    }

    fn put_with(&self, ask: &Ask, raw: &[u8]) -> Result<(), Fault> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        frames::write(&mut *input, b'q', ask, raw).map_err(|fault| self.at(fault))
    }

    /// Sends an order to the sides there.
    pub fn order(&self, order: Order) -> Result<(), Fault> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        frames::write(&mut *input, b'o', &order, &[]).map_err(|fault| self.at(fault))
    }

    /// Asks, and waits for the answer.
    pub fn ask<T: DeserializeOwned>(&self, ask: &Ask) -> Result<T, Fault> {
        self.ask_with(ask, &[])
    }

    /// Sends a question followed by raw bytes, and waits for the answer.
    pub fn ask_with<T: DeserializeOwned>(&self, ask: &Ask, raw: &[u8]) -> Result<T, Fault> {
        self.put_with(ask, raw)?;
        let frame = self.next()?;
        frame.outcome().map(|(value, _)| value).map_err(|fault| self.at(fault))
    }

    /// Ends the line; the host undoes what it has changed.
    pub fn cut(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill(); // it may have gone by itself
        let _ = child.wait();
    }
}

/// Standard output of ssh, which must not keep silent for ever.
struct Patient<'o>(&'o mut ChildStdout);

impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if sys::is_readable_within(self.0, BEGIN_WITHIN_MS) { self.0.read(into) } else { Ok(0) }
    }
}

/// Sends script and agent; gives the connection's ends as the host sees them.
fn introduce(
    host: &Host,
    agent: &Agent,
    input: &mut ChildStdin,
    output: &mut ChildStdout,
) -> Result<Option<Connection>, Fault> {
    let Agent { bytes, hash } = agent;
    let rights = match host.rights.as_str() {
        rights @ ("sudo" | "capabilities") => rights,
        _ => "root",
    };
    // The shell must have read all of it before it begins: what follows is not for it.
    let script = format!("{BOOTSTRAP}\nmain {rights} {hash} {}\n", bytes.len());
    input.write_all(script.as_bytes())?;
    input.flush()?;
    let mut output = Patient(output);
    let mut greeting = Heard { bytes: 0 };
    let first = greeting.line(&mut output, &["dragstrip-host 1 "])?;
    let words: Vec<&str> = first.split_whitespace().collect();
    let machine = words.get(2..4).map(|two| two.join(" ")).unwrap_or_default();
    if machine != MACHINE {
        return fault(format!("it is a {machine}; the agent is compiled for {MACHINE}"));
    }
    let connection = words.get(4..).map(|rest| rest.join(" ")).and_then(|t| Connection::parse(&t));
    let magic = MAGIC.trim();
    let mut next = greeting.line(&mut output, &["dragstrip-", magic])?;
    if next == "dragstrip-agent wanted" {
        input.write_all(bytes)?;
        input.flush()?;
        next = greeting.line(&mut output, &["dragstrip-", magic])?;
    }
    if let Some(reason) = next.strip_prefix("dragstrip-fault ") {
        return fault(reason);
    }
    let hello = Frame::read(&mut output)?;
    let hello: Value = match hello {
        Some(frame) if frame.kind == b'h' => frame.parsed()?.0,
        _ => return fault("the agent did not greet"),
    };
    if hello["protocol"] != PROTOCOL {
        return fault(format!("its agent speaks protocol {}, not {PROTOCOL}", hello["protocol"]));
    }
    if hello["agent"] != hash.as_str() {
        let agent_path = fs::read_link("/proc/self/exe").unwrap_or_default();
        return fault(format!(
            "its agent is of another version; install {} there as /usr/local/lib/dragstrip/agent (SHA-256 {hash})",
            agent_path.display()
        ));
    }
    Ok(connection)
}

/// Output of the remote shell before the agent starts.
struct Heard {
    bytes: usize,
}

impl Heard {
    /// The next line that begins in one of these ways.
    fn line(&mut self, from: &mut impl Read, beginnings: &[&str]) -> Result<String, Fault> {
        loop {
            let mut line = Vec::new();
            loop {
                let mut byte = [0; 1];
                if from.read(&mut byte)? == 0 {
                    return fault("the connection ended before the agent spoke");
                }
                self.bytes += 1;
                if self.bytes > BANNER_MAX {
                    return fault(format!("more than {BANNER_MAX} bytes before the agent spoke"));
                }
                match byte[0] {
                    b'\n' => break,
                    byte => line.push(byte),
                }
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if beginnings.iter().any(|beginning| line.starts_with(beginning)) {
                return Ok(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_banner(text: &str) -> Result<String, Fault> {
        Heard { bytes: 0 }.line(&mut text.as_bytes(), &["dragstrip-host 1 "])
    }

    #[test]
    fn a_banner_is_skipped_and_not_without_end() {
        let banner = "Welcome!\n\x1b[2Jdragstrip-hosts\ndragstrip-host 1 Linux x86_64 none\nmore";
        assert_eq!(read_banner(banner).unwrap(), "dragstrip-host 1 Linux x86_64 none");
        assert!(read_banner("no end").unwrap_err().to_string().contains("ended before"));
        let long = "x".repeat(BANNER_MAX + 1);
        assert!(read_banner(&long).unwrap_err().to_string().contains("more than"));
    }

    #[test]
    fn a_setting_is_allowed_by_its_name_or_by_its_beginning() {
        let sysctl = vec!["net.ipv4.tcp_*".to_owned(), "net.ipv4.ip_forward".to_owned()];
        let allow = Allow { sysctl, offloads: true, replace_qdisc: false, programs: false };
        assert!(allow.sysctl("net.ipv4.tcp_sack") && allow.sysctl("net.ipv4.ip_forward"));
        assert!(
            !allow.sysctl("net.ipv4.ip_forward_use_pmtu") && !allow.sysctl("net.core.rmem_max")
        );
    }
}
