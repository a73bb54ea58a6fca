//! What `check` says: one thing that was looked at, how it stands, and what mends it.

use std::error::Error;

use serde::Serialize;

/// How a thing stands. The order is that of the weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing to do.
    Ok,
    /// A copy works; a person should have read this before. What could not be seen is at least this.
    Warning,
    /// A copy would be refused, or end badly.
    Blocker,
}

/// Where it was looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// The source.
    Postgresql,
    /// The target.
    Redis,
    /// The rows.
    Data,
    /// What was given to this program.
    Settings,
    /// What each way to migrate needs.
    Modes,
}

impl Area {
    /// The heading in the text.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Postgresql => "PostgreSQL",
            Self::Redis => "Redis",
            Self::Data => "Data",
            Self::Settings => "Settings",
            Self::Modes => "Modes",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where.
    pub area: Area,
    /// What; stable, for scripts.
    pub name: &'static str,
    /// How it stands.
    pub level: Level,
    /// What was seen.
    pub measured: String,
    /// The command or the SQL that mends it, with who runs it; `None` where there is nothing to mend.
    pub mend: Option<String>,
}

impl Finding {
    /// Nothing to do.
    pub fn ok(area: Area, name: &'static str, measured: impl Into<String>) -> Self {
        Self { area, name, level: Level::Ok, measured: measured.into(), mend: None }
    }

    /// To be read before.
    pub fn warning(area: Area, name: &'static str, measured: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::ok(area, name, measured) }
    }

    /// In the way.
    pub fn blocker(area: Area, name: &'static str, measured: impl Into<String>) -> Self {
        Self { level: Level::Blocker, ..Self::ok(area, name, measured) }
    }

    /// What could not be seen: never taken for well.
    pub fn unknown(area: Area, name: &'static str, error: &dyn Error) -> Self {
        Self::warning(area, name, format!("unknown: {}", told(error)))
    }

    /// With what mends it.
    #[must_use]
    pub fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }

    /// The same where there is something.
    #[must_use]
    pub fn maybe_mend(self, mend: Option<String>) -> Self {
        Self { mend, ..self }
    }
}

/// An error with its causes, each once, on one line.
pub fn told(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    texts.extend(std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string));
    texts.dedup();
    texts.join(": ")
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes as a person reads them.
pub fn bytes(number: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    // Lossless below 2^53, and a person does not see the last bytes above.
    #[allow(clippy::cast_precision_loss)]
    let scaled = UNITS.iter().find(|(unit, _)| number >= *unit).map(|(unit, name)| format!("{:.1} {name}", number as f64 / *unit as f64));
    scaled.unwrap_or_else(|| format!("{number} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_keeps_them_short() {
        for (number, text) in [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn what_could_not_be_seen_is_never_well() {
        let finding = Finding::unknown(Area::Redis, "clients", &std::io::Error::other("no"));
        assert_eq!((finding.level, finding.measured.as_str()), (Level::Warning, "unknown: no"));
    }
}
