//! Requests about processes: a child of this one, the spaces that a program lives in, its terminal.

use super::{checked, enter};
use crate::fault::{Fault, os, refusal};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// fork(2), in which only the calling thread goes on in the child; no other thread may hold a lock then. None in the child.
pub fn fork() -> Result<Option<i32>, Fault> {
    let process = checked(unsafe { libc::fork() }.into(), "fork")?;
    Ok((process > 0).then_some(process as i32))
}

/// Ends this process at once: what the one it was forked from would do at its end is left out.
pub fn leave(status: i32) -> ! {
    unsafe { libc::_exit(status) }
}

/// Has the children from now on live in a process namespace, whose first process is the next one.
pub fn unshare_processes() -> Result<(), Fault> {
    checked(unsafe { libc::unshare(libc::CLONE_NEWPID) }.into(), "unshare").map(drop)
}

/// Moves this process into a mount namespace, of which nothing is seen outside.
pub fn unshare_mounts() -> Result<(), Fault> {
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into(), "unshare")?;
    super::mount("none", "/", "", libc::MS_REC | libc::MS_PRIVATE, "")
}

/// umount2(2) of what is still in use elsewhere.
pub fn detach(target: &str) -> Result<(), Fault> {
    let target = super::text(target);
    checked(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }.into(), "umount").map(drop)
}

/// Puts files with these contents in the places of others, as far as this process's mount namespace shows; the first one's
/// outcome counts.
pub fn mount_files(files: &[(&str, String)]) -> Result<(), Fault> {
    const PLACE: &str = "/tmp";
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // Files of a file system that no folder shows any more.
    super::mount("tmpfs", PLACE, "tmpfs", quiet, "mode=755")?;
    let mut mounted = Vec::new();
    for (number, (place, content)) in files.iter().enumerate() {
        let file = format!("{PLACE}/{number}");
        let written = fs::write(&file, content).map_err(Fault::from);
        mounted.push(written.and_then(|()| super::mount(&file, place, "", libc::MS_BIND, "")));
    }
    detach(PLACE)?;
    mounted.into_iter().next().unwrap_or(Ok(()))
}

/// Waits, as the first process of its namespace, for every process that is left to it, until it is ended.
pub fn hold() -> ! {
    loop {
        if next_end().is_none() {
            unsafe { libc::pause() };
        }
    }
}

/// Has the kernel end this process when the one that forked it ends; unlike [`die_with_parent`](super::die_with_parent) also
/// where that one has no number, outside of a process namespace.
pub fn die_with_maker() -> Result<(), Fault> {
    let set = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    checked(set.into(), "PR_SET_PDEATHSIG").map(drop)
}

/// Runs this process before all ordinary ones (`SCHED_FIFO`, its lowest priority), but none of its children; false where it may
/// not.
pub fn go_first() -> bool {
    const PRIORITY: i32 = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // musl has no sched_setscheduler(2).
    let number = libc::SYS_sched_setscheduler;
    unsafe { libc::syscall(number, 0, policy, std::ptr::from_ref(&PRIORITY)) == 0 }
}

/// Ends a process, and its process namespace if it is the first one there; of a negative number, its whole group.
pub fn kill(process: i32) {
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// A pipe, the end to read first.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    let mut ends = [0; 2];
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into(), "pipe")?;
    let [from, to] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok((from, to))
}

/// Two connected sockets that keep the bounds of packets (`SOCK_SEQPACKET`, unix(7)); neither waits.
pub fn packet_sockets() -> Result<(OwnedFd, OwnedFd), Fault> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
    checked(made.into(), "socketpair")?;
    let [first, second] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok((first, second))
}

/// Signals that a terminal sends, which end the programs in front of it and not what carries their packets.
const OF_TERMINAL: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTTOU, libc::SIGTTIN];

/// Ignores the signals of a terminal.
pub fn ignore_terminal() {
    for signal in OF_TERMINAL {
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Makes this process's group the one in front of its terminal again, if it has one.
pub fn take_terminal() {
    unsafe {
        if libc::isatty(0) == 1 {
            libc::tcsetpgrp(0, libc::getpgrp());
        }
    }
}

/// Place and manner of a program's start.
pub struct Start<'a, S> {
    /// Its network namespace.
    pub space: &'a S,
    /// Run it as this user and group in a user namespace of its own, so that it has no rights over the network.
    pub user: Option<(u32, u32)>,
    /// Its terminal and process group.
    pub place: Place,
    /// As root without rights over the machine and its network ([`OVER_MACHINE`]), and with the usual number of open files.
    pub confined: bool,
}

/// Rights that could change the outcome of a run from within (linux/capability.h): `NET_ADMIN`, `SYS_MODULE`, `SYS_RAWIO`
/// (the memory), `SYS_ADMIN`, `SYS_BOOT`, `SYS_TIME`, `MKNOD`, `PERFMON`, `BPF`.
const OVER_MACHINE: [u64; 9] = [12, 16, 17, 21, 22, 25, 27, 38, 39];
/// Files that a process may have open at first, as after any login.
const OPEN_FILES: u64 = 1_024;

/// Terminal of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In front of the terminal, in the group of who started it all.
    Foreground,
    /// The same in a process group of its own: a shell that controls jobs.
    Shell,
    /// In a session of its own, without a terminal.
    Background,
}

/// The identifier in the namespace of this process.
fn spawn<S: AsRawFd>(command: &mut Command, start: &Start<'_, S>) -> std::io::Result<i32> {
    let space = start.space.as_raw_fd();
    let (user, place, confined) = (start.user, start.place, start.confined);
    let prepare = move || -> std::io::Result<()> {
        enter(&space).map_err(|_| std::io::Error::last_os_error())?;
        unsafe {
            match place {
                Place::Foreground => {}
                Place::Background => {
                    libc::setsid();
                }
                Place::Shell => {
                    libc::setpgid(0, 0);
                    libc::tcsetpgrp(0, libc::getpid());
                }
            }
            for signal in OF_TERMINAL {
                libc::signal(signal, libc::SIG_DFL);
            }
            // Where no second user namespace is allowed, the program is root in the first.
            if let Some((user, group)) = user
                && libc::unshare(libc::CLONE_NEWUSER) == 0
            {
                fs::write("/proc/self/uid_map", format!("{user} 0 1"))?;
                fs::write("/proc/self/gid_map", format!("{group} 0 1"))?;
            }
            if confined {
                let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
                limit.rlim_cur = OPEN_FILES.min(limit.rlim_max);
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
                for right in OVER_MACHINE {
                    libc::prctl(libc::PR_CAPBSET_DROP, right, 0, 0, 0);
                }
            }
        }
        Ok(())
    };
    let child = unsafe { command.pre_exec(prepare) }.spawn()?;
    Ok(child.id() as i32)
}

/// Starts a program there; a refusal of `field` says why it does not start.
pub fn start<S: AsRawFd>(
    command: &mut Command,
    start: &Start<'_, S>,
    field: &str,
) -> Result<i32, Fault> {
    let program = command.get_program().to_string_lossy().into_owned();
    spawn(command, start).or_else(|error| {
        use std::io::ErrorKind::{NotFound, PermissionDenied};
        let expected = if error.kind() == NotFound {
            "a program that exists: command not found".to_owned()
        } else if error.kind() == PermissionDenied {
            "a program that may be executed".to_owned()
        } else {
            format!("a program that starts: {error}")
        };
        refusal(field, program, expected)
    })
}

/// A status of wait(2) as a shell has it.
pub fn in_shell(status: i32) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

/// Waits until a child has ended: its identifier and its status as a shell has it; none when there is no child.
pub fn next_end() -> Option<(i32, i32)> {
    loop {
        let mut status = 0;
        let process = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if process > 0 {
            return Some((process, in_shell(status)));
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// Status of a child that has ended already (waitpid(2), `WNOHANG`).
pub fn has_ended(process: i32) -> Option<i32> {
    let mut status = 0;
    let ended = unsafe { libc::waitpid(process, &raw mut status, libc::WNOHANG) };
    (ended == process).then(|| in_shell(status))
}

/// A file that is readable once a process has ended (pidfd_open(2)).
pub fn end_of(process: i32) -> Result<OwnedFd, Fault> {
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let number = checked(file, "pidfd_open")?;
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// Ends every process but this one, which is the first of its machine.
pub fn kill_all() {
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Has reads of a file return at once (fcntl(2)).
pub fn set_nonblocking(file: &impl AsRawFd) -> Result<(), Fault> {
    let fd = file.as_raw_fd();
    let flags = checked(unsafe { libc::fcntl(fd, libc::F_GETFL) }.into(), "fcntl")?;
    let set = unsafe { libc::fcntl(fd, libc::F_SETFL, flags as i32 | libc::O_NONBLOCK) };
    checked(set.into(), "fcntl").map(drop)
}

/// The same file, which programs started here do not inherit.
pub fn private(file: fs::File) -> fs::File {
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    file
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    super::clock(libc::CLOCK_MONOTONIC) as u64
}

/// Waits until one of these can be read, or for a time (ppoll(2), which counts in nanoseconds); true if it is `first`.
pub fn wait_readable(first: i32, others: &[i32], timeout_ns: u64) -> bool {
    let request = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut requests: Vec<libc::pollfd> =
        [&first].into_iter().chain(others).copied().map(request).collect();
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as i64,
        tv_nsec: (timeout_ns % 1_000_000_000) as i64,
    };
    let (count, no_mask) = (requests.len() as libc::nfds_t, std::ptr::null());
    unsafe { libc::ppoll(requests.as_mut_ptr(), count, &raw const timeout, no_mask) };
    requests[0].revents != 0
}

/// A TUN device in the network namespace of this thread: IP packets without a header of the device's own.
pub fn tun(device: &str, name: &str) -> Result<OwnedFd, Fault> {
    let file = fs::OpenOptions::new().read(true).write(true).open(device)?;
    let file: OwnedFd = file.into();
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    const TUNSETIFF: u64 = 0x4004_54ca; // linux/if_tun.h
    let fd = file.as_raw_fd();
    if unsafe { libc::ioctl(fd, TUNSETIFF as _, &raw mut request) } < 0 {
        return Err(os("TUNSETIFF"));
    }
    set_nonblocking(&file)?;
    Ok(file)
}

/// Closes a descriptor of the process that this one was forked from, whose owner does not run here.
pub fn close_inherited(number: i32) {
    unsafe { libc::close(number) };
}

/// A file that the process inherited under this number.
pub fn inherited(number: i32) -> fs::File {
    private(unsafe { fs::File::from_raw_fd(number) })
}
