//! The file system that programs see: the files of a request in memory, and what every program expects beside them.

use crate::fault::{Fault, fault, refusal};
use crate::machine::become_root;
use crate::sys;
use serde::Deserialize;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// A file of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Entry {
    Folder {
        path: String,
        mode: u32,
    },
    Link {
        path: String,
        target: String,
    },
    File {
        path: String,
        mode: u32,
        /// Its content follows the request.
        bytes: usize,
    },
}

impl Entry {
    /// Bytes after the request.
    pub const fn bytes(&self) -> usize {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Folder { .. } | Self::Link { .. } => 0,
        }
    }

    fn path(&self) -> &str {
        match self {
            Self::Folder { path, .. } | Self::Link { path, .. } | Self::File { path, .. } => path,
        }
    }
}

/// Folder of the new root.
const ROOT: &str = "/root-of-programs";
/// Time of all files: 2026-01-01, the machine's own beginning.
const MODIFIED_S: u64 = 1_767_225_600;
const FOLDERS: [(&str, u32); 9] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("proc", 0o755),
    ("root", 0o700),
    ("run", 0o755),
    ("sys", 0o755),
    ("tmp", 0o1777),
    ("var/log", 0o755),
    ("var/tmp", 0o1777),
];
/// Files of /etc that a request need not bring: users of servers that give up their rights, and lookups by file alone.
const FILES: [(&str, &str); 4] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\n\
         sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n\
         www-data:x:33:33::/var/www:/usr/sbin/nologin\n\
         nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", "root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n"),
    ("etc/resolv.conf", ""),
];

/// Makes these files this process's root; `hosts` are the names of the two ends, `folder` exists in any case.
pub fn enter(entries: &[Entry], raw: &[u8], hosts: &str, folder: &str) -> Result<(), Fault> {
    fs::create_dir_all(ROOT)?;
    sys::mount("tmpfs", ROOT, "tmpfs", 0, "mode=755,size=75%").map_err(|fault| fault.at(ROOT))?;
    let root = Path::new(ROOT);
    unpack(root, entries, raw)?;
    for (name, mode) in FOLDERS {
        let place = root.join(name);
        if !place.exists() {
            fs::create_dir_all(&place)?;
            fs::set_permissions(&place, Permissions::from_mode(mode))?;
        }
    }
    fs::create_dir_all(root.join(inside(folder)?))?;
    for (name, content) in FILES.into_iter().chain([("etc/hosts", hosts)]) {
        if !root.join(name).exists() {
            fs::write(root.join(name), content)?;
        }
    }
    become_root(ROOT)?;
    for (kind, target) in [("devpts", "/dev/pts"), ("tmpfs", "/dev/shm")] {
        fs::create_dir_all(target)?;
        sys::mount(kind, target, kind, 0, "").map_err(|fault| fault.at(target))?;
    }
    // A write to it ends or stops the machine, and needs no right but root's.
    let trigger = "/proc/sysrq-trigger";
    if Path::new(trigger).exists() {
        sys::mount("/dev/null", trigger, "", libc::MS_BIND, "")
            .map_err(|fault| fault.at(trigger))?;
    }
    for (target, name) in [("", "fd"), ("/0", "stdin"), ("/1", "stdout"), ("/2", "stderr")] {
        symlink(format!("/proc/self/fd{target}"), format!("/dev/{name}"))?;
    }
    Ok(())
}

/// A path without its root; a fault if it leads out of the new one.
fn inside(path: &str) -> Result<PathBuf, Fault> {
    let mut relative = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => relative.push(name),
            Component::ParentDir | Component::Prefix(_) => {
                return fault(format!("{path}: a path without .."));
            }
        }
    }
    Ok(relative)
}

fn unpack(root: &Path, entries: &[Entry], raw: &[u8]) -> Result<(), Fault> {
    let mut rest = raw;
    let times = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(MODIFIED_S));
    for entry in entries {
        let place = root.join(inside(entry.path())?);
        let created = place.parent().map_or(Ok(()), fs::create_dir_all);
        let written = created.and_then(|()| match entry {
            Entry::Folder { mode, .. } => {
                fs::create_dir_all(&place)?;
                fs::set_permissions(&place, Permissions::from_mode(*mode))
            }
            Entry::Link { target, .. } => symlink(target, &place),
            Entry::File { mode, bytes, .. } => {
                let Some((content, behind)) = rest.split_at_checked(*bytes) else {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                };
                rest = behind;
                let mut file = File::create_new(&place)?;
                file.write_all(content)?;
                file.set_permissions(Permissions::from_mode(*mode))?;
                file.set_times(times)
            }
        });
        if let Err(error) = written {
            return refusal("--file", entry.path(), format!("a file that fits in ({error})"));
        }
    }
    for entry in entries {
        if let Entry::Folder { path, .. } = entry {
            File::open(root.join(inside(path)?))?.set_times(times)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: usize) -> Entry {
        Entry::File { path: path.to_owned(), mode: 0o640, bytes }
    }

    #[test]
    fn files_are_unpacked_with_their_rights_and_one_time() {
        let root = std::env::temp_dir().join(format!("dragstrip-root-{}", std::process::id()));
        let entries = [
            Entry::Folder { path: "/a".to_owned(), mode: 0o700 },
            file("/a/b", 3),
            Entry::Link { path: "/l".to_owned(), target: "a/b".to_owned() },
        ];
        unpack(&root, &entries, b"xyz").unwrap();
        assert_eq!(fs::read(root.join("l")).unwrap(), b"xyz");
        for (name, mode) in [("a", 0o700), ("a/b", 0o640)] {
            let about = fs::metadata(root.join(name)).unwrap();
            assert_eq!(about.permissions().mode() & 0o7777, mode, "{name}");
            assert_eq!(about.modified().unwrap(), UNIX_EPOCH + Duration::from_secs(MODIFIED_S));
        }
        let short = unpack(&root, &[file("/c", 9)], b"xyz").unwrap_err();
        assert!(short.to_string().starts_with("--file: got /c"), "{short}");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_path_stays_inside() {
        assert_eq!(inside("/usr/./bin").unwrap(), Path::new("usr/bin"));
        assert!(inside("/usr/../../etc").is_err());
    }
}
