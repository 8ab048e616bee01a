//! Being the first process of a guest: a virtual machine in real time whose files are those of the machine around it.
//! These files stay unchanged: the guest writes to its memory, except in the folders that it shares.

use super::first;
use crate::fault::{Fault, fault};
use crate::netlink::Socket;
use crate::{network, sys};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folder with the guest's job: `script`, for a shell, and `shares`, a tag and a folder per line. The result is
/// `status`, the script's exit status.
const JOB: &str = "/run/dragstrip";
/// Mount options for the surrounding machine's files (Documentation/filesystems/9p.rst), with the message size.
const NINE: &str = "trans=virtio,version=9p2000.L,msize=524288";

/// Does what it is to do, and leaves the status.
pub fn run() -> Result<(), Fault> {
    first::prepare()?;
    enter()?;
    network::up(&mut Socket::new()?, 1)?;
    fs::write("/proc/sys/kernel/hostname", "guest")?;
    let shell = Command::new("/bin/sh").arg(format!("{JOB}/script")).spawn();
    let shell = shell.map_err(|error| Fault::Failed(format!("/bin/sh: {error}")))?;
    let status = sys::reap_until(shell.id() as i32)?;
    fs::write(format!("{JOB}/status"), format!("{status}\n"))?;
    Ok(())
}

/// Makes the other machine's files this one's, under an overlay in memory.
fn enter() -> Result<(), Fault> {
    for folder in ["/lower", "/over", "/root"] {
        fs::create_dir_all(folder)?;
    }
    let read_only = libc::MS_RDONLY;
    mount("host", "/lower", "9p", read_only, &format!("{NINE},cache=loose"))?;
    mount("tmpfs", "/over", "tmpfs", 0, "")?;
    fs::create_dir("/over/upper")?;
    fs::create_dir("/over/work")?;
    let layers = "lowerdir=/lower,upperdir=/over/upper,workdir=/over/work";
    mount("overlay", "/root", "overlay", 0, layers)?;
    first::become_root("/root")?;
    for (kind, target, data) in
        [("devpts", "/dev/pts", ""), ("tmpfs", "/dev/shm", ""), ("tmpfs", "/run", "mode=755")]
    {
        fs::create_dir_all(target)?;
        mount(kind, target, kind, 0, data)?;
    }
    share("job", JOB)?;
    let shares = fs::read_to_string(format!("{JOB}/shares"))?;
    for line in shares.lines() {
        let Some((tag, folder)) = line.split_once(' ') else {
            return fault(format!("shares: {line:?} is no tag and folder"));
        };
        share(tag, folder)?;
    }
    Ok(())
}

/// A folder of the other machine in which both may write.
fn share(tag: &str, folder: &str) -> Result<(), Fault> {
    if !Path::new(folder).is_dir() {
        fs::create_dir_all(folder)?;
    }
    mount(tag, folder, "9p", 0, NINE)
}

fn mount(source: &str, target: &str, kind: &str, flags: u64, data: &str) -> Result<(), Fault> {
    sys::mount(source, target, kind, flags, data).map_err(|fault| fault.at(target))
}
