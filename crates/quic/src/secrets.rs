//! Secrets of a connection: drawn for the run, so that a capture of it can be encrypted and decrypted again.

use dragstrip_units::Stream;
use std::fmt::Write;

/// Bytes of a secret: those of SHA-256.
pub(crate) const SECRET_BYTES: usize = 32;

/// A secret of TLS.
pub(crate) type Secret = [u8; SECRET_BYTES];

/// Secrets of a connection. Both ends and the captures draw the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    /// `random` of the ClientHello, by which a log of keys names the connection.
    pub random: Secret,
    /// Secrets of the handshake's packets: the client's and the server's.
    pub handshake: [Secret; 2],
    /// Secrets of the first packets with data: the client's and the server's.
    pub application: [Secret; 2],
}

impl Secrets {
    /// Draws the secrets of the connection with this name in the run with this seed.
    pub fn new(seed: u64, connection: &str) -> Self {
        let mut stream = Stream::named(seed, &format!("{connection}/secrets"));
        let mut secret = || {
            let mut bytes = [0; SECRET_BYTES];
            for word in bytes.chunks_exact_mut(8) {
                word.copy_from_slice(&stream.next_u64().to_le_bytes());
            }
            bytes
        };
        Self {
            random: secret(),
            handshake: [secret(), secret()],
            application: [secret(), secret()],
        }
    }

    /// The secrets as a log of keys (NSS's format, draft-ietf-tls-keylogfile).
    pub fn key_log(&self) -> String {
        let mut text = String::new();
        for (label, secret) in [
            ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", &self.handshake[0]),
            ("SERVER_HANDSHAKE_TRAFFIC_SECRET", &self.handshake[1]),
            ("CLIENT_TRAFFIC_SECRET_0", &self.application[0]),
            ("SERVER_TRAFFIC_SECRET_0", &self.application[1]),
        ] {
            let _ = writeln!(text, "{label} {} {}", hexadecimal(&self.random), hexadecimal(secret));
        }
        text
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_belong_to_the_run_and_the_connection() {
        let secrets = Secrets::new(1, "flow/a");
        assert_eq!(secrets.random, Secrets::new(1, "flow/a").random);
        assert_ne!(secrets.random, Secrets::new(2, "flow/a").random);
        assert_ne!(secrets.random, Secrets::new(1, "flow/b").random);
        assert_ne!(secrets.handshake[0], secrets.handshake[1]);
        let log = secrets.key_log();
        assert_eq!(log.lines().count(), 4);
        assert!(
            log.lines().all(|line| line.split(' ').nth(1) == Some(&hexadecimal(&secrets.random)))
        );
    }
}
