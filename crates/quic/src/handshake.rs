//! A handshake with the course and the lengths of TLS 1.3 (RFC 8446, section 2; RFC 9001, section 4), but without secrets.

/// Lengths of messages with an ECDSA certificate chain of two, and 32-byte keys: a ClientHello, a ServerHello, the server's other
/// messages, and a Finished.
const CLIENT_HELLO_BYTES: usize = 300;
const SERVER_HELLO_BYTES: usize = 90;
const SERVER_FLIGHT_BYTES: usize = 2_000;
const FINISHED_BYTES: usize = 36;

/// In front of a message: its length, and that of the transport parameters it begins with.
const HEADER_BYTES: usize = 4;

/// Keys that a step has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Handshake,
    OneRtt,
}

/// Next message to be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    ClientHello,
    ServerHello,
    ServerFlight,
    Finished,
    Done,
}

/// One end's handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    is_client: bool,
    step: Step,
    /// Encoded transport parameters.
    own: Vec<u8>,
    peer: Option<Vec<u8>>,
    unread: Vec<u8>,
    /// A client has read the ServerHello and has not been given the keys.
    keys_due: bool,
}

impl Handshake {
    pub fn new(is_client: bool, own: Vec<u8>) -> Self {
        Self {
            is_client,
            step: Step::ClientHello,
            own,
            peer: None,
            unread: Vec::new(),
            keys_due: false,
        }
    }

    /// Replaces this end's encoded transport parameters.
    pub fn set_own(&mut self, parameters: Vec<u8>) {
        self.own = parameters;
    }

    pub fn is_client(&self) -> bool {
        self.is_client
    }

    pub fn is_done(&self) -> bool {
        self.step == Step::Done
    }

    /// The peer's transport parameters.
    pub fn peer(&self) -> Option<&[u8]> {
        self.peer.as_deref()
    }

    /// Takes a part of the peer's messages.
    pub fn read(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        while let Some((len, parameters)) = self.header() {
            if self.unread.len() < len {
                return;
            }
            let message: Vec<u8> = self.unread.drain(..len).collect();
            if parameters > 0 {
                self.peer = Some(message[HEADER_BYTES..HEADER_BYTES + parameters].to_vec());
            }
            self.step = match self.step {
                Step::ClientHello => Step::ServerHello,
                Step::ServerHello => {
                    self.keys_due = true;
                    Step::ServerFlight
                }
                Step::ServerFlight => Step::Finished,
                Step::Finished | Step::Done => Step::Done,
            };
        }
    }

    fn header(&self) -> Option<(usize, usize)> {
        let &[a, b, c, d] = self.unread.first_chunk::<HEADER_BYTES>()?;
        Some((usize::from(u16::from_be_bytes([a, b])), usize::from(u16::from_be_bytes([c, d]))))
    }

    /// Writes the next message that is this end's turn; the keys with which the next ones are sent.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Option<Level> {
        match (self.is_client, self.step) {
            (true, Step::ClientHello) => {
                self.message(buffer, CLIENT_HELLO_BYTES, true);
                self.step = Step::ServerHello;
                None
            }
            (true, Step::ServerFlight) if self.keys_due => {
                self.keys_due = false;
                Some(Level::Handshake)
            }
            (true, Step::Finished) if self.keys_due => {
                self.keys_due = false;
                Some(Level::Handshake)
            }
            (true, Step::Finished) => {
                self.message(buffer, FINISHED_BYTES, false);
                self.step = Step::Done;
                Some(Level::OneRtt)
            }
            (false, Step::ServerHello) => {
                self.message(buffer, SERVER_HELLO_BYTES, false);
                self.step = Step::ServerFlight;
                Some(Level::Handshake)
            }
            (false, Step::ServerFlight) => {
                self.message(buffer, SERVER_FLIGHT_BYTES, true);
                self.step = Step::Finished;
                Some(Level::OneRtt)
            }
            (true, Step::ServerHello | Step::ServerFlight | Step::Done)
            | (false, Step::ClientHello | Step::Finished | Step::Done) => None,
        }
    }

    fn message(&self, buffer: &mut Vec<u8>, least: usize, with_parameters: bool) {
        let parameters: &[u8] = if with_parameters { &self.own } else { &[] };
        let len = least.max(HEADER_BYTES + parameters.len());
        let start = buffer.len();
        buffer.extend_from_slice(&(len as u16).to_be_bytes());
        buffer.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        buffer.extend_from_slice(parameters);
        buffer.resize(start + len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_finish_with_the_peers_parameters_and_keys_of_both_levels() {
        let mut client = Handshake::new(true, vec![1, 2, 3]);
        let mut server = Handshake::new(false, vec![4, 5]);
        let mut keys = [Vec::new(), Vec::new()];
        for _ in 0..4 {
            for (writes_as_client, held) in [(true, 0), (false, 1)] {
                let (from, to) = if writes_as_client {
                    (&mut client, &mut server)
                } else {
                    (&mut server, &mut client)
                };
                loop {
                    let mut buffer = Vec::new();
                    let level = from.write(&mut buffer);
                    keys[held].extend(level);
                    for byte in &buffer {
                        to.read(&[*byte]);
                    }
                    if level.is_none() && buffer.is_empty() {
                        break;
                    }
                }
            }
        }
        assert!(client.is_done() && server.is_done());
        assert_eq!((client.peer(), server.peer()), (Some(&[4, 5][..]), Some(&[1, 2, 3][..])));
        assert_eq!(keys, [[Level::Handshake, Level::OneRtt], [Level::Handshake, Level::OneRtt]]);
    }
}
