//! Being the first process of a machine: file systems, modules, and the moment of readiness.

use super::modules;
use crate::fault::Fault;
use crate::sys;
use std::fs;
use std::io::Write;
use std::os::unix::fs::chroot;
use std::path::Path;

/// Mounts what a machine needs and loads its modules.
pub fn prepare() -> Result<(), Fault> {
    std::panic::set_hook(Box::new(|panic| tell(&panic.to_string())));
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(target)?;
        sys::mount(kind, target, kind, 0, "").map_err(|fault| fault.at(target))?;
    }
    sys::raise_file_limit()?;
    modules::load_all(Path::new("/modules"))?;
    Ok(())
}

/// Makes a mounted folder the root, with the file systems that [`prepare`] has mounted.
pub fn become_root(folder: &str) -> Result<(), Fault> {
    let moved = |from: &str, to: &str| {
        sys::mount(from, to, "", libc::MS_MOVE, "").map_err(|fault| fault.at(to))
    };
    for kept in ["/proc", "/sys", "/dev"] {
        moved(kept, &format!("{folder}{kept}"))?;
    }
    std::env::set_current_dir(folder)?;
    // Not chroot(2) alone, after which no user namespace could be made (user_namespaces(7)).
    moved(".", "/")?;
    chroot(".")?;
    Ok(std::env::set_current_dir("/")?)
}

/// Arms the watchdog and lets it expire: at that signal the machine's starter stops it, and may start any number of
/// runs from that moment.
pub fn ready(watchdog: &str) -> Result<(), Fault> {
    let opened = fs::OpenOptions::new().write(true).open(watchdog);
    let mut dog = opened.map_err(|error| Fault::Failed(format!("{watchdog}: {error}")))?;
    dog.write_all(b"1")?;
    std::mem::forget(dog); // closing it would disarm it
    Ok(())
}

/// A line for the machine's console.
pub fn tell(line: &str) {
    if let Ok(mut console) = fs::OpenOptions::new().write(true).open("/dev/kmsg") {
        let _ = console.write_all(format!("dragstrip: {line}").as_bytes()); // nobody else to tell
    }
}
