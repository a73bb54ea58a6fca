//! Cases as folders: what stands in PostgreSQL (and in Redis), what the run is told, and what must come of it.
//!
//! A case is added without Rust; `README.md` beside this file says how. Each runs on a database and a Redis of its own,
//! and where it asks for it also on a cluster that such cases share, each under a key prefix of its own.

mod case;
mod compared;
mod expected;
mod target;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use case::Case;
use target::Place;

use crate::support::cluster::RedisCluster;
use crate::support::redis::Redis;

/// Most of a case is waiting for other processes; beyond this they only wait for each other.
const SIDE_BY_SIDE: usize = 4;

fn folders() -> Vec<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let entries = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Runs `check` on every folder and panics with all that went wrong, each with the name of its folder.
fn for_each(folders: &[PathBuf], check: impl Fn(&Path) -> Result<(), String> + Sync) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = folder.file_name().unwrap().to_string_lossy();
                    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(folder)));
                    match checked {
                        Ok(Ok(())) => {}
                        Ok(Err(what)) => failures.lock().unwrap().push(format!("{name}: {what}")),
                        Err(_) => failures.lock().unwrap().push(format!("{name}: panicked, see above")),
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    let list = failures.join("\n\n");
    assert!(failures.is_empty(), "{} of {} cases do not hold\n\n{list}\n", failures.len(), folders.len());
}

#[test]
fn every_case_holds_on_a_single_server() {
    let folders = folders();
    assert!(!folders.is_empty());
    for_each(&folders, |folder| Case::read(folder)?.run(&Place::Single(Redis::start())));
}

#[test]
fn every_case_that_asks_for_it_holds_on_a_cluster() {
    let folders: Vec<PathBuf> = folders().into_iter().filter(|folder| folder.join("cluster").exists()).collect();
    assert!(!folders.is_empty());
    let cluster = LazyLock::new(RedisCluster::start);
    let number = AtomicUsize::new(0);
    for_each(&folders, |folder| {
        let prefix = format!("case-{}:", number.fetch_add(1, Ordering::Relaxed));
        Case::read(folder)?.run(&Place::Cluster { cluster: &cluster, prefix })
    });
}
