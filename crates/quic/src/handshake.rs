//! A handshake with the course, the form and the lengths of TLS 1.3 (RFC 8446, sections 2 and 4; RFC 9001, section 4), but without
//! an exchange of keys and without certificates.

use crate::secrets::{SECRET_BYTES, Secret};

/// Lengths of messages with an ECDSA certificate chain of two, and 32-byte keys: a ClientHello, the server's messages after its
/// ServerHello, and a Finished.
const CLIENT_HELLO_BYTES: usize = 300;
const SERVER_FLIGHT_BYTES: usize = 2_000;
const FINISHED_BYTES: usize = 36;

/// In front of a message: its type and its length in three bytes.
const HEADER_BYTES: usize = 4;
/// In front of an extension: its type and its length.
const EXTENSION_HEADER_BYTES: usize = 4;

/// Types of messages (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const FINISHED: u8 = 20;

/// Types of extensions: RFC 7685, RFC 8446, RFC 9001, and one without a meaning (RFC 8701), which stands for the certificates.
const PADDING: u16 = 21;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;
const TRANSPORT_PARAMETERS: u16 = 57;
const FILLER: u16 = 0x0a0a;

/// TLS_AES_128_GCM_SHA256.
const CIPHER_SUITE: [u8; 2] = [0x13, 0x01];

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
    /// `random` of the ClientHello: the captures' logs of keys name the connection by it.
    random: Secret,
    /// Encoded transport parameters.
    own: Vec<u8>,
    peer: Option<Vec<u8>>,
    unread: Vec<u8>,
    /// A client has read the ServerHello and has not been given the keys.
    keys_due: bool,
}

impl Handshake {
    pub fn new(is_client: bool, random: Secret, own: Vec<u8>) -> Self {
        Self {
            is_client,
            step: Step::ClientHello,
            random,
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
        while let Some(&[kind, a, b, c]) = self.unread.first_chunk::<HEADER_BYTES>() {
            let len = HEADER_BYTES + u32::from_be_bytes([0, a, b, c]) as usize;
            if self.unread.len() < len {
                return;
            }
            let message: Vec<u8> = self.unread.drain(..len).collect();
            match kind {
                CLIENT_HELLO => {
                    self.peer = parameters(&message[HEADER_BYTES..], true);
                    self.step = Step::ServerHello;
                }
                SERVER_HELLO => {
                    self.keys_due = true;
                    self.step = Step::ServerFlight;
                }
                ENCRYPTED_EXTENSIONS => self.peer = parameters(&message[HEADER_BYTES..], false),
                FINISHED if self.is_client => self.step = Step::Finished,
                _ => self.step = Step::Done,
            }
        }
    }

    /// Writes the next message that is this end's turn; the keys with which the next ones are sent.
    pub fn write(&mut self, buffer: &mut Vec<u8>) -> Option<Level> {
        match (self.is_client, self.step) {
            (true, Step::ClientHello) => {
                self.client_hello(buffer);
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
                finished(buffer);
                self.step = Step::Done;
                Some(Level::OneRtt)
            }
            (false, Step::ServerHello) => {
                self.server_hello(buffer);
                self.step = Step::ServerFlight;
                Some(Level::Handshake)
            }
            (false, Step::ServerFlight) => {
                self.server_flight(buffer);
                self.step = Step::Finished;
                Some(Level::OneRtt)
            }
            (true, Step::ServerHello | Step::ServerFlight | Step::Done)
            | (false, Step::ClientHello | Step::Finished | Step::Done) => None,
        }
    }

    fn client_hello(&self, buffer: &mut Vec<u8>) {
        let mut body = vec![0x03, 0x03];
        body.extend_from_slice(&self.random);
        body.extend_from_slice(&[0, 0, 2, CIPHER_SUITE[0], CIPHER_SUITE[1], 1, 0]);
        let mut extensions = Vec::new();
        extension(&mut extensions, SUPPORTED_VERSIONS, &[2, 0x03, 0x04]);
        extension(&mut extensions, TRANSPORT_PARAMETERS, &self.own);
        fill(&mut extensions, PADDING, CLIENT_HELLO_BYTES - HEADER_BYTES - body.len() - 2);
        add_extensions(&mut body, &extensions);
        message(buffer, CLIENT_HELLO, &body);
    }

    fn server_hello(&self, buffer: &mut Vec<u8>) {
        let mut body = vec![0x03, 0x03];
        body.extend_from_slice(&self.random.map(|byte| !byte));
        body.extend_from_slice(&[0, CIPHER_SUITE[0], CIPHER_SUITE[1], 0]);
        let mut extensions = Vec::new();
        extension(&mut extensions, SUPPORTED_VERSIONS, &[0x03, 0x04]);
        let x25519 = [0x00, 0x1d, 0x00, 0x20];
        extension(&mut extensions, KEY_SHARE, &[&x25519[..], &self.random].concat());
        add_extensions(&mut body, &extensions);
        message(buffer, SERVER_HELLO, &body);
    }

    fn server_flight(&self, buffer: &mut Vec<u8>) {
        let mut extensions = Vec::new();
        extension(&mut extensions, TRANSPORT_PARAMETERS, &self.own);
        fill(&mut extensions, FILLER, SERVER_FLIGHT_BYTES - FINISHED_BYTES - HEADER_BYTES - 2);
        let mut body = Vec::new();
        add_extensions(&mut body, &extensions);
        message(buffer, ENCRYPTED_EXTENSIONS, &body);
        finished(buffer);
    }
}

fn message(buffer: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let [_, a, b, c] = (body.len() as u32).to_be_bytes();
    buffer.extend_from_slice(&[kind, a, b, c]);
    buffer.extend_from_slice(body);
}

fn finished(buffer: &mut Vec<u8>) {
    message(buffer, FINISHED, &[0; FINISHED_BYTES - HEADER_BYTES]);
}

fn extension(extensions: &mut Vec<u8>, kind: u16, body: &[u8]) {
    extensions.extend_from_slice(&kind.to_be_bytes());
    extensions.extend_from_slice(&(body.len() as u16).to_be_bytes());
    extensions.extend_from_slice(body);
}

/// Makes the extensions as long as this with one of zeros, where they are shorter.
fn fill(extensions: &mut Vec<u8>, kind: u16, bytes: usize) {
    if let Some(spare) = bytes.checked_sub(extensions.len() + EXTENSION_HEADER_BYTES) {
        extension(extensions, kind, &vec![0; spare]);
    }
}

fn add_extensions(body: &mut Vec<u8>, extensions: &[u8]) {
    body.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
    body.extend_from_slice(extensions);
}

/// The transport parameters in the body of a ClientHello or of EncryptedExtensions.
fn parameters(body: &[u8], is_hello: bool) -> Option<Vec<u8>> {
    let mut rest = body;
    if is_hello {
        // Version, random, session ID, cipher suites, compression methods (RFC 8446, section 4.1.2).
        rest = rest.get(2 + SECRET_BYTES..)?;
        (_, rest) = vector(rest, 1)?;
        (_, rest) = vector(rest, 2)?;
        (_, rest) = vector(rest, 1)?;
    }
    (rest, _) = vector(rest, 2)?;
    while let [a, b, behind @ ..] = rest {
        let content;
        (content, rest) = vector(behind, 2)?;
        if u16::from_be_bytes([*a, *b]) == TRANSPORT_PARAMETERS {
            return Some(content.to_vec());
        }
    }
    None
}

/// Splits bytes behind their count, which has this many bytes.
fn vector(bytes: &[u8], count_bytes: usize) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_at_checked(count_bytes)?;
    rest.split_at_checked(count.iter().fold(0, |count, byte| count << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_finish_with_the_peers_parameters_and_keys_of_both_levels() {
        let mut client = Handshake::new(true, [7; SECRET_BYTES], vec![1, 2, 3]);
        let mut server = Handshake::new(false, [7; SECRET_BYTES], vec![4, 5]);
        let mut keys = [Vec::new(), Vec::new()];
        let mut lengths = [0, 0];
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
                    lengths[held] += buffer.len();
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
        assert_eq!(lengths, [CLIENT_HELLO_BYTES + FINISHED_BYTES, 90 + SERVER_FLIGHT_BYTES]);
        assert_eq!(keys, [[Level::Handshake, Level::OneRtt], [Level::Handshake, Level::OneRtt]]);
    }
}
