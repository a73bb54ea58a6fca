//! Which sessions a piece of work covers.

/// A set of sessions that is read in one short transaction: a range of client ids, or those of a list that lie in it.
///
/// Ranges are by client id *as PostgreSQL orders it*; borders are compared in SQL only, since collations differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// First id, inclusive; `None` is open.
    pub lower: Option<String>,
    /// End, exclusive; `None` is open.
    pub upper: Option<String>,
    /// Of the range only these ids.
    pub listed: Option<Vec<String>>,
    /// Which of their rows are to be read.
    pub part: Part,
}

/// How much of a scope is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Sessions with rows, then contexts without rows.
    All,
    /// Contexts without rows only: the others are done.
    ContextsOnly,
}

impl Scope {
    /// All sessions.
    pub fn everything() -> Self {
        Self { lower: None, upper: None, listed: None, part: Part::All }
    }

    /// The part of it below an id.
    pub fn below(&self, client: &str) -> Self {
        Self { upper: Some(client.to_owned()), ..self.clone() }
    }

    /// The part of it from an id on.
    pub fn from(&self, client: &str) -> Self {
        Self { lower: Some(client.to_owned()), ..self.clone() }
    }

    /// Its contexts without rows.
    pub fn contexts_only(self) -> Self {
        Self { part: Part::ContextsOnly, ..self }
    }
}
