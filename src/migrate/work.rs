//! Where the chunks of a run come from and where their results go: the control schema, or the memory of this process.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex as StdMutex};

use tokio::sync::Mutex;

use crate::control::{Chunk, Control, ControlError, FinishedChunk, Quarantine, RunState};
use crate::model::Tally;
use crate::source::PlannedChunk;
use crate::target::NotedChunk;

/// The chunks of a run.
pub(super) enum Work {
    /// Shared with other processes, and kept over an interruption.
    Recorded(RecordedWork),
    /// Of this process alone, and gone with it.
    Memory(MemoryWork),
}

pub(super) struct RecordedWork {
    pub control: Control,
    pub run: i64,
    pub worker: i64,
    /// The chunks in the hands of this process; locked while one is claimed.
    pub held: Mutex<Vec<i64>>,
}

pub(super) struct MemoryWork {
    state: StdMutex<MemoryState>,
    quarantine: Option<Arc<StdMutex<File>>>,
}

#[derive(Default)]
struct MemoryState {
    open: VecDeque<Chunk>,
    claimed: usize,
    last_id: i64,
    done: Vec<(Chunk, Tally)>,
}

/// What a job does next.
pub(super) enum Next {
    /// It copies this.
    Chunk(Chunk),
    /// Others are at work on the last chunks, and may give one back.
    Wait,
    /// All chunks are done.
    Over,
}

impl MemoryWork {
    pub(super) fn new(planned: Vec<PlannedChunk>, quarantine: Option<File>) -> Self {
        let mut state = MemoryState::default();
        for chunk in planned {
            state.push(chunk.scope, 0);
        }
        Self { state: StdMutex::new(state), quarantine: quarantine.map(|file| Arc::new(StdMutex::new(file))) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, MemoryState> {
        // Nothing that holds it can panic half way.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl MemoryState {
    fn push(&mut self, scope: crate::source::Scope, attempts: i32) {
        self.last_id += 1;
        self.open.push_back(Chunk { id: self.last_id, scope, attempts });
    }
}

impl Work {
    pub(super) async fn next(&self) -> Result<Next, ControlError> {
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
                Ok(match state.open.pop_front() {
                    Some(mut chunk) => {
                        chunk.attempts += 1;
                        state.claimed += 1;
                        Next::Chunk(chunk)
                    }
                    None if state.claimed > 0 => Next::Wait,
                    None => Next::Over,
                })
            }
        }
    }

    pub(super) async fn done(&self, mut chunk: Chunk, finished: &FinishedChunk) -> Result<(), ControlError> {
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
                state.done.push((chunk, finished.tally));
            }
        }
        Ok(())
    }

    /// Gives a chunk back. Where this try does not count, the next one still takes no session that stands there for its own.
    pub(super) async fn release(&self, mut chunk: Chunk, counts: bool) -> Result<(), ControlError> {
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
    pub(super) async fn done_chunks(&self) -> Result<Vec<NotedChunk>, ControlError> {
        match self {
            Self::Recorded(work) => work.control.done_chunks(work.run).await,
            Self::Memory(work) => Ok(work.state().done.iter().map(|(chunk, _)| (chunk.id, chunk.attempts)).collect()),
        }
    }

    /// Opens done chunks again.
    pub(super) async fn reopen(&self, lost: &[i64]) -> Result<(), ControlError> {
        match self {
            Self::Recorded(work) => work.control.reopen_chunks(work.run, lost).await,
            Self::Memory(work) => {
                let mut state = work.state();
                let (again, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.done).into_iter().partition(|(chunk, _)| lost.contains(&chunk.id));
                state.done = kept;
                state.open.extend(again.into_iter().map(|(chunk, _)| chunk));
                Ok(())
            }
        }
    }

    pub(super) async fn tally(&self) -> Result<Tally, ControlError> {
        match self {
            Self::Recorded(work) => work.control.tally(work.run).await,
            Self::Memory(work) => {
                let mut sum = Tally::default();
                work.state().done.iter().for_each(|(_, tally)| sum += *tally);
                Ok(sum)
            }
        }
    }

    /// Whether the last steps are this process's to take; `Some(state)` of the run when they are another's.
    pub(super) async fn take_finish(&self) -> Result<Option<RunState>, ControlError> {
        match self {
            Self::Recorded(work) if work.control.take_finish(work.run, work.worker).await? => Ok(None),
            Self::Recorded(work) => Ok(Some(work.control.run_state(work.run).await?.0)),
            Self::Memory(_) => Ok(None),
        }
    }

    pub(super) fn quarantine(&self, chunk: i64) -> Quarantine {
        match self {
            Self::Recorded(work) => Quarantine::Recorded { control: work.control.clone(), run: work.run, chunk, buffer: Vec::new() },
            Self::Memory(MemoryWork { quarantine: Some(file), .. }) => Quarantine::File { file: Arc::clone(file) },
            Self::Memory(_) => Quarantine::Counted,
        }
    }
}

impl RecordedWork {
    async fn forget(&self, chunk: i64) {
        self.held.lock().await.retain(|held| *held != chunk);
    }
}
