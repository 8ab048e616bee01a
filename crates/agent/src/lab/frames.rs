//! Frames on a pair of pipes, as exchange.rs has them, between a conductor and a lab's host:
//!
//! | byte | content |
//! |---|---|
//! | `h` | the host's first word: JSON with the version of this protocol |
//! | `q` | a question ([`Ask`](super::messages::Ask)) as JSON; raw bytes after a line feed |
//! | `a`, `f`, `r` | its answer (JSON, raw bytes likewise), or the reason for its absence, as in exchange.rs |
//! | `b` | a heartbeat, each second in both directions |
//! | `o`, `n`, `p` | in a run: an order to the sides, a notice of theirs, progress in nanoseconds |

use crate::fault::{Fault, fault};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};

/// The version of this protocol.
pub const PROTOCOL: u32 = 1;
/// The largest frame, which is a run's tables or the programs for a kernel.
const BYTES_MAX: u64 = 1 << 28;
/// The largest of any other kind.
const SMALL_MAX: u64 = 1 << 20;
/// Interval between the heartbeats that each end sends.
pub const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(1);

/// A frame's kind and content.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub content: Vec<u8>,
}

impl Frame {
    /// Waits for the next one; nothing where the other end has closed.
    pub fn read(from: &mut impl Read) -> Result<Option<Self>, Fault> {
        let mut head = [0; 9];
        if from.read(&mut head[..1])? == 0 {
            return Ok(None);
        }
        from.read_exact(&mut head[1..])?;
        let kind = head[0];
        let size = u64::from_le_bytes([
            head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8],
        ]);
        let most = match kind {
            b'a' | b'q' => BYTES_MAX,
            b'h' | b'f' | b'r' | b'b' | b'o' | b'n' | b'p' => SMALL_MAX,
            _ => return fault(format!("a frame of unknown kind {kind:#04x}")),
        };
        if size > most {
            return fault(format!("a frame of {size} bytes, at most {most}"));
        }
        // Memory for what comes, not for what is promised.
        let mut content = Vec::new();
        from.take(size).read_to_end(&mut content)?;
        if content.len() as u64 != size {
            return fault("a frame ends too soon");
        }
        Ok(Some(Self { kind, content }))
    }

    /// The line of JSON in it, and the raw bytes after it.
    pub fn parsed<T: DeserializeOwned>(&self) -> Result<(T, &[u8]), Fault> {
        let end = self.content.iter().position(|byte| *byte == b'\n');
        let (line, raw) = self.content.split_at(end.unwrap_or(self.content.len()));
        let value = serde_json::from_slice(line);
        let value = value.map_err(|error| Fault::Failed(format!("not understood: {error}")))?;
        Ok((value, raw.get(1..).unwrap_or_default()))
    }

    /// Decodes an answer: JSON and raw bytes, or the other end's fault.
    pub fn outcome<T: DeserializeOwned>(&self) -> Result<(T, &[u8]), Fault> {
        let text = || String::from_utf8_lossy(&self.content).into_owned();
        match self.kind {
            b'a' => self.parsed(),
            b'r' => {
                let text = text();
                let mut lines = text.splitn(3, '\n').map(str::to_owned);
                let mut next = || lines.next().unwrap_or_default();
                Err(Fault::Refused(next(), next(), next()))
            }
            b'f' => Err(Fault::Failed(text())),
            kind => fault(format!("an answer of kind {:?}", char::from(kind))),
        }
    }
}

/// Writes a frame: a line of JSON, followed by raw bytes if there are any.
pub fn write(
    to: &mut impl Write,
    kind: u8,
    value: &impl Serialize,
    raw: &[u8],
) -> Result<(), Fault> {
    let mut content = serde_json::to_vec(value).unwrap_or_default();
    if !raw.is_empty() {
        content.push(b'\n');
        content.extend_from_slice(raw);
    }
    write_bytes(to, kind, &content)
}

/// Writes a frame of plain bytes.
pub fn write_bytes(to: &mut impl Write, kind: u8, content: &[u8]) -> Result<(), Fault> {
    to.write_all(&[kind])?;
    to.write_all(&(content.len() as u64).to_le_bytes())?;
    to.write_all(content)?;
    to.flush()?;
    Ok(())
}

/// Writes an answer, or why there is none.
pub fn answer(to: &mut impl Write, outcome: Result<Vec<u8>, Fault>) -> Result<(), Fault> {
    match outcome {
        Ok(content) => write_bytes(to, b'a', &content),
        Err(Fault::Failed(text)) => write_bytes(to, b'f', text.as_bytes()),
        Err(Fault::Refused(field, value, expected)) => {
            write_bytes(to, b'r', [field, value, expected].join("\n").as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Frame>, Fault> {
        Frame::read(&mut &bytes[..])
    }

    #[test]
    fn a_frame_is_read_back() {
        let mut bytes = Vec::new();
        write(&mut bytes, b'q', &[1, 2], b"raw\nbytes").unwrap();
        let frame = read(&bytes).unwrap().unwrap();
        assert_eq!(frame.parsed::<Vec<u8>>().unwrap(), (vec![1, 2], &b"raw\nbytes"[..]));
        assert!(read(&[]).unwrap().is_none());
    }

    #[test]
    fn a_frame_that_lies_is_refused_without_taking_memory_for_it() {
        let frame = |kind: u8, size: u64| [&[kind][..], &size.to_le_bytes(), b"abc"].concat();
        for (bytes, reason) in [
            (frame(b'a', 4), "ends too soon"),
            (frame(b'a', u64::MAX), "at most"),
            (frame(b'n', 1 << 21), "at most"),
            (frame(b'z', 3), "unknown kind"),
            (b"a\x03".to_vec(), "fill"),
        ] {
            let message = read(&bytes).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_three_parts() {
        let mut bytes = Vec::new();
        let refused = Fault::Refused("eth1".into(), "x".into(), "y\nz".into());
        answer(&mut bytes, Err(refused)).unwrap();
        let error = read(&bytes).unwrap().unwrap().outcome::<u8>().unwrap_err();
        assert_eq!(error.to_string(), "eth1: got x, expected y\nz");
    }
}
