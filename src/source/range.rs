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
    /// Sessions with rows only: contexts without rows are another chunk's.
    RowsOnly,
    /// Contexts without rows only: sessions with rows are another chunk's.
    ContextsOnly,
    /// None: what a comparison finds in Redis alone is a chunk of its own.
    TargetOnly,
}

impl Part {
    /// The name under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::RowsOnly => "rows_only",
            Self::ContextsOnly => "contexts_only",
            Self::TargetOnly => "target_only",
        }
    }

    /// The part stored under a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::All, Self::RowsOnly, Self::ContextsOnly, Self::TargetOnly].into_iter().find(|part| part.name() == name)
    }
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

    /// What was covered, and what is left, when it was read down to `border` (inclusive) and not to its end; without one, the
    /// rows were all read and there was no time for contexts without rows.
    pub fn split(&self, border: Option<&str>) -> (Self, Vec<Self>) {
        match (self.part, border) {
            (Part::All, Some(border)) => {
                // One border could not say where both parts ended: the contexts become a chunk of their own.
                let covered = self.from(border);
                (covered.only(Part::RowsOnly), vec![self.below(border), covered.only(Part::ContextsOnly)])
            }
            (Part::All, None) => (self.only(Part::RowsOnly), vec![self.only(Part::ContextsOnly)]),
            (Part::RowsOnly | Part::ContextsOnly | Part::TargetOnly, Some(border)) => (self.from(border), vec![self.below(border)]),
            (Part::RowsOnly | Part::ContextsOnly | Part::TargetOnly, None) => (self.clone(), Vec::new()),
        }
    }

    /// The same ids with another part of their rows.
    pub fn only(&self, part: Part) -> Self {
        Self { part, ..self.clone() }
    }
}
