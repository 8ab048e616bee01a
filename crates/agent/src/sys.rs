//! System calls that the standard library does not wrap. The only module with `unsafe` in it.
#![allow(unsafe_code, reason = "the kernel's interfaces are C; each block is one call")]

pub mod interface;
pub mod process;

use crate::fault::{Fault, os};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Turns the C convention of −1 into an error that names `what` was tried.
fn checked(result: i64, call: &str) -> Result<i64, Fault> {
    if result < 0 { Err(os(call)) } else { Ok(result) }
}

fn text(value: &str) -> CString {
    CString::new(value).unwrap_or_default()
}

/// Moves the calling thread into the network namespace of `namespace`.
pub fn enter(namespace: &impl AsRawFd) -> Result<(), Fault> {
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    checked(result.into(), "setns").map(drop)
}

/// Moves the calling thread into a new, empty network namespace.
pub fn unshare_network() -> Result<(), Fault> {
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into(), "unshare").map(drop)
}

/// Moves this process, which has one thread, into a new user namespace.
pub fn unshare_user() -> Result<(), Fault> {
    checked(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into(), "unshare").map(drop)
}

/// Effective user and group.
pub fn user() -> (u32, u32) {
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Has the kernel end this process when the process that started it ends.
pub fn die_with_parent(parent: i32) -> Result<(), Fault> {
    process::die_with_maker()?;
    if unsafe { libc::getppid() } == parent {
        return Ok(());
    }
    Err(Fault::Failed("whoever asked has gone".to_owned()))
}

/// Has timers fire when they are due, not up to 50 µs later (prctl(2), `PR_SET_TIMERSLACK`).
pub fn set_timer_slack() -> Result<(), Fault> {
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) }.into(), "PR_SET_TIMERSLACK")
        .map(drop)
}

/// Has this process take more of the processors' time than others (setpriority(2)). Only root may; for others it stays as it
/// is. It does not go before all others (`SCHED_FIFO`): kernel threads that it waits for would not run.
pub fn raise_priority() {
    const NICENESS: i32 = -10;
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

/// True when this process has the raised priority.
pub fn has_raised_priority() -> bool {
    (unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }) < 0
}

/// A file in memory that programs started here inherit; it goes with its last descriptor.
pub fn memory_file(name: &str) -> Result<std::fs::File, Fault> {
    let name = text(name);
    let fd = checked(unsafe { libc::memfd_create(name.as_ptr(), 0) }.into(), "memfd_create")?;
    Ok(unsafe { std::fs::File::from_raw_fd(fd as i32) })
}

/// The kernel's ticks per second, by which its coarse clocks move; nothing if it does not say.
pub fn tick_hz() -> Option<u32> {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let status = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) };
    (status == 0 && tick.tv_nsec > 0).then(|| (1_000_000_000 / tick.tv_nsec) as u32)
}

/// Offset of the real-time clock from the monotonic one: of several readings the quickest one counts, as others may
/// have been interrupted between the clocks.
pub fn clock_offset() -> i64 {
    const READINGS: usize = 16;
    let monotonic = || {
        let mut stamp = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut stamp) };
        nanos(stamp)
    };
    let readings = (0..READINGS).map(|_| {
        let (before, real, after) = (monotonic(), now(), monotonic());
        (after - before, real - before - (after - before) / 2)
    });
    readings.min().map_or(0, |(_, offset)| offset)
}

/// State of the kernel's clock discipline (RFC 5905, section 11.3: estimated and maximum error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discipline {
    pub synchronised: bool,
    pub error_ns: i64,
    pub error_max_ns: i64,
}

/// adjtimex(2) that changes nothing, which needs no privilege; none where a sandbox forbids it.
pub fn clock_discipline() -> Option<Discipline> {
    let mut read: libc::timex = unsafe { std::mem::zeroed() };
    if unsafe { libc::adjtimex(&raw mut read) } < 0 {
        return None;
    }
    // Both errors are in microseconds, regardless of STA_NANO.
    Some(Discipline {
        synchronised: read.status & libc::STA_UNSYNC == 0,
        error_ns: read.esterror.saturating_mul(1_000),
        error_max_ns: read.maxerror.saturating_mul(1_000),
    })
}

/// delete_module(2); a module in use stays.
pub fn unload_module(name: &str) -> bool {
    let name = text(name);
    unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), libc::O_NONBLOCK) == 0 }
}

/// Lets this process have as many files open as the kernel's own limit allows (`fs.nr_open`), or its hard limit.
pub fn raise_file_limit() -> Result<(), Fault> {
    const NR_OPEN: u64 = 1 << 20;
    let mut limit = libc::rlimit { rlim_cur: NR_OPEN, rlim_max: NR_OPEN };
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
        return Ok(());
    }
    checked(
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }.into(),
        "RLIMIT_NOFILE",
    )?;
    limit.rlim_cur = limit.rlim_max;
    checked(
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }.into(),
        "RLIMIT_NOFILE",
    )
    .map(drop)
}

/// mount(2).
pub fn mount(source: &str, target: &str, kind: &str, flags: u64, data: &str) -> Result<(), Fault> {
    let (source, place, kind, data) = (text(source), text(target), text(kind), text(data));
    let result = unsafe {
        libc::mount(
            source.as_ptr(),
            place.as_ptr(),
            kind.as_ptr(),
            flags as _,
            data.as_ptr().cast(),
        )
    };
    checked(result.into(), "mount").map(drop)
}

/// Waits for every process that ends, until this one has (wait(2)); gives its status as a shell does.
pub fn reap_until(process: i32) -> Result<i32, Fault> {
    loop {
        let mut status = 0;
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if checked(ended.into(), "wait")? == i64::from(process) {
            return Ok(process::in_shell(status));
        }
    }
}

/// sync(2).
pub fn sync() {
    unsafe { libc::sync() };
}

/// finit_module(2).
pub fn load_module(file: &impl AsRawFd, parameters: &str) -> Result<(), Fault> {
    let parameters = text(parameters);
    let result =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    checked(result, "finit_module").map(drop)
}

/// Switches the machine off.
pub fn power_off() -> ! {
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    std::process::abort()
}

/// socket(2), non-blocking.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Fault> {
    let fd =
        unsafe { libc::socket(domain, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) };
    checked(fd.into(), "socket")?;
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// setsockopt(2) with any plain value.
pub fn set_option<T: Copy>(
    fd: &impl AsRawFd,
    level: i32,
    name: i32,
    value: &T,
    option: &str,
) -> Result<(), Fault> {
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    checked(result.into(), option).map(drop)
}

/// An algorithm's name in a kernel, whose modules have no hyphen: `my-exp` is its `my_exp`.
pub fn in_kernel(cc: &str) -> String {
    cc.replace('-', "_")
}

/// Chooses the congestion control of a socket.
pub fn set_congestion(fd: &impl AsRawFd, name: &str) -> Result<(), Fault> {
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as u32,
        )
    };
    checked(result.into(), &format!("congestion control {name}")).map(drop)
}

/// The bytes of a socket option.
pub fn get_option(
    fd: &impl AsRawFd,
    level: i32,
    name: i32,
    into: &mut [u8],
) -> Result<usize, Fault> {
    let mut length = into.len() as u32;
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, into.as_mut_ptr().cast(), &raw mut length)
    };
    checked(result.into(), "getsockopt")?;
    Ok(length as usize)
}

fn inet(address: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    }
}

const INET_SIZE: u32 = size_of::<libc::sockaddr_in>() as u32;

/// bind(2).
pub fn bind(fd: &impl AsRawFd, address: Ipv4Addr, port: u16) -> Result<(), Fault> {
    let address = inet(address, port);
    let result =
        unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), INET_SIZE) };
    checked(result.into(), "bind").map(drop)
}

/// listen(2).
pub fn listen(fd: &impl AsRawFd) -> Result<(), Fault> {
    checked(unsafe { libc::listen(fd.as_raw_fd(), 16) }.into(), "listen").map(drop)
}

/// connect(2); "in progress" is success.
pub fn connect(fd: &impl AsRawFd, address: Ipv4Addr, port: u16) -> Result<(), Fault> {
    let address = inet(address, port);
    let result =
        unsafe { libc::connect(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), INET_SIZE) };
    if result < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINPROGRESS) {
        return Ok(());
    }
    checked(result.into(), "connect").map(drop)
}

/// accept(2); none if no connection is waiting.
pub fn accept(fd: &impl AsRawFd) -> Option<OwnedFd> {
    let (flags, nobody) = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, std::ptr::null_mut());
    let new = unsafe { libc::accept4(fd.as_raw_fd(), nobody, nobody.cast(), flags) };
    (new >= 0).then(|| unsafe { OwnedFd::from_raw_fd(new) })
}

/// write(2); the number of bytes taken, nothing when the socket takes none now.
pub fn write(fd: &impl AsRawFd, data: &[u8]) -> Option<usize> {
    let written_bytes = unsafe { libc::write(fd.as_raw_fd(), data.as_ptr().cast(), data.len()) };
    usize::try_from(written_bytes).ok()
}

/// sendto(2).
pub fn send_to(fd: &impl AsRawFd, data: &[u8], address: Ipv4Addr, port: u16) -> Option<usize> {
    let address = inet(address, port);
    let sent_bytes = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            data.as_ptr().cast(),
            data.len(),
            0,
            std::ptr::from_ref(&address).cast(),
            INET_SIZE,
        )
    };
    usize::try_from(sent_bytes).ok()
}

/// recv(2) that discards the data (`MSG_TRUNC`): the number of bytes, none when there are none. A datagram is consumed
/// whole, regardless of `at_most`; it must be 0 there, or the kernel looks for a buffer.
pub fn discard(fd: &impl AsRawFd, at_most: usize) -> Option<usize> {
    let received =
        unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), at_most, libc::MSG_TRUNC) };
    usize::try_from(received).ok()
}

/// True when a socket has enough free buffer space for a waiting writer (poll(2), `POLLOUT`).
pub fn is_writeable(fd: &impl AsRawFd) -> bool {
    let mut request = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let ready = unsafe { libc::poll(&raw mut request, 1, 0) };
    ready == 1 && request.revents & libc::POLLOUT != 0
}

/// True when a file becomes readable, or reaches its end, within a time (poll(2)).
pub fn is_readable_within(fd: &impl AsRawFd, timeout_ms: i32) -> bool {
    let mut request = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    unsafe { libc::poll(&raw mut request, 1, timeout_ms) == 1 }
}

/// read(2), past any buffer of the standard library.
pub fn read(fd: &impl AsRawFd, into: &mut [u8]) -> std::io::Result<usize> {
    let received = unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(received).map_err(|_| std::io::Error::last_os_error())
}

/// Takes the lock on a file (flock(2)), which lives until its last copy is closed; false if it is held elsewhere.
pub fn lock(file: &impl AsRawFd) -> bool {
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// True when this process may write in a folder (access(2), with the effective user's rights).
pub fn writable(folder: &std::path::Path) -> bool {
    let name = text(&folder.to_string_lossy());
    let flags = libc::AT_EACCESS;
    unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::W_OK, flags) == 0 }
}

/// shutdown(2): nothing more will be sent.
pub fn shutdown(fd: &impl AsRawFd) -> Result<(), Fault> {
    checked(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }.into(), "shutdown").map(drop)
}

/// recv(2).
pub fn receive(fd: &impl AsRawFd, into: &mut [u8]) -> Option<usize> {
    let received = unsafe {
        libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_TRUNC)
    };
    usize::try_from(received).ok()
}

/// Result of recvmsg(2) for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub bytes: usize,
    /// By the real-time clock: the kernel's stamp (`SO_TIMESTAMPNS`), or now.
    pub time_ns: i64,
    /// The traffic class that it came with, where the socket asks for it (`IP_RECVTOS`).
    pub class: Option<u8>,
}

/// recvmsg(2); nothing when there is nothing. Of a packet that is longer than the buffer the rest is gone.
pub fn receive_stamped(fd: &impl AsRawFd, into: &mut [u8]) -> Option<Received> {
    let mut control = [0_u64; 16];
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let received = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    let (mut stamp_ns, mut class) = (None, None);
    let bytes = usize::try_from(received).ok()?;
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        let control_header = unsafe { &*header };
        let data = unsafe { libc::CMSG_DATA(header) };
        match (control_header.cmsg_level, control_header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                stamp_ns = Some(nanos(unsafe { std::ptr::read_unaligned(data.cast()) }));
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => class = Some(unsafe { data.read() }),
            _ => {}
        }
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Some(Received { bytes, time_ns: stamp_ns.unwrap_or_else(now), class })
}

fn nanos(stamp: libc::timespec) -> i64 {
    stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec
}

/// The real-time clock, which packets are stamped with.
pub fn now() -> i64 {
    clock(libc::CLOCK_REALTIME)
}

/// Sets the real-time clock, to whole seconds since 1970.
pub fn set_clock(seconds: i64) -> Result<(), Fault> {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    let set = unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &raw const time) };
    checked(set.into(), "clock_settime").map(drop)
}

/// A clock in nanoseconds (clock_gettime(2)).
fn clock(number: libc::clockid_t) -> i64 {
    let mut stamp = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(number, &raw mut stamp) };
    nanos(stamp)
}

/// The index of an interface in the namespace of this thread.
pub fn interface_index(name: &str) -> Result<i32, Fault> {
    let name_c = text(name);
    let index = unsafe { libc::if_nametoindex(name_c.as_ptr()) };
    if index == 0 { Err(os(&format!("interface {name}"))) } else { Ok(index as i32) }
}

/// Adds `data` to the kernel's pool of randomness and has its generator take it in at once.
pub fn stir(pool: &impl AsRawFd, data: [u8; 32]) -> Result<(), Fault> {
    #[repr(C)]
    struct Entropy {
        bits: i32,
        size: i32,
        data: [u8; 32],
    }
    let entropy = Entropy { bits: 256, size: 32, data };
    const RNDADDENTROPY: u64 = 0x4008_5203; // linux/random.h
    const RNDRESEEDCRNG: u64 = 0x5207;
    let fd = pool.as_raw_fd();
    let added = unsafe { libc::ioctl(fd, RNDADDENTROPY as _, &raw const entropy) };
    checked(added.into(), "RNDADDENTROPY")?;
    checked(unsafe { libc::ioctl(fd, RNDRESEEDCRNG as _) }.into(), "RNDRESEEDCRNG").map(drop)
}

/// A timer on the real-time clock, as a file.
pub fn timer() -> Result<OwnedFd, Fault> {
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_NONBLOCK) };
    checked(fd.into(), "timerfd_create")?;
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Arms a timer for a point in time.
pub fn arm(timer: &impl AsRawFd, at: i64) -> Result<(), Fault> {
    let at = at.max(1);
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let moment = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    let setting = libc::itimerspec { it_interval: zero, it_value: moment };
    let result = unsafe {
        libc::timerfd_settime(
            timer.as_raw_fd(),
            libc::TFD_TIMER_ABSTIME,
            &raw const setting,
            std::ptr::null_mut(),
        )
    };
    checked(result.into(), "timerfd_settime").map(drop)
}

/// Waits for files to become ready.
pub struct Poll(OwnedFd);

impl Poll {
    pub fn new() -> Result<Self, Fault> {
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        checked(fd.into(), "epoll_create")?;
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a file; `token` comes back with its events.
    pub fn add(&self, fd: &impl AsRawFd, events: i32, token: u64) -> Result<(), Fault> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        let result = unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event)
        };
        checked(result.into(), "epoll_ctl").map(drop)
    }

    /// Watches a file no more.
    pub fn remove(&self, fd: &impl AsRawFd) -> Result<(), Fault> {
        let nothing = std::ptr::null_mut();
        let result = unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), nothing)
        };
        checked(result.into(), "epoll_ctl").map(drop)
    }

    /// The tokens and events of files that are ready, after at most `timeout_ms`.
    pub fn wait(&self, ready: &mut Vec<(u64, i32)>, timeout_ms: i32) -> Result<(), Fault> {
        let mut events: [libc::epoll_event; 64] = unsafe { std::mem::zeroed() };
        let count =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 64, timeout_ms) };
        let count = checked(count.into(), "epoll_wait")? as usize;
        ready.clear();
        ready.extend(events[..count].iter().map(|event| (event.u64, event.events as i32)));
        Ok(())
    }
}

impl AsRawFd for Poll {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// A file mapped into memory, shared with other processes.
pub struct Mapping {
    base: *mut u8,
    size: usize,
}

impl Mapping {
    pub fn new(fd: &impl AsRawFd, offset: i64, size: usize) -> Result<Self, Fault> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, fd.as_raw_fd(), offset)
        };
        if base == libc::MAP_FAILED {
            return Err(os("mmap"));
        }
        Ok(Self { base: base.cast(), size })
    }

    pub const fn size(&self) -> usize {
        self.size
    }

    /// Reads a word that another process may write at the same time.
    pub fn load(&self, offset: usize) -> u64 {
        assert!(offset + 8 <= self.size && offset.is_multiple_of(8));
        unsafe { self.base.add(offset).cast::<u64>().read_volatile() }
    }

    /// Writes a word that another process may read at the same time.
    pub fn store(&self, offset: usize, value: u64) {
        assert!(offset + 8 <= self.size && offset.is_multiple_of(8));
        unsafe { self.base.add(offset).cast::<u64>().write_volatile(value) }
    }

    /// The least significant half of [`load`](Self::load).
    pub fn load_half(&self, offset: usize) -> u32 {
        assert!(offset + 4 <= self.size && offset.is_multiple_of(4));
        unsafe { self.base.add(offset).cast::<u32>().read_volatile() }
    }

    /// Half a [`store`](Self::store).
    pub fn store_half(&self, offset: usize, value: u32) {
        assert!(offset + 4 <= self.size && offset.is_multiple_of(4));
        unsafe { self.base.add(offset).cast::<u32>().write_volatile(value) }
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.size);
        unsafe { self.base.add(offset).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, data: &[u8]) {
        assert!(offset + data.len() <= self.size);
        unsafe { self.base.add(offset).copy_from_nonoverlapping(data.as_ptr(), data.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

/// Binds a packet socket to one interface, for both directions (`ETH_P_ALL`).
pub fn bind_packets(fd: &impl AsRawFd, interface: i32) -> Result<(), Fault> {
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface;
    let size = size_of::<libc::sockaddr_ll>() as u32;
    let result = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    checked(result.into(), "bind a packet socket").map(drop)
}
