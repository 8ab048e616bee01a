//! Channel shared with the requester of a run: the request in, progress and the answer out.
//!
//! Through a file that both have mapped:
//!
//! | offset | content (little endian) |
//! |---|---|
//! | 0 | 64-bit state: 1 asked, 2 running, 3 answered, 4 failed, 5 refused |
//! | 8 | bytes of the request |
//! | 16 | progress: nanoseconds of the run's own time |
//! | 24 | bytes of the answer, of the failure's text, or of the refusal's three lines: field, value, what would be right |
//! | 4096 | the request, later the answer: a line of JSON, and the raw bytes that it refers to |
//!
//! Through a pipe, as frames: a byte for the kind, the content's size in 64 bits (little endian), the content.
//!
//! | byte | content |
//! |---|---|
//! | `h` | the agent's first word: JSON with the version of this protocol |
//! | `q` | the request |
//! | `p` | progress, as above, and the bytes of all frames that have arrived for the flows |
//! | `a`, `f`, `r` | the answer, the failure's text, or the refusal's three lines, as above |

use crate::fault::{Fault, fault};
use crate::sys::Mapping;
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};

const STATE: usize = 0;
const REQUEST_BYTES: usize = 8;
const PROGRESS: usize = 16;
const ANSWER_BYTES: usize = 24;
const BODY: usize = 4096;
const ASKED: u64 = 1;
const RUNNING: u64 = 2;
const ANSWERED: u64 = 3;
const FAILED: u64 = 4;
const REFUSED: u64 = 5;

/// The version of the frames.
const PROTOCOL: u32 = 3;
/// The largest request that is read from a pipe.
const REQUEST_BYTES_MAX: u64 = 1 << 28;

/// Transport between the agent and the requester.
pub enum Exchange {
    /// By a file.
    Shared(Mapping),
    /// By two pipes.
    Piped(RefCell<Pipes<io::Stdin, io::Stdout>>),
}

impl Exchange {
    /// Opens `FILE`, the part of it that `FILE:OFFSET:SIZE` names, or with `-` standard input and output.
    pub fn open(place: &str) -> Result<Self, Fault> {
        if place == "-" {
            let mut pipes = Pipes { input: io::stdin(), output: io::stdout() };
            pipes.greet()?;
            return Ok(Self::Piped(RefCell::new(pipes)));
        }
        let mut words = place.split(':');
        let file = words.next().unwrap_or_default();
        let part: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
        let opened = OpenOptions::new().read(true).write(true).open(file);
        let opened = opened.map_err(|error| Fault::Failed(format!("{file}: {error}")))?;
        let (offset, size) = match part.as_deref() {
            Some([]) => (0, opened.metadata()?.len() as usize),
            Some([offset, size]) => (*offset as i64, *size),
            _ => return fault(format!("exchange={place}: FILE, FILE:OFFSET:SIZE or -")),
        };
        if size <= BODY {
            return fault(format!("exchange={place}: too small"));
        }
        Ok(Self::Shared(Mapping::new(&opened, offset, size)?))
    }

    /// Waits until there is a request.
    pub fn request(&self) -> Result<Vec<u8>, Fault> {
        match self {
            Self::Piped(pipes) => pipes.borrow_mut().request(),
            Self::Shared(shared) => {
                while shared.load(STATE) != ASKED {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                let size = shared.load(REQUEST_BYTES) as usize;
                if size > shared.size() - BODY {
                    return fault("the request is larger than the shared file");
                }
                let mut request = vec![0; size];
                shared.read(BODY, &mut request);
                shared.store(STATE, RUNNING);
                Ok(request)
            }
        }
    }

    /// Says how far the run has come, and how many bytes have arrived.
    pub fn progress(&self, now_ns: u64, arrived_bytes: u64) {
        match self {
            Self::Shared(shared) => shared.store(PROGRESS, now_ns),
            Self::Piped(pipes) => {
                // Nobody listens any more: the answer will say so.
                let words = [now_ns.to_le_bytes(), arrived_bytes.to_le_bytes()];
                let _ = pipes.borrow_mut().send(b'p', words.as_flattened());
            }
        }
    }

    /// Leaves the answer or the fault.
    pub fn answer(&self, outcome: Result<Vec<u8>, Fault>) -> Result<(), Fault> {
        let outcome = outcome.and_then(|bytes| match self {
            Self::Shared(shared) if bytes.len() > shared.size() - BODY => {
                let room = shared.size() - BODY;
                fault(format!("the recording has {} bytes, there is room for {room}", bytes.len()))
            }
            Self::Shared(_) | Self::Piped(_) => Ok(bytes),
        });
        let (state, kind, bytes) = match outcome {
            Ok(bytes) => (ANSWERED, b'a', bytes),
            Err(Fault::Failed(text)) => (FAILED, b'f', text.into_bytes()),
            Err(Fault::Refused(field, value, expected)) => {
                (REFUSED, b'r', [field, value, expected].join("\n").into_bytes())
            }
        };
        match self {
            Self::Piped(pipes) => pipes.borrow_mut().send(kind, &bytes),
            Self::Shared(shared) => {
                shared.write(BODY, &bytes);
                shared.store(ANSWER_BYTES, bytes.len() as u64);
                shared.store(STATE, state);
                Ok(())
            }
        }
    }
}

/// Frames over two pipes.
pub struct Pipes<I, O> {
    input: I,
    output: O,
}

impl<I: Read, O: Write> Pipes<I, O> {
    fn greet(&mut self) -> Result<(), Fault> {
        let about = serde_json::json!({"protocol": PROTOCOL, "agent": env!("CARGO_PKG_VERSION")});
        self.send(b'h', about.to_string().as_bytes())
    }

    fn send(&mut self, kind: u8, content: &[u8]) -> Result<(), Fault> {
        let mut head = [0; 9];
        head[0] = kind;
        head[1..].copy_from_slice(&(content.len() as u64).to_le_bytes());
        self.output.write_all(&head)?;
        self.output.write_all(content)?;
        Ok(self.output.flush()?)
    }

    fn request(&mut self) -> Result<Vec<u8>, Fault> {
        let mut head = [0; 9];
        self.input.read_exact(&mut head)?;
        let size = u64::from_le_bytes([
            head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8],
        ]);
        if head[0] != b'q' || size > REQUEST_BYTES_MAX {
            return fault(format!("expected a request of {REQUEST_BYTES_MAX} bytes at most"));
        }
        let mut request = Vec::new();
        (&mut self.input).take(size).read_to_end(&mut request)?;
        if request.len() as u64 != size {
            return fault("the request ends too soon");
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_request(frame: &[u8]) -> Result<Vec<u8>, Fault> {
        Pipes { input: frame, output: Vec::new() }.request()
    }

    fn frame(kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
        [&[kind][..], &size.to_le_bytes(), content].concat()
    }

    #[test]
    fn a_request_is_read_from_a_pipe() {
        assert_eq!(read_request(&frame(b'q', 3, b"abc...")).unwrap(), b"abc");
    }

    #[test]
    fn a_request_that_lies_is_refused_without_taking_memory_for_it() {
        for (wrong, reason) in [
            (frame(b'q', 4, b"abc"), "ends too soon"),
            (frame(b'q', u64::MAX, b"abc"), "at most"),
            (frame(b'x', 3, b"abc"), "expected a request"),
            (b"q\x03".to_vec(), "fill"),
        ] {
            let message = read_request(&wrong).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn an_answer_is_sent_as_a_frame() {
        let mut pipes = Pipes { input: io::empty(), output: Vec::new() };
        pipes.send(b'p', &7_u64.to_le_bytes()).unwrap();
        assert_eq!(pipes.output, frame(b'p', 8, &7_u64.to_le_bytes()));
        pipes.greet().unwrap();
        assert!(String::from_utf8_lossy(&pipes.output).contains(r#""protocol":3"#));
    }
}
