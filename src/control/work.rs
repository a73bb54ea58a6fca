//! Where the chunks of a run come from and where their results go: the control schema, or the memory of this process.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex as StdMutex};

use tokio::sync::Mutex;

use super::{Chunk, Control, ControlError, FindingCounts, Findings, FinishedChunk, Quarantine, RunState};
use crate::model::{Compared, Tally};
use crate::source::{Part, PlannedChunk};
use crate::target::NotedChunk;

/// The chunks of a run.
pub enum Work {
    /// Shared with other processes, and kept over an interruption.
    Recorded(RecordedWork),
    /// Of this process alone, and gone with it.
    Memory(MemoryWork),
}

/// The chunks of a run in the control schema, as one process sees them.
pub struct RecordedWork {
    /// Where.
    pub control: Control,
    /// The run.
    pub run: i64,
    /// This process.
    pub worker: i64,
    /// The chunks in the hands of this process; locked while one is claimed.
    pub held: Mutex<Vec<i64>>,
}

/// The chunks of a run that is recorded nowhere.
pub struct MemoryWork {
    state: StdMutex<MemoryState>,
    /// The file for quarantined rows of a copy, or for findings of a comparison.
    list: Option<Arc<StdMutex<File>>>,
}

#[derive(Default)]
struct MemoryState {
    open: VecDeque<Chunk>,
    claimed: usize,
    last_id: i64,
    done: Vec<(Chunk, Tally, Compared)>,
    findings: FindingCounts,
}

/// What a job does next.
pub enum Next {
    /// It copies this.
    Chunk(Chunk),
    /// Others are at work on the last chunks, and may give one back.
    Wait,
    /// All chunks are done.
    Over,
}

impl MemoryWork {
    /// All planned chunks, open; quarantined rows or findings go to `list`.
    pub fn new(planned: Vec<PlannedChunk>, list: Option<File>) -> Self {
        let mut state = MemoryState::default();
        for chunk in planned {
            state.push(chunk.scope, 0);
        }
        Self { state: StdMutex::new(state), list: list.map(|file| Arc::new(StdMutex::new(file))) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, MemoryState> {
        // Nothing that holds it can panic half way.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl MemoryState {
    /// What is about Redis alone comes when everything else is done.
    fn take(&mut self) -> Option<Chunk> {
        let next = self.open.iter().position(|chunk| chunk.scope.part != Part::TargetOnly || (self.claimed == 0 && self.open.len() == 1))?;
        self.open.remove(next)
    }

    fn push(&mut self, scope: crate::source::Scope, attempts: i32) {
        self.last_id += 1;
        self.open.push_back(Chunk { id: self.last_id, scope, attempts });
    }
}

impl Work {
    /// Takes the next chunk.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn next(&self) -> Result<Next, ControlError> {
        match self {
            Self::Recorded(work) => {
                let mut held = work.held.lock().await;
                if let Some(chunk) = work.control.claim(work.run, work.worker, &held).await? {
                    held.push(chunk.id);
                    return Ok(Next::Chunk(chunk));
                }
                drop(held);
                Ok(if work.control.all_done(work.run).await? { Next::Over } else { Next::Wait })
            }
            Self::Memory(work) => {
                let mut state = work.state();
                Ok(match state.take() {
                    Some(mut chunk) => {
                        chunk.attempts += 1;
                        state.claimed += 1;
                        Next::Chunk(chunk)
                    }
                    None if state.claimed > 0 || !state.open.is_empty() => Next::Wait,
                    None => Next::Over,
                })
            }
        }
    }

    /// Records a chunk as done.
    ///
    /// # Errors
    /// A failed statement, or the lease is lost.
    pub async fn done(&self, mut chunk: Chunk, finished: &FinishedChunk) -> Result<(), ControlError> {
        match self {
            Self::Recorded(work) => {
                work.control.finish_chunk(work.run, work.worker, &chunk, finished).await?;
                work.forget(chunk.id).await;
            }
            Self::Memory(work) => {
                let mut state = work.state();
                state.claimed -= 1;
                chunk.scope = finished.covered.clone();
                finished.rest.iter().for_each(|rest| state.push(rest.clone(), chunk.earlier_attempts()));
                state.done.push((chunk, finished.tally, finished.compared));
            }
        }
        Ok(())
    }

    /// Gives a chunk back. Where this try does not count, the next one still takes no session that stands there for its own.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn release(&self, mut chunk: Chunk, counts: bool) -> Result<(), ControlError> {
        if !counts {
            chunk.attempts = chunk.earlier_attempts();
        }
        match self {
            Self::Recorded(work) => {
                work.control.release_chunk(work.worker, chunk.id, chunk.attempts).await?;
                work.forget(chunk.id).await;
            }
            Self::Memory(work) => {
                let mut state = work.state();
                state.claimed -= 1;
                state.open.push_back(chunk);
            }
        }
        Ok(())
    }

    /// The chunks that are done, each with the number of the attempt that did it.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn done_chunks(&self) -> Result<Vec<NotedChunk>, ControlError> {
        match self {
            Self::Recorded(work) => work.control.done_chunks(work.run).await,
            Self::Memory(work) => Ok(work.state().done.iter().map(|(chunk, ..)| (chunk.id, chunk.attempts)).collect()),
        }
    }

    /// Opens done chunks again.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn reopen(&self, lost: &[i64]) -> Result<(), ControlError> {
        match self {
            Self::Recorded(work) => work.control.reopen_chunks(work.run, lost).await,
            Self::Memory(work) => {
                let mut state = work.state();
                let (again, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.done).into_iter().partition(|(chunk, ..)| lost.contains(&chunk.id));
                state.done = kept;
                state.open.extend(again.into_iter().map(|(chunk, ..)| chunk));
                Ok(())
            }
        }
    }

    /// Writes the findings of a chunk down, right before it is done.
    ///
    /// # Errors
    /// A failed statement, or a full disk.
    pub async fn found(&self, chunk: i64, findings: &Findings) -> Result<(), ControlError> {
        match self {
            Self::Recorded(work) => work.control.write_findings(work.run, chunk, findings).await,
            Self::Memory(work) => {
                if let Some(file) = &work.list {
                    let mut file = file.lock().map_err(|_| ControlError::File(std::io::Error::other("the file is in an unknown state")))?;
                    super::append_findings(&mut file, findings)?;
                }
                let mut state = work.state();
                findings.iter().for_each(|finding| *state.findings.entry(finding.kind).or_default() += 1);
                Ok(())
            }
        }
    }

    /// How many findings of each kind there are.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn finding_counts(&self) -> Result<FindingCounts, ControlError> {
        match self {
            Self::Recorded(work) => work.control.finding_counts(work.run).await,
            Self::Memory(work) => Ok(work.state().findings.clone()),
        }
    }

    /// The sum of what was compared.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn compared(&self) -> Result<Compared, ControlError> {
        match self {
            Self::Recorded(work) => work.control.compared(work.run).await,
            Self::Memory(work) => {
                let mut sum = Compared::default();
                work.state().done.iter().for_each(|(.., compared)| sum += *compared);
                Ok(sum)
            }
        }
    }

    /// The sum of what became of the rows.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn tally(&self) -> Result<Tally, ControlError> {
        match self {
            Self::Recorded(work) => work.control.tally(work.run).await,
            Self::Memory(work) => {
                let mut sum = Tally::default();
                work.state().done.iter().for_each(|(_, tally, _)| sum += *tally);
                Ok(sum)
            }
        }
    }

    /// Whether the last steps are this process's to take; `Some(state)` of the run when they are another's.
    ///
    /// # Errors
    /// A failed statement.
    pub async fn take_finish(&self) -> Result<Option<RunState>, ControlError> {
        match self {
            Self::Recorded(work) if work.control.take_finish(work.run, work.worker).await? => Ok(None),
            Self::Recorded(work) => Ok(Some(work.control.run_state(work.run).await?.0)),
            Self::Memory(_) => Ok(None),
        }
    }

    /// Where the rows of a chunk go that cannot be carried.
    pub fn quarantine(&self, chunk: i64) -> Quarantine {
        match self {
            Self::Recorded(work) => Quarantine::Recorded { control: work.control.clone(), run: work.run, chunk, buffer: Vec::new() },
            Self::Memory(MemoryWork { list: Some(file), .. }) => Quarantine::File { file: Arc::clone(file) },
            Self::Memory(_) => Quarantine::Counted,
        }
    }
}

impl RecordedWork {
    async fn forget(&self, chunk: i64) {
        self.held.lock().await.retain(|held| *held != chunk);
    }
}
