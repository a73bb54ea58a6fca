//! When a difference counts (architecture: no false "equal", no false alarm).
//!
//! A session that differs is read as P1, R1, P2, R2, P3: PostgreSQL, Redis, and again. While brokers write, and while
//! something carries their changes on to Redis, a difference may be nothing but the time that this takes. So it counts only
//! when it stands in R1 and R2, nothing moved in PostgreSQL from P1 to P3, whoever was writing at R1 had ended before P2,
//! and what carries the changes had passed P2 before R2.

use super::Differences;

/// How far whatever carries changes to Redis was, before R2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// Nothing carries changes: what stands in PostgreSQL is not on its way. Set where no dual write runs.
    NothingFollows,
    /// It had passed the position of P2. Set while a dual write runs.
    Passed,
    /// It had not, or nobody knows. Set while a dual write runs.
    Behind,
}

/// What one round of reading a session gave.
#[derive(Debug)]
pub struct Round<'r> {
    /// Whether P1, P2 and P3 are the same rows.
    pub rows_held_still: bool,
    /// Whether every transaction that could write to the tables at R1 had ended before P2.
    pub writers_had_ended: bool,
    /// How far the changes were carried before R2.
    pub applied: Applied,
    /// P1 against R1.
    pub first: &'r Differences,
    /// P2 against R2.
    pub second: &'r Differences,
}

/// What a round says of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no difference.
    Equal,
    /// These differences count.
    Different(Differences),
    /// Something moved: to be read again. These differences, if any, count already.
    Moving(Differences),
}

impl Round<'_> {
    /// Judges it.
    pub fn verdict(&self) -> Verdict {
        if self.second.is_none() {
            return Verdict::Equal;
        }
        let held_still = self.rows_held_still && self.writers_had_ended && self.applied != Applied::Behind;
        match (held_still, self.second.in_both(self.first)) {
            (false, _) => Verdict::Moving(Differences::default()),
            (true, standing) if standing == *self.second => Verdict::Different(standing),
            (true, standing) => Verdict::Moving(standing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClientId, Finding, FindingKind};

    fn missing(packet_ids: &[u16]) -> Differences {
        let finding = |&packet_id: &u16| Finding {
            client: ClientId::new("dev"),
            kind: FindingKind::MissingMessage,
            packet_id: Some(packet_id),
            serial_number: None,
            detail: String::new(),
        };
        Differences { findings: packet_ids.iter().map(finding).collect(), unlisted: 0 }
    }

    fn verdict(first: &[u16], second: &[u16], change: impl FnOnce(&mut Round<'_>)) -> Verdict {
        let (first, second) = (missing(first), missing(second));
        let mut round = Round { rows_held_still: true, writers_had_ended: true, applied: Applied::NothingFollows, first: &first, second: &second };
        change(&mut round);
        round.verdict()
    }

    #[test]
    fn a_difference_that_stands_while_nothing_moves_counts() {
        assert_eq!(verdict(&[1, 2], &[1, 2], |_| ()), Verdict::Different(missing(&[1, 2])));
        assert_eq!(verdict(&[1, 2], &[2], |_| ()), Verdict::Different(missing(&[2])));
        assert_eq!(verdict(&[1], &[1], |round| round.applied = Applied::Passed), Verdict::Different(missing(&[1])));
    }

    #[test]
    fn one_that_is_gone_at_the_end_never_counts() {
        assert_eq!(verdict(&[1], &[], |_| ()), Verdict::Equal);
        assert_eq!(verdict(&[1], &[], |round| round.rows_held_still = false), Verdict::Equal);
    }

    #[test]
    fn nothing_counts_while_anything_moves() {
        let moving = Verdict::Moving(Differences::default());
        assert_eq!(verdict(&[1], &[1], |round| round.rows_held_still = false), moving);
        assert_eq!(verdict(&[1], &[1], |round| round.writers_had_ended = false), moving);
        assert_eq!(verdict(&[1], &[1], |round| round.applied = Applied::Behind), moving);
    }

    #[test]
    fn one_that_came_meanwhile_is_looked_at_again() {
        assert_eq!(verdict(&[1], &[1, 2], |_| ()), Verdict::Moving(missing(&[1])));
        assert_eq!(verdict(&[], &[2], |_| ()), Verdict::Moving(Differences::default()));
    }
}
