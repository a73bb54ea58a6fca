//! What the exit code of the program says. The numbers are fixed: people script them.

/// The outcome of a command, as a shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// Everything that was asked for is done.
    Done,
    /// An error that nothing below describes.
    Unexpected,
    /// A command or option that does not exist, or options that exclude each other.
    Usage,
    /// A value that cannot be used, or one that is needed and not set.
    Configuration,
    /// A check before the start said no; nothing was changed.
    Refused,
    /// The two sides differ.
    Different,
    /// Not everything could be checked.
    NotChecked,
    /// The cut-over was not taken, and nothing was moved.
    NotCutOver,
    /// The cut-over was taken back.
    RolledBack,
    /// The run cannot go on without a person.
    Stuck,
    /// Done (for `verify`: equal), but rows are quarantined.
    Quarantined,
    /// Stopped by a signal; safe to run again.
    Interrupted,
}

impl ExitCode {
    /// Every code, in the order of the numbers.
    pub const ALL: [Self; 12] = [
        Self::Done,
        Self::Unexpected,
        Self::Usage,
        Self::Configuration,
        Self::Refused,
        Self::Different,
        Self::NotChecked,
        Self::NotCutOver,
        Self::RolledBack,
        Self::Stuck,
        Self::Quarantined,
        Self::Interrupted,
    ];

    /// The number that the process ends with.
    pub const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Configuration => 3,
            Self::Refused => 4,
            Self::Different => 5,
            Self::NotChecked => 6,
            Self::NotCutOver => 7,
            Self::RolledBack => 8,
            Self::Stuck => 9,
            Self::Quarantined => 10,
            Self::Interrupted => 130,
        }
    }

    /// What it says, as `--help` lists it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unexpected => "unexpected error",
            Self::Usage => "usage: no such command or option",
            Self::Configuration => "configuration: a value that cannot be used, or is missing",
            Self::Refused => "refused by a check before the start",
            Self::Different => "differences found",
            Self::NotChecked => "not everything could be checked",
            Self::NotCutOver => "cut-over not taken, nothing moved",
            Self::RolledBack => "rolled back",
            Self::Stuck => "stuck, a person is needed",
            Self::Quarantined => "done, but rows are quarantined",
            Self::Interrupted => "interrupted, safe to run again",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_manual() {
        let numbers: Vec<_> = ExitCode::ALL.iter().map(|code| code.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130]);
    }
}
