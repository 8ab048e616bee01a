//! A flow whose data are answers: what its client asks for and when, and what its server answers.
//!
//! A request for a segment begins with the segment's size, eight bytes in network order; zeros follow. So a server on
//! another machine than the player's knows what to send. In request/response all answers are alike.

use crate::sys;
use dragstrip_player::Player;
use dragstrip_recording::Writer;
use dragstrip_scenario::Application;
use std::os::fd::OwnedFd;

const SIZE_BYTES: usize = size_of::<u64>();
/// Bytes per recv(2).
const READ: usize = 128 << 10;

/// Takes all that a socket has, and answers with how much that was.
pub fn discard(socket: &OwnedFd) -> u64 {
    let mut bytes = 0;
    while let Some(chunk) = sys::discard(socket, READ) {
        bytes += chunk as u64;
        if chunk < READ {
            break;
        }
    }
    bytes
}

/// Requests and answers at one end of a flow.
pub struct Asking {
    flow: u32,
    request_bytes: u64,
    answers: Answers,
    /// Requests that the client has sent.
    rounds: u64,
    /// Bytes that the last request asks for.
    size: u64,
    awaited_bytes: u64,
    /// At the server: bytes of requests received, the first bytes of the current one, and the bytes that all of them
    /// ask for.
    come_bytes: u64,
    words: [u8; SIZE_BYTES],
    answered_bytes: u64,
}

enum Answers {
    Alike { response_bytes: u64, think_ns: u64 },
    Video(Box<Player>),
}

impl Asking {
    pub fn new(flow: usize, application: &Application) -> Option<Self> {
        let (request_bytes, answers) = match *application {
            Application::RequestResponse { request_bytes, response_bytes, think_ns } => {
                (request_bytes, Answers::Alike { response_bytes, think_ns })
            }
            Application::Video { request_bytes, .. } => {
                (request_bytes, Answers::Video(Box::new(Player::new(application)?)))
            }
            Application::Bulk { .. }
            | Application::OnOff { .. }
            | Application::ConstantRate { .. }
            | Application::Rtp { .. }
            | Application::Tunnel { .. }
            | Application::Program { .. } => return None,
        };
        Some(Self {
            flow: flow as u32,
            request_bytes: request_bytes.max(1),
            answers,
            rounds: 0,
            size: 0,
            awaited_bytes: 0,
            come_bytes: 0,
            words: [0; SIZE_BYTES],
            answered_bytes: 0,
        })
    }

    /// The client asks once more; answers with the bytes of all its requests.
    pub fn ask(&mut self, now_ns: i64) -> u64 {
        self.size = match &mut self.answers {
            Answers::Alike { response_bytes, .. } => *response_bytes,
            Answers::Video(player) => player.ask(now_ns.max(0) as u64),
        };
        self.rounds += 1;
        self.awaited_bytes += self.size;
        self.rounds * self.request_bytes
    }

    /// The next bytes to write of a request with `left` unwritten bytes, if it carries a size field; none: zeros.
    ///
    /// The field and its zeros are written together: after a small write, Nagle's algorithm would hold the rest until
    /// that is acknowledged.
    pub fn words(&self, unwritten: u64) -> Option<Vec<u8>> {
        let written_bytes = self.request_bytes.checked_sub(unwritten)? as usize;
        let has_words = matches!(self.answers, Answers::Video(_)) && written_bytes < SIZE_BYTES;
        has_words.then(|| {
            let mut data = self.size.to_be_bytes()[written_bytes..].to_vec();
            data.resize((unwritten as usize).min(READ), 0);
            data
        })
    }

    /// Bytes that the client has received once all its requests are answered.
    pub const fn awaited_bytes(&self) -> u64 {
        self.awaited_bytes
    }

    /// The client has its answer; when it asks again.
    pub fn answered(&mut self, now_ns: i64, tables: &mut Writer) -> i64 {
        match &mut self.answers {
            Answers::Alike { think_ns, .. } => now_ns + *think_ns as i64,
            Answers::Video(player) => {
                let (row, next) = player.arrived(now_ns.max(0) as u64, self.flow);
                tables.video.push(row);
                next as i64
            }
        }
    }

    /// The server takes what has come, and its bytes.
    pub fn answer(&mut self, socket: &OwnedFd) -> u64 {
        let before = self.come_bytes;
        if let Answers::Alike { response_bytes, .. } = self.answers {
            self.come_bytes += discard(socket);
            self.answered_bytes = self.come_bytes / self.request_bytes * response_bytes;
        } else {
            let mut room = [0; 4096];
            while let Some(received) =
                sys::read(socket, &mut room).ok().filter(|received| *received > 0)
            {
                self.take(&room[..received]);
            }
        }
        self.come_bytes - before
    }

    /// Some bytes of requests for segments.
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let at = self.come_bytes % self.request_bytes;
            if let Some(word) = self.words.get_mut(at as usize) {
                *word = *byte;
            }
            self.come_bytes += 1;
            if at + 1 == self.request_bytes {
                self.answered_bytes += u64::from_be_bytes(self.words);
            }
        }
    }

    /// Bytes that the server has been asked for so far.
    pub const fn answered_bytes(&self) -> u64 {
        self.answered_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dragstrip_scenario::Adaptation;

    fn video(request_bytes: u64) -> Asking {
        let application = Application::Video {
            ladder_bps: vec![1_000_000],
            segment_ns: 2_000_000_000,
            buffer_ns: 6_000_000_000,
            startup_ns: 2_000_000_000,
            adaptation: Adaptation::Buffer,
            reservoir_ns: 2_000_000_000,
            cushion_ns: 2_000_000_000,
            safety: 1.0,
            request_bytes,
        };
        Asking::new(0, &application).expect("it asks")
    }

    /// The server sends the bytes that the player asks for, however its requests are split into writes and reads.
    #[test]
    fn a_server_reads_from_a_request_how_much_is_wanted() {
        for request_bytes in [8, 11, 500] {
            for piece in [1, 3, 700] {
                let (mut client, mut server) = (video(request_bytes), video(request_bytes));
                let mut written_bytes = 0;
                for round in 1..4 {
                    let all = client.ask(round);
                    while written_bytes < all {
                        let remaining = all - written_bytes;
                        let words = client.words(remaining);
                        let data = words.unwrap_or_else(|| vec![0; remaining as usize]);
                        let data = &data[..data.len().min(piece)];
                        server.take(data);
                        written_bytes += data.len() as u64;
                    }
                    assert_eq!(server.answered_bytes(), client.awaited_bytes());
                    assert_eq!(client.awaited_bytes(), round as u64 * 250_000);
                }
            }
        }
    }

    #[test]
    fn answers_that_are_alike_need_no_words() {
        let application =
            Application::RequestResponse { request_bytes: 3, response_bytes: 10, think_ns: 5 };
        let mut client = Asking::new(0, &application).expect("it asks");
        assert_eq!((client.ask(0), client.words(3), client.awaited_bytes()), (3, None, 10));
        assert_eq!(client.answered(7, &mut Writer::default()), 12);
    }
}
