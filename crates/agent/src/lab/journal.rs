//! The journal of a host: every change is written down, with how it was before, and is on the disk before it is made.
//!
//! A rollback reads it from the end. The agent itself does that; if it dies, its guardian, a separate process that
//! waits for nothing else; if both have died, the next agent that comes, unless the machine has been restarted, which
//! undoes everything. A lock on a file next to it shows that it is in use: agent and guardian share it.

use super::change::Change;
use super::inventory;
use super::messages::Holder;
use crate::fault::{Fault, fault};
use crate::machine::Held;
use crate::netlink::Socket;
use crate::sys;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
/// Longest time for a rollback; after it the host counts as in use.
const ENDING: Duration = Duration::from_secs(2);
/// Bytes of a journal; one of a lab with every setting has a few thousand.
const BYTES_MAX: u64 = 1 << 20;

/// Folder of a host's journal: the system-wide one if this process may write there, otherwise the user's.
pub fn folder() -> Result<PathBuf, Fault> {
    let home =
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/dragstrip/lab"));
    let places = [Some(PathBuf::from("/run/dragstrip")), home];
    for place in places.into_iter().flatten() {
        let creation = fs::DirBuilder::new().recursive(true).mode(0o700).create(&place);
        if creation.is_ok() && sys::writable(&place) {
            return Ok(place);
        }
    }
    fault("there is no place for the journal: neither /run/dragstrip nor ~/.cache can be written")
}

/// Opens the lock; the second part is true if we own it. A holder whose command has just ended may still be rolling
/// back its changes.
fn lock(folder: &Path) -> Result<(File, bool), Fault> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o660);
    let file = file.open(folder.join(LOCK)).map_err(|error| journal_fault(LOCK, &error))?;
    let until = Instant::now() + ENDING;
    loop {
        let free = sys::lock(&file);
        if free || Instant::now() > until {
            return Ok((file, free));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn journal_fault(subject: &str, error: &std::io::Error) -> Fault {
    Fault::Failed(format!("{subject}: {error}"))
}

/// Returns the current holder of this host's changes, if there is one.
pub fn holder() -> Result<Option<Holder>, Fault> {
    let folder = folder()?;
    let (_lock, free) = lock(&folder)?;
    Ok(read(&folder)?.map(|(holder, changes)| Holder {
        alive: !free,
        changes: changes.len(),
        ..holder
    }))
}

/// A journal's first line, and its changes; a last line that is not whole was never followed by its change.
fn read(folder: &Path) -> Result<Option<(Holder, Vec<Change>)>, Fault> {
    let mut text = String::new();
    match File::open(folder.join(JOURNAL)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened
            .map_err(|error| journal_fault(JOURNAL, &error))?
            .take(BYTES_MAX)
            .read_to_string(&mut text)?,
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines();
    let Some(holder) = lines.next().and_then(|line| serde_json::from_str(line).ok()) else {
        return Ok(Some((Holder::default(), Vec::new())));
    };
    let changes = lines.map(serde_json::from_str).collect::<Result<Vec<_>, _>>();
    changes
        .map(|changes| Some((holder, changes)))
        .map_err(|error| Fault::Failed(format!("{}: {error}", folder.join(JOURNAL).display())))
}

/// Undoes what the journal has, last things first; gives what it undid. A journal of another boot is void.
fn undo(folder: &Path) -> Result<Vec<Change>, Fault> {
    let Some((holder, changes)) = read(folder)? else { return Ok(Vec::new()) };
    let mut undone = Vec::new();
    if holder.boot == inventory::boot()? {
        let mut netlink = Socket::new()?;
        let mut wrong = Vec::new();
        for change in changes.into_iter().rev() {
            match change.undo(&mut netlink) {
                Ok(()) => undone.push(change),
                Err(fault) => wrong.push(format!("{change:?}: {fault}")),
            }
        }
        if !wrong.is_empty() {
            return fault(format!("not all could be undone: {}", wrong.join("; ")));
        }
    }
    fs::remove_file(folder.join(JOURNAL)).map_err(|error| journal_fault(JOURNAL, &error))?;
    Ok(undone)
}

/// Rolls back changes that a dead run has left; a refusal while their holder is alive.
pub fn clean() -> Result<Vec<Change>, Fault> {
    let folder = folder()?;
    let (_lock, free) = lock(&folder)?;
    if free { undo(&folder) } else { in_use(&folder) }
}

fn in_use<T>(folder: &Path) -> Result<T, Fault> {
    let holder = read(folder)?.map(|(holder, _)| holder).unwrap_or_default();
    let Holder { lab, owner, since, boot, .. } = holder;
    let (hour, minute) = (since / 3_600 % 24, since / 60 % 60);
    fault(format!(
        "in use by {lab:?} ({owner}) since {hour:02}:{minute:02} UTC (boot id {boot}); \
         dragstrip lab clean if nobody runs it"
    ))
}

/// A journal that is being written.
pub struct Journal {
    folder: PathBuf,
    file: File,
    changes: usize,
    /// Excludes changes during a rollback.
    changing: Arc<Mutex<()>>,
    /// Congestion controls in the kernel, which leave it before anything is undone.
    held: Arc<Mutex<Option<Held>>>,
    guardian: Option<ChildStdin>,
    _lock: File,
}

impl Journal {
    /// Takes the lock, undoes what an earlier run left, and starts the guardian.
    pub fn open(lab: &str, owner: &str) -> Result<Self, Fault> {
        let folder = folder()?;
        let (lock, free) = lock(&folder)?;
        if !free {
            return in_use(&folder);
        }
        undo(&folder)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let holder = Holder {
            lab: lab.to_owned(),
            owner: owner.to_owned(),
            since,
            boot: inventory::boot()?,
            ..Holder::default()
        };
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(true).write(true).mode(0o660);
        let file =
            file.open(folder.join(JOURNAL)).map_err(|error| journal_fault(JOURNAL, &error))?;
        let changing = Arc::new(Mutex::new(()));
        let programs = Arc::new(Mutex::new(None));
        let mut journal = Self {
            folder,
            file,
            changes: 0,
            changing,
            held: programs,
            guardian: None,
            _lock: lock,
        };
        let line = serde_json::to_string(&holder).unwrap_or_default();
        if let Err(fault) = journal.write(&line) {
            let _ = fs::remove_file(journal.folder.join(JOURNAL)); // nothing was changed
            return Err(fault);
        }
        File::open(&journal.folder)?.sync_all()?;
        journal.start_guardian()?;
        Ok(journal)
    }

    /// Starts the guardian: this program again, in a separate process group, with the lock and one end of a pipe.
    fn start_guardian(&mut self) -> Result<(), Fault> {
        let mut child = Command::new("/proc/self/exe")
            .arg("guard")
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(self._lock.try_clone()?)
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(|error| journal_fault("guardian", &error))?;
        self.guardian = child.stdin.take();
        let (changing, folder) = (self.changing.clone(), self.folder.clone());
        let programs = self.held.clone();
        std::thread::spawn(move || watch(child, &changing, &programs, &folder));
        Ok(())
    }

    fn write(&mut self, line: &str) -> Result<(), Fault> {
        let write_result = self.file.write_all(format!("{line}\n").as_bytes());
        write_result
            .and_then(|()| self.file.sync_data())
            .map_err(|error| journal_fault(JOURNAL, &error))
    }

    /// Writes a change down, and makes it.
    pub fn make<T>(
        &mut self,
        change: &Change,
        make: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let changing = self.changing.clone();
        let _turn = turn(&changing);
        self.write(&serde_json::to_string(change).unwrap_or_default())?;
        self.changes += 1;
        make()
    }

    /// Keeps what is held in the kernel until everything is undone.
    pub fn hold(&self, programs: Option<Held>) {
        *turn(&self.held) = programs;
    }

    /// Changes that were made.
    pub const fn changes(&self) -> usize {
        self.changes
    }

    /// Undoes everything; nothing is left for the guardian, which ends.
    pub fn revert(self) -> Result<Vec<Change>, Fault> {
        let _turn = turn(&self.changing);
        drop(turn(&self.held).take());
        undo(&self.folder)
    }
}

/// A thread that panicked has made its change or not: undoing covers both.
fn turn<T>(changing: &Mutex<T>) -> MutexGuard<'_, T> {
    changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// An agent without a guardian undoes everything itself, and ends. (After a revert there is nothing to undo.)
fn watch(mut guardian: Child, changing: &Mutex<()>, programs: &Mutex<Option<Held>>, folder: &Path) {
    let ended = guardian.wait();
    if ended.is_ok_and(|status| status.success()) {
        return;
    }
    let _turn = turn(changing);
    drop(turn(programs).take());
    let undone = undo(folder);
    eprintln!("dragstrip-agent: the guardian was killed: {:?}", undone.map(|all| all.len()));
    std::process::exit(3);
}

/// Runs the guardian: waits until the agent has gone, for whatever reason, and rolls back its remaining changes.
pub fn guard(folder: &str) -> Result<(), Fault> {
    let mut nothing = [0; 1];
    while std::io::stdin().read(&mut nothing)? > 0 {}
    undo(Path::new(folder)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_journal(name: &str, text: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("dragstrip-journal-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(JOURNAL), text).unwrap();
        folder
    }

    fn line(change: &Change) -> String {
        serde_json::to_string(change).unwrap()
    }

    #[test]
    fn a_journal_cut_by_a_crash_can_be_read() {
        let holder = Holder { lab: "course".into(), boot: "b".into(), ..Holder::default() };
        let changes = [
            Change::Root { interface: "eth1".into() },
            Change::Sysctl { name: "net.ipv4.tcp_sack".into(), old: "1".into() },
        ];
        let lines = [serde_json::to_string(&holder).unwrap(), line(&changes[0]), line(&changes[1])];
        let text = lines.map(|line| line + "\n").concat();
        for end in 0..=text.len() {
            let folder = write_journal("crash", &text[..end]);
            let (found, kept) = read(&folder).unwrap().unwrap();
            // Each change that could have been made, which is each whole line, and no other.
            let whole = text[..end].matches('\n').count();
            assert_eq!(kept, changes[..whole.saturating_sub(1)], "{end}");
            assert_eq!(found.lab, if whole > 0 { "course" } else { "" });
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn a_journal_of_another_boot_is_void() {
        let holder = Holder { boot: "another".into(), ..Holder::default() };
        let bad = Change::Sysctl { name: "net.no_such_setting".into(), old: "1".into() };
        let text = format!("{}\n{}\n", serde_json::to_string(&holder).unwrap(), line(&bad));
        let folder = write_journal("boot", &text);
        assert_eq!(undo(&folder).unwrap(), []);
        assert!(!folder.join(JOURNAL).exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_failed_rollback_keeps_the_journal() {
        let holder = Holder { boot: inventory::boot().unwrap(), ..Holder::default() };
        let bad = Change::Sysctl { name: "net.no_such_setting".into(), old: "1".into() };
        let text = format!("{}\n{}\n", serde_json::to_string(&holder).unwrap(), line(&bad));
        let folder = write_journal("stays", &text);
        assert!(undo(&folder).unwrap_err().to_string().contains("no_such_setting"));
        assert!(folder.join(JOURNAL).exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
