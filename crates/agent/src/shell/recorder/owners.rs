//! Names of the programs that own sockets of a network namespace, as /proc shows them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Longest name that is shown; the kernel has 15 bytes.
const NAME_MAX: usize = 15;

/// Programs in network namespaces, by the numbers of their sockets.
pub fn programs(namespaces: &[fs::File]) -> BTreeMap<u32, String> {
    let spaces: Vec<u64> =
        namespaces.iter().filter_map(|space| Some(space.metadata().ok()?.ino())).collect();
    let mut names = BTreeMap::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let path = process.path();
        let is_process = process.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit());
        let space = is_process.then(|| fs::metadata(path.join("ns/net")).ok()).flatten();
        if !space.is_some_and(|space| spaces.contains(&space.ino())) {
            continue;
        }
        let name = plain(&fs::read_to_string(path.join("comm")).unwrap_or_default());
        for file in fs::read_dir(path.join("fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(file.path()).unwrap_or_default();
            let target = target.to_string_lossy();
            let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            if let Some(inode) = inode.and_then(|inode| inode.parse().ok()) {
                names.entry(inode).or_insert_with(|| name.clone());
            }
        }
    }
    names
}

/// A name without odd characters.
fn plain(comm: &str) -> String {
    let letters = comm.trim().chars();
    let kept =
        letters.map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' });
    kept.take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_socket_of_this_process_has_its_name() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        let inode: u32 = text["socket:[".len()..text.len() - 1].parse().unwrap();
        let names = programs(&[fs::File::open("/proc/self/ns/net").unwrap()]);
        let comm = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(names.get(&inode), Some(&plain(&comm)));
        assert_eq!(plain("a b/→"), "a_b__");
    }
}
