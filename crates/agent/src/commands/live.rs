//! The programs while they run: their processes, and what they print, within limits.

use crate::event_loop::Elsewhere;
use crate::fault::{Fault, refusal};
use crate::network;
use crate::side::{Notice, Order};
use crate::sys::{self, Poll, process};
use process::{Place, Start};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// Bytes that a stream may have: they are kept in the machine's memory.
const STREAM_BYTES_MAX: usize = 16 << 20;
/// Bytes that are read at once.
const PIECE: usize = 1 << 16;
/// Characters of a program's last line in a refusal.
const LINE_MAX: usize = 200;

/// A stream of the programs' output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The command's standard output.
    Out,
    /// The command's standard error.
    Errors,
    /// Both of the server.
    Server,
}

impl Stream {
    const ALL: [Self; 3] = [Self::Out, Self::Errors, Self::Server];

    /// Its name in an answer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Out => "standard output",
            Self::Errors => "standard error",
            Self::Server => "the server's output",
        }
    }
}

/// Reason for which the command's time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Ended,
    TimedOut,
    /// A stream has more bytes than it may have.
    Flooded(Stream),
}

/// Machine or namespace in which programs live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A machine that is thrown away: all its processes but this one are theirs.
    Machine,
    /// A process namespace of this machine.
    Namespace {
        /// Its first process, with which all of it ends.
        first: i32,
        /// User and group of the programs, where this process is root in a user namespace alone.
        user: Option<(u32, u32)>,
    },
}

impl Home {
    /// Ends all programs.
    pub fn end(self) -> Result<(), Fault> {
        match self {
            Self::Machine => {
                process::kill_all();
                while process::next_end().is_some() {}
            }
            Self::Namespace { first, .. } => {
                process::kill(first);
                sys::reap_until(first)?;
            }
        }
        Ok(())
    }
}

/// Results of the programs.
pub struct Outcome {
    pub end: End,
    /// Status of the command, as a shell has it, if it ended by itself.
    pub status: Option<i32>,
    /// Status of the server, if it ended before the command.
    pub server_status: Option<i32>,
    pub streams: Vec<(Stream, Vec<u8>)>,
}

struct Process {
    number: i32,
    /// Readable once it has ended.
    end: OwnedFd,
    status: Option<i32>,
}

#[derive(Default)]
struct Printed {
    bytes: Vec<u8>,
    /// Open until the last process has closed its end.
    from: Option<File>,
}

/// The programs.
pub struct Live<'p> {
    home: Home,
    poll: Poll,
    environment: BTreeMap<String, String>,
    folder: String,
    server: Option<Process>,
    command: Option<Process>,
    printed: BTreeMap<Stream, Printed>,
    flooded: Option<Stream>,
    buffer: Vec<u8>,
    progress: &'p dyn Fn(u64, u64),
    /// Steps of the time before the command, which has no time of the run.
    steps: u64,
}

const SERVER: u64 = 10;
const COMMAND: u64 = 11;

impl<'p> Live<'p> {
    /// No program yet.
    pub fn new(
        home: Home,
        environment: BTreeMap<String, String>,
        folder: &str,
        progress: &'p dyn Fn(u64, u64),
    ) -> Result<Self, Fault> {
        Ok(Self {
            home,
            poll: Poll::new()?,
            environment,
            folder: folder.to_owned(),
            server: None,
            command: None,
            printed: BTreeMap::new(),
            flooded: None,
            buffer: vec![0; PIECE],
            progress,
            steps: 0,
        })
    }

    /// Readable when a program has printed something or has ended.
    pub const fn poll(&self) -> &Poll {
        &self.poll
    }

    /// Reports a step before the command: on a busy machine they are far apart, and silence is taken for a hang.
    pub fn step(&mut self) {
        self.steps += 1;
        (self.progress)(self.steps, 0);
    }

    /// Starts the command, which has an input, or the server.
    pub fn start(
        &mut self,
        field: &str,
        words: &[String],
        space: &File,
        input: Option<&[u8]>,
    ) -> Result<(), Fault> {
        let [program, arguments @ ..] = words else { return refusal(field, "", "a command") };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(&self.environment).current_dir(&self.folder);
        let is_command = input.is_some();
        match input {
            Some(bytes) if !bytes.is_empty() => {
                let mut file = sys::memory_file("input")?;
                file.write_all(bytes)?;
                file.rewind()?;
                command.stdin(Stdio::from(process::private(file)));
            }
            _ => {
                command.stdin(Stdio::null());
            }
        }
        let [out, errors] =
            if is_command { [Stream::Out, Stream::Errors] } else { [Stream::Server; 2] };
        let to = self.open(out)?;
        command.stderr(if errors == out { to.try_clone()? } else { self.open(errors)? });
        command.stdout(to);
        let (user, confined) = match self.home {
            Home::Machine => (None, true),
            Home::Namespace { user, .. } => (user, false),
        };
        let start = Start { space, user, place: Place::Background, confined };
        let number = process::start(&mut command, &start, field)?;
        drop(command); // with its ends of the pipes
        let end = process::end_of(number)?;
        let token = if is_command { COMMAND } else { SERVER };
        self.poll.add(&end, libc::EPOLLIN, token)?;
        let process = Some(Process { number, end, status: None });
        *(if is_command { &mut self.command } else { &mut self.server }) = process;
        Ok(())
    }

    /// A new pipe for a stream: the end to write to.
    fn open(&mut self, stream: Stream) -> Result<OwnedFd, Fault> {
        let (from, to) = process::pipe()?;
        process::set_nonblocking(&from)?;
        self.poll.add(&from, libc::EPOLLIN, stream as u64)?;
        self.printed.entry(stream).or_default().from = Some(from.into());
        Ok(to)
    }

    /// Takes what has been printed, and sees who has ended, after at most `timeout_ms`.
    pub fn look(&mut self, timeout_ms: i32) -> Result<(), Fault> {
        let mut ready = Vec::new();
        self.poll.wait(&mut ready, timeout_ms)?;
        for (token, _) in ready {
            match token {
                SERVER | COMMAND => {
                    let place = if token == SERVER { &mut self.server } else { &mut self.command };
                    if let Some(process) = place
                        && process.status.is_none()
                    {
                        process.status = process::has_ended(process.number);
                        if process.status.is_some() {
                            self.poll.remove(&process.end)?;
                        }
                    }
                }
                _ => {
                    if let Some(&stream) = Stream::ALL.get(token as usize) {
                        self.take(stream);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes what a stream has, as far as it has room.
    fn take(&mut self, stream: Stream) {
        let Some(Printed { bytes, from }) = self.printed.get_mut(&stream) else { return };
        while let Some(file) = from {
            match file.read(&mut self.buffer) {
                Ok(0) => *from = None,
                Ok(length) if bytes.len() + length > STREAM_BYTES_MAX => {
                    let room = STREAM_BYTES_MAX - bytes.len();
                    bytes.extend_from_slice(&self.buffer[..room]);
                    self.flooded = self.flooded.or(Some(stream));
                    *from = None;
                }
                Ok(length) => bytes.extend_from_slice(&self.buffer[..length]),
                Err(_) => return,
            }
        }
    }

    /// Starts a server, and waits until it listens.
    pub fn serve(&mut self, field: &str, words: &[String], space: &File) -> Result<(), Fault> {
        let listen_until = sys::now() + network::LISTEN_WAIT.as_nanos() as i64;
        self.start(field, words, space, None)?;
        while !network::within(space, network::has_listener)? {
            self.look(network::LISTEN_STEP.as_millis() as i32)?;
            self.step();
            let ended = self.server_status();
            if ended.is_some() || sys::now() > listen_until {
                let last = self.last_line(Stream::Server);
                return network::no_listener(field, &words[0], ended, network::LISTEN_WAIT, &last);
            }
        }
        Ok(())
    }

    /// Ends the command with its group.
    pub fn end_command(&self) {
        end_group(self.command.as_ref());
    }

    /// Ends the server with its group.
    pub fn end_server(&self) {
        end_group(self.server.as_ref());
    }

    /// Status of the command, if it has ended.
    pub fn command_status(&self) -> Option<i32> {
        self.command.as_ref().and_then(|process| process.status)
    }

    /// Status of the server, if it has ended.
    pub fn server_status(&self) -> Option<i32> {
        self.server.as_ref().and_then(|process| process.status)
    }

    /// The last line of a stream, for a refusal.
    pub fn last_line(&self, stream: Stream) -> String {
        let bytes = self.printed.get(&stream).map(|printed| printed.bytes.as_slice());
        let text = String::from_utf8_lossy(bytes.unwrap_or_default());
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        let line: String = line.chars().take(LINE_MAX).collect();
        if line.is_empty() { line } else { format!(", its last line: {}", line.trim()) }
    }

    /// Returns the outcome of the programs, all of which have been ended meanwhile, with their remaining output.
    pub fn outcome(mut self) -> Outcome {
        let status = self.command_status();
        let server_status = self.server_status();
        for stream in Stream::ALL {
            self.take(stream);
        }
        let end = match (self.flooded, status) {
            (Some(stream), _) => End::Flooded(stream),
            (None, Some(_)) => End::Ended,
            (None, None) => End::TimedOut,
        };
        let streams = self.printed.into_iter().map(|(stream, printed)| (stream, printed.bytes));
        Outcome { end, status, server_status, streams: streams.collect() }
    }
}

/// Ends a process that has not ended yet, with its group.
fn end_group(process: Option<&Process>) {
    if let Some(process) = process.filter(|process| process.status.is_none()) {
        process::kill(-process.number);
    }
}

impl Elsewhere for Live<'_> {
    fn tell(&mut self, _notice: Notice) -> Result<(), Fault> {
        Ok(())
    }

    fn orders(&mut self) -> Result<Vec<Order>, Fault> {
        self.look(0)?;
        Ok(Vec::new())
    }

    fn progress(&mut self, now_ns: u64, arrived_bytes: u64) {
        (self.progress)(now_ns, arrived_bytes);
    }

    fn ended(&self) -> bool {
        self.flooded.is_some() || self.command_status().is_some()
    }
}
