//! The line between a host's agent and its conductor: frames both ways, and what happens when it falls silent.

use super::frames::{self, Frame, HEARTBEAT, PROTOCOL};
use crate::fault::Fault;
use crate::sys;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read, Stdout, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Line that ends the login shell's output; the agent's frames follow.
pub const MAGIC: &str = "\ndragstrip-agent speaks\n";
/// A conductor that is silent for so long has gone, unless it said otherwise.
static HOLD_MS: AtomicU64 = AtomicU64::new(10_000);

/// A conductor may be silent for so long from now on.
pub fn hold(hold_ms: u64) {
    HOLD_MS.store(hold_ms, Ordering::Relaxed);
}

/// The line to the conductor.
pub struct Line {
    output: Arc<Mutex<Stdout>>,
    frames: Receiver<Frame>,
    /// Readable when a frame has come.
    pub wake: UnixStream,
}

impl Line {
    /// Locks the output for one frame at a time.
    pub fn output(&self) -> MutexGuard<'_, Stdout> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a frame of JSON.
    pub fn send(&self, kind: u8, value: &impl Serialize) -> Result<(), Fault> {
        frames::write(&mut *self.output(), kind, value, &[])
    }

    /// Writes an answer, or why there is none.
    pub fn answer(&self, outcome: Result<Vec<u8>, Fault>) -> Result<(), Fault> {
        frames::answer(&mut *self.output(), outcome)
    }

    /// Waits for the next frame.
    pub fn next(&mut self) -> Option<Frame> {
        self.frames.recv().ok()
    }

    /// The next frame, if there is one.
    pub fn next_now(&mut self) -> Option<Frame> {
        self.frames.try_recv().ok()
    }

    /// Greets, and listens from now on.
    pub fn open() -> Result<Self, Fault> {
        let output = Arc::new(Mutex::new(io::stdout()));
        let (mut waker, wake) = UnixStream::pair()?;
        for end in [&waker, &wake] {
            end.set_nonblocking(true)?;
        }
        let (sender, frames) = channel();
        let line = Self { output: output.clone(), frames, wake };
        line.output().write_all(MAGIC.as_bytes())?;
        line.send(b'h', &json!({"protocol": PROTOCOL, "agent": own_hash()?}))?;
        std::thread::spawn(move || {
            listen(&sender, &mut waker);
            // Whatever was changed is undone by the guardian, which sees this process go.
            std::process::exit(0);
        });
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(HEARTBEAT);
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                if frames::write_bytes(&mut *output, b'b', &[]).is_err() {
                    return;
                }
            }
        });
        Ok(line)
    }
}

/// Hands on what comes until the conductor has closed, has been silent for too long, or is not understood.
fn listen(sender: &Sender<Frame>, waker: &mut UnixStream) {
    let mut input = Patient(io::stdin());
    while let Ok(Some(frame)) = Frame::read(&mut input) {
        if frame.kind == b'b' {
            continue;
        }
        if sender.send(frame).is_err() {
            return;
        }
        let _ = waker.write(&[1]); // full of earlier ones: it is awake
    }
}

/// Standard input, whose silence is its end.
struct Patient(io::Stdin);

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let hold_ms = i32::try_from(HOLD_MS.load(Ordering::Relaxed)).unwrap_or(i32::MAX);
        if !sys::is_readable_within(&self.0, hold_ms) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sys::read(&self.0, into)
    }
}

/// SHA-256 of the running program.
pub fn own_hash() -> Result<String, Fault> {
    let digest = Sha256::digest(fs::read("/proc/self/exe")?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
