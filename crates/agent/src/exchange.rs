//! A file shared with whoever asked for the run: the request in, progress and the answer out.
//!
//! | offset | content (little endian) |
//! |---|---|
//! | 0 | 64-bit state: 1 asked, 2 running, 3 answered, 4 failed, 5 refused |
//! | 8 | bytes of the request |
//! | 16 | progress: nanoseconds of the run's own time |
//! | 24 | bytes of the answer, of the failure's text, or of the refusal's three lines: field, value, what would be right |
//! | 4096 | the request, later the answer: a line of JSON, and the raw bytes that it speaks of |

use crate::fault::{Fault, fault};
use crate::sys::Mapping;
use std::fs::OpenOptions;

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

/// The shared file.
pub struct Exchange(Mapping);

impl Exchange {
    /// Opens `FILE`, or the part of it that `FILE:OFFSET:SIZE` names.
    pub fn open(place: &str) -> Result<Self, Fault> {
        let mut words = place.split(':');
        let file = words.next().unwrap_or_default();
        let part: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
        let opened = OpenOptions::new().read(true).write(true).open(file);
        let opened = opened.map_err(|error| Fault::Failed(format!("{file}: {error}")))?;
        let (offset, size) = match part.as_deref() {
            Some([]) => (0, opened.metadata()?.len() as usize),
            Some([offset, size]) => (*offset as i64, *size),
            _ => return fault(format!("exchange={place}: FILE or FILE:OFFSET:SIZE")),
        };
        if size <= BODY {
            return fault(format!("exchange={place}: too small"));
        }
        Ok(Self(Mapping::new(&opened, offset, size)?))
    }

    /// Waits until there is a request.
    pub fn request(&self) -> Result<Vec<u8>, Fault> {
        while self.0.load(STATE) != ASKED {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let size = self.0.load(REQUEST_BYTES) as usize;
        if size > self.0.size() - BODY {
            return fault("the request is larger than the shared file");
        }
        let mut request = vec![0; size];
        self.0.read(BODY, &mut request);
        self.0.store(STATE, RUNNING);
        Ok(request)
    }

    /// Says how far the run has come.
    pub fn progress(&self, now_ns: u64) {
        self.0.store(PROGRESS, now_ns);
    }

    /// Leaves the answer or the fault.
    pub fn answer(&self, outcome: Result<Vec<u8>, Fault>) {
        let room = self.0.size() - BODY;
        let (state, bytes) = match outcome {
            Ok(bytes) if bytes.len() <= room => (ANSWERED, bytes),
            Ok(bytes) => {
                let text =
                    format!("the recording has {} bytes, there is room for {room}", bytes.len());
                (FAILED, text.into_bytes())
            }
            Err(Fault::Failed(text)) => (FAILED, text.into_bytes()),
            Err(Fault::Refused(field, value, expected)) => {
                (REFUSED, [field, value, expected].join("\n").into_bytes())
            }
        };
        self.0.write(BODY, &bytes);
        self.0.store(ANSWER_BYTES, bytes.len() as u64);
        self.0.store(STATE, state);
    }
}
