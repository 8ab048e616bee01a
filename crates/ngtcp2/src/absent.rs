//! Why there is no library to use.

use std::fmt;

/// Version of the library whose structures this crate knows.
pub(crate) const VERSION: &str = "0.12.1";

/// Why ngtcp2 cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The library, or one of its functions, is missing; the loader's own words.
    Missing(String),
    /// The library is of another version.
    Version(String),
    /// The platform's structures are not known.
    Platform,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(reason) => write!(
                f,
                "the library ngtcp2 {VERSION}, of Debian 12: apt install libngtcp2-9 ({reason})"
            ),
            Self::Version(version) => write!(
                f,
                "the library ngtcp2 {VERSION}, of Debian 12: apt install libngtcp2-9 (this machine's is {version}, whose structures differ)"
            ),
            Self::Platform => write!(f, "Linux on 64 bits, for the library ngtcp2 {VERSION}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_names_the_package_and_the_reason() {
        let text = Absent::Version("1.9.0".to_owned()).to_string();
        assert!(text.contains("apt install libngtcp2-9") && text.contains("is 1.9.0"), "{text}");
        let text = Absent::Missing("no such file".to_owned()).to_string();
        assert!(
            text.contains("apt install libngtcp2-9") && text.contains("no such file"),
            "{text}"
        );
    }
}
