//! Preloaded into QEMU: its main thread takes the big lock only while the virtual CPU is halted.
//!
//! With `-icount sleep=off`, QEMU's main thread moves the virtual clock forward when it finds the CPU
//! halted. It may look in the moment after the CPU's thread has marked itself halted and before the
//! instructions it has just executed are added to the clock; the clock then comes out late by these
//! instructions, some microseconds, and how often that happens depends on the host's scheduler. Both threads
//! agree on nothing but the big lock, which the CPU's thread does not hold while it executes.
//!
//! The cure: the main thread, when it has got the lock and the CPU's thread is not waiting in
//! `pthread_cond_wait` with that lock, gives it back and waits until it is. The clock is then moved only when all
//! instructions are accounted for, whatever the host does. QEMU is used unmodified; nothing else changes for
//! it, because a running CPU looks after its timers itself.
//!
//! One more moment is as safe: when the CPU's thread itself asks for the lock, it is either not halted, or all
//! is accounted for. That is needed too: a timer that only the main thread can run leaves the CPU's thread without
//! a single instruction to execute, asking for the lock again and again until it has been run. So when it has
//! asked often while the main thread waits, it lets that one go first.
//!
//! For the same reason the CPU's thread need not wake the main thread before: it would only find that it must wait,
//! and waking it costs two changes of context. QEMU wakes it by a write to an eventfd(2), whenever the guest
//! programs a timer; that write is kept until the main thread may have the lock.
//!
//! Scope: this one rule. Out of scope: anything about the emulated machine.
//! The CPU's thread is known by its name (`-name debug-threads=on`).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "it stands in for functions of the C library")]

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering::SeqCst};

type Lock = extern "C" fn(*mut c_void) -> c_int;
type Wait = extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Name = extern "C" fn(usize, *const c_char) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn syscall(number: c_long, ...) -> c_long;
    fn getpid() -> c_int;
    fn pthread_self() -> usize;
}

const SYS_WRITE: c_long = 1;
const SYS_GETTID: c_long = 186;
const SYS_FUTEX: c_long = 202;
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;
/// dlfcn.h: RTLD_NEXT.
const NEXT: *mut c_void = -1_isize as *mut c_void;

/// The lock that the CPU's thread gives up while it is halted; null before it first does.
static BIG_LOCK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// 1 while the CPU's thread waits with that lock. Changes only under the lock.
static HALTED: AtomicU32 = AtomicU32::new(0);
/// The eventfd that the CPU's thread has not written to yet; -1: none. Only that thread looks.
static CALL: AtomicI32 = AtomicI32::new(-1);
/// Number of times the CPU's thread has asked for the lock while the main thread waited or was to be called. Only that
/// thread looks.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// So often, and the main thread goes first. Low enough to cost little, and high enough that a guest which
/// programs its timers does not call the main thread each time.
const PATIENCE: u32 = 20;
/// Counts the times that the main thread has got the lock.
static TURNS: AtomicU32 = AtomicU32::new(0);
/// 1 while the main thread waits for [`HALTED`].
static AWAITED: AtomicU32 = AtomicU32::new(0);
/// The CPU's thread.
static CPU: OnceLock<usize> = OnceLock::new();

fn real(name: &CStr) -> *mut c_void {
    // SAFETY: two C strings and a handle that dlsym knows.
    let symbol = unsafe { dlsym(NEXT, name.as_ptr()) };
    assert!(!symbol.is_null());
    symbol
}

fn real_lock() -> Lock {
    static FOUND: OnceLock<usize> = OnceLock::new();
    let address = *FOUND.get_or_init(|| real(c"pthread_mutex_lock") as usize);
    // SAFETY: this is the C library's function of that name and signature.
    unsafe { std::mem::transmute::<usize, Lock>(address) }
}

fn real_unlock() -> Lock {
    static FOUND: OnceLock<usize> = OnceLock::new();
    let address = *FOUND.get_or_init(|| real(c"pthread_mutex_unlock") as usize);
    // SAFETY: as above.
    unsafe { std::mem::transmute::<usize, Lock>(address) }
}

fn real_wait() -> Wait {
    static FOUND: OnceLock<usize> = OnceLock::new();
    let address = *FOUND.get_or_init(|| {
        let name = c"pthread_cond_wait".as_ptr();
        // SAFETY: three valid arguments. Without a version, the C library gives its oldest condition
        // variables, which are laid out otherwise.
        let symbol = unsafe { dlvsym(NEXT, name, c"GLIBC_2.3.2".as_ptr()) };
        assert!(!symbol.is_null());
        symbol as usize
    });
    // SAFETY: as above.
    unsafe { std::mem::transmute::<usize, Wait>(address) }
}

fn real_name() -> Name {
    static FOUND: OnceLock<usize> = OnceLock::new();
    let address = *FOUND.get_or_init(|| real(c"pthread_setname_np") as usize);
    // SAFETY: as above.
    unsafe { std::mem::transmute::<usize, Name>(address) }
}

fn futex(word: &AtomicU32, operation: c_int, value: u32) {
    // SAFETY: futex(2) on a word that lives for ever, without a time limit.
    unsafe {
        syscall(SYS_FUTEX, word.as_ptr(), operation, value, std::ptr::null::<c_void>());
    }
}

fn is_cpu() -> bool {
    // SAFETY: no arguments.
    CPU.get() == Some(&unsafe { pthread_self() })
}

fn is_main() -> bool {
    static MAIN: OnceLock<usize> = OnceLock::new();
    // SAFETY: no arguments.
    let thread = unsafe { pthread_self() };
    if let Some(&main) = MAIN.get() {
        return thread == main;
    }
    // SAFETY: no arguments.
    let is_main = unsafe { syscall(SYS_GETTID) == c_long::from(getpid()) };
    if is_main {
        let _ = MAIN.set(thread);
    }
    is_main
}

/// Stands in for write(2).
///
/// # Safety
/// `bytes` has `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: usize) -> isize {
    // What eventfd(2) takes: one, as a whole number of eight bytes.
    // SAFETY: the caller's promise.
    let is_call = count == 8
        && is_cpu()
        && !BIG_LOCK.load(SeqCst).is_null()
        && unsafe { bytes.cast::<u64>().read_unaligned() } == 1;
    if is_call {
        let before = CALL.swap(file, SeqCst);
        if before != file {
            call(before);
        }
        return 8;
    }
    // SAFETY: the caller's promise.
    unsafe { syscall(SYS_WRITE, file, bytes, count) as isize }
}

/// Writes to an eventfd, if it is one.
fn call(file: c_int) {
    if file >= 0 {
        let increment = 1_u64;
        // SAFETY: eight bytes that live for the length of the call.
        unsafe { syscall(SYS_WRITE, file, (&raw const increment).cast::<c_void>(), 8_usize) };
    }
}

/// Stands in for pthread_setname_np(3): QEMU names its threads from within.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setname_np(thread: usize, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(name) }.to_bytes();
    if text.ends_with(b"/TCG") {
        let _ = CPU.set(thread); // one CPU, one thread
    }
    real_name()(thread, name)
}

/// The main thread may have the lock now: tells it, if it waits for that or has been called meanwhile.
fn allow() {
    HALTED.store(1, SeqCst);
    call(CALL.swap(-1, SeqCst));
    if AWAITED.swap(0, SeqCst) == 1 {
        futex(&HALTED, FUTEX_WAKE_PRIVATE, 1);
    }
}

/// Stands in for pthread_cond_wait(3).
#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int {
    if !is_cpu() {
        return real_wait()(condition, mutex);
    }
    BIG_LOCK.store(mutex, SeqCst);
    allow();
    let result = real_wait()(condition, mutex);
    HALTED.store(0, SeqCst);
    ASKED.store(0, SeqCst);
    result
}

/// Stands in for pthread_mutex_lock(3).
#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_lock(mutex: *mut c_void) -> c_int {
    if mutex != BIG_LOCK.load(SeqCst) {
        return real_lock()(mutex);
    }
    if is_cpu() {
        let called = AWAITED.load(SeqCst) == 1 || CALL.load(SeqCst) >= 0;
        if called && ASKED.fetch_add(1, SeqCst) >= PATIENCE {
            ASKED.store(0, SeqCst);
            let turns = TURNS.load(SeqCst);
            allow();
            while TURNS.load(SeqCst) == turns {
                futex(&TURNS, FUTEX_WAIT_PRIVATE, turns);
            }
        }
        let result = real_lock()(mutex);
        HALTED.store(0, SeqCst);
        return result;
    }
    loop {
        let result = real_lock()(mutex);
        if !is_main() {
            return result;
        }
        if HALTED.load(SeqCst) == 1 {
            TURNS.fetch_add(1, SeqCst);
            futex(&TURNS, FUTEX_WAKE_PRIVATE, 1);
            return result;
        }
        AWAITED.store(1, SeqCst);
        real_unlock()(mutex);
        futex(&HALTED, FUTEX_WAIT_PRIVATE, 0);
    }
}
