//! What can go wrong: one line for a person.

/// A fault, told in one line.
#[derive(Debug)]
pub struct Fault(pub String);

impl Fault {
    /// The same fault, with where it happened in front.
    pub fn at(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// The last system call's error, with what was tried.
pub fn os(what: &str) -> Fault {
    Fault(format!("{what}: {}", std::io::Error::last_os_error()))
}

/// A fault from any text.
pub fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(message.into()))
}
