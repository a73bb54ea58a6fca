//! The layers laid over each other: for each setting the value of the strongest layer that has one, and where it came from.
//!
//! Each layer turns what it reads into the text that the option would take, so a value is parsed and refused in one place, whatever its layer.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{ConfigError, Problem};
use super::origin::{Origin, Place};
use super::setting::{Kind, SETTINGS, Setting};

/// The texts of one setting in one layer; one, unless the setting is a list.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// The texts, in the order given.
    pub texts: Vec<String>,
    /// Where they stand.
    pub origin: Origin,
}

/// The texts may hold a password, so only the origin is shown.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// What one layer says, or what all of them say together.
#[derive(Debug, Clone)]
pub struct Layers {
    given: [Option<Given>; SETTINGS.len()],
}

impl Default for Layers {
    fn default() -> Self {
        Self { given: [const { None }; SETTINGS.len()] }
    }
}

impl Layers {
    /// Puts a value into this layer, in place of what it said before.
    pub fn set(&mut self, setting: Setting, texts: Vec<String>, origin: Origin) {
        self.given[setting as usize] = Some(Given { texts, origin });
    }

    /// Takes a value out of this layer.
    pub fn unset(&mut self, setting: Setting) {
        self.given[setting as usize] = None;
    }

    /// Takes from a weaker layer what this one does not say.
    pub fn over(mut self, weaker: Self) -> Self {
        for (mine, theirs) in self.given.iter_mut().zip(weaker.given) {
            if mine.is_none() {
                *mine = theirs;
            }
        }
        self
    }

    /// The environment as a layer. `lookup` is `std::env::var_os`, or a table in a test.
    ///
    /// # Errors
    /// A variable that is not UTF-8, or a duration that is not a count of seconds.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        for spec in &SETTINGS {
            let Some((name, value)) = spec.variable.and_then(|name| Some((name, lookup(name)?))) else { continue };
            let origin = Origin::Variable(name);
            let text = value.into_string().map_err(|_| wrong(spec.setting, &origin, Problem::NotUtf8))?;
            if text.is_empty() && !spec.may_be_empty {
                continue;
            }
            let text = match spec.variable_means {
                Some(meaning) => meaning.to_owned(),
                None => from_variable(spec.setting, text, &origin)?,
            };
            layer.set(spec.setting, vec![text], origin);
        }
        Ok(layer)
    }

    /// The defaults of the table as a layer.
    pub fn defaults() -> Self {
        let mut layer = Self::default();
        for spec in &SETTINGS {
            if let Some(default) = spec.default {
                layer.set(spec.setting, vec![default.to_owned()], Origin::Default);
            }
        }
        layer
    }

    /// The value of a setting, if there is one.
    pub fn get(&self, setting: Setting) -> Option<&Given> {
        self.given[setting as usize].as_ref()
    }

    /// What to call a setting in an error: by the layer that it came from.
    pub fn name_of(&self, setting: Setting) -> String {
        self.get(setting).map_or_else(|| format!("--{}", setting.spec().name), |given| given.origin.name_of(setting))
    }

    /// The error that this setting's value is wrong.
    pub fn wrong(&self, setting: Setting, problem: impl Into<Problem>) -> ConfigError {
        ConfigError::Value { name: self.name_of(setting), problem: problem.into() }
    }

    /// The one text of a setting.
    ///
    /// # Errors
    /// An empty text where that is no value.
    pub fn text(&self, setting: Setting) -> Result<Option<&str>, ConfigError> {
        Ok(self.texts(setting)?.last().map(String::as_str))
    }

    /// All texts of a setting; none if it is not set.
    ///
    /// # Errors
    /// An empty text where that is no value, or a NUL.
    pub fn texts(&self, setting: Setting) -> Result<&[String], ConfigError> {
        let texts = self.get(setting).map_or(&[][..], |given| &given.texts);
        if !setting.spec().may_be_empty && texts.iter().any(String::is_empty) {
            return Err(self.wrong(setting, Problem::Empty));
        }
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(self.wrong(setting, Problem::Nul));
        }
        Ok(texts)
    }

    /// The path that a setting names.
    ///
    /// # Errors
    /// See [`Self::text`].
    pub fn path(&self, setting: Setting) -> Result<Option<PathBuf>, ConfigError> {
        Ok(self.text(setting)?.map(PathBuf::from))
    }

    /// The path of a file that has to be there.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn existing_file(&self, setting: Setting) -> Result<Option<PathBuf>, ConfigError> {
        let path = self.path(setting)?;
        if let Some(path) = &path {
            check_readable(path).map_err(|problem| self.wrong(setting, problem))?;
        }
        Ok(path)
    }

    /// Whether a flag is on.
    ///
    /// # Errors
    /// A text that is neither `true` nor `false`.
    pub fn flag(&self, setting: Setting) -> Result<bool, ConfigError> {
        const WORDS: &[&str] = &["true", "false"];
        match self.text(setting)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(self.wrong(setting, Problem::NotAChoice { value: other.into(), words: WORDS })),
        }
    }

    /// How often a counted flag was given.
    ///
    /// # Errors
    /// A text that is not a number.
    pub fn count(&self, setting: Setting) -> Result<u64, ConfigError> {
        self.text(setting)?.map_or(Ok(0), |text| text.parse().map_err(|_| self.wrong(setting, Problem::NotANumber(text.into()))))
    }

    /// One of `variants`, which stand in the order of the words in the table.
    ///
    /// # Errors
    /// Another word, or none.
    pub fn choice<T: Copy>(&self, setting: Setting, variants: &[T]) -> Result<T, ConfigError> {
        let Kind::Choice(words) = setting.spec().kind else { return Err(ConfigError::NotSet(setting)) };
        let text = self.text(setting)?.ok_or(ConfigError::NotSet(setting))?;
        words
            .iter()
            .zip(variants)
            .find_map(|(word, variant)| (*word == text).then_some(*variant))
            .ok_or_else(|| self.wrong(setting, Problem::NotAChoice { value: text.into(), words }))
    }

    /// A whole number within the bounds of the table, in the width of its field.
    ///
    /// # Errors
    /// Not a number, or out of bounds.
    pub fn integer<T: TryFrom<u64>>(&self, setting: Setting) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(setting)? else { return Ok(None) };
        let (min, max) = match setting.spec().kind {
            Kind::Integer { min, max } => (min, max),
            _ => (0, u64::MAX),
        };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_negative = text.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
            let problem = if is_negative { out_of_range(text, min, max) } else { Problem::NotANumber(text.into()) };
            return Err(self.wrong(setting, problem));
        }
        // Only digits: what does not parse is too large.
        let number = text.parse::<u64>().ok().filter(|number| (min..=max).contains(number)).and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.wrong(setting, out_of_range(text, min, max)))
    }

    /// Like [`Self::integer`], of a setting that has a default.
    ///
    /// # Errors
    /// See [`Self::integer`].
    pub fn set_integer<T: TryFrom<u64>>(&self, setting: Setting) -> Result<T, ConfigError> {
        self.integer(setting)?.ok_or(ConfigError::NotSet(setting))
    }

    /// Whole seconds within the bounds of the table, of a setting that has a default.
    ///
    /// # Errors
    /// Not a duration, without a unit, or out of bounds.
    pub fn duration(&self, setting: Setting) -> Result<Duration, ConfigError> {
        let text = self.text(setting)?.ok_or(ConfigError::NotSet(setting))?;
        let (min_seconds, max_seconds) = match setting.spec().kind {
            Kind::Duration { min_seconds, max_seconds } => (min_seconds, max_seconds),
            _ => (0, u64::MAX),
        };
        let duration = humantime::parse_duration(text).map_err(|error| {
            let bare_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let problem = match error {
                humantime::DurationError::NumberOverflow => out_of_time(text, min_seconds, max_seconds),
                _ if bare_number => Problem::NoUnit(text.into()),
                _ => Problem::NotADuration(text.into()),
            };
            self.wrong(setting, problem)
        })?;
        if duration.subsec_nanos() != 0 || !(min_seconds..=max_seconds).contains(&duration.as_secs()) {
            return Err(self.wrong(setting, out_of_time(text, min_seconds, max_seconds)));
        }
        Ok(duration)
    }
}

fn out_of_range(text: &str, min: u64, max: u64) -> Problem {
    Problem::OutOfRange { value: text.into(), min, max }
}

fn out_of_time(text: &str, min_seconds: u64, max_seconds: u64) -> Problem {
    Problem::DurationOutOfRange { value: text.into(), min_seconds, max_seconds }
}

/// The error that a value is wrong, where it is not yet in a layer.
pub(super) fn wrong(setting: Setting, origin: &Origin, problem: impl Into<Problem>) -> ConfigError {
    ConfigError::Value { name: origin.name_of(setting), problem: problem.into() }
}

/// The text that the option would take, from that of a variable: the broker's durations are bare seconds.
pub(super) fn from_variable(setting: Setting, text: String, origin: &Origin) -> Result<String, ConfigError> {
    if !matches!(setting.spec().kind, Kind::Duration { .. }) {
        return Ok(text);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) { Ok(format!("{text}s")) } else { Err(wrong(setting, origin, Problem::NotSeconds(text))) }
}

/// That a file can be opened, so that a wrong path is told before anything starts.
pub(super) fn check_readable(path: &Path) -> Result<(), Problem> {
    let unreadable = |reason| Problem::UnreadableFile { path: path.into(), reason };
    let is_directory = std::fs::File::open(path).and_then(|file| file.metadata()).map_err(|error| unreadable(error.kind()))?.is_dir();
    if is_directory { Err(unreadable(std::io::ErrorKind::IsADirectory)) } else { Ok(()) }
}

/// The line, counted from 1, of a byte of a text.
pub(super) fn place(path: &Path, text: &str, byte: usize) -> Place {
    let line = 1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count();
    Place { path: path.into(), line }
}

/// The nearest word where it is so near that it may have been meant: a security setting must not be guessed.
pub(super) fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest(word, known).filter(|other| strsim::jaro_winkler(word, other) >= 0.8)
}

/// The known word that is most like the one given: by its letters in order for a slip of the finger, by its pairs of letters for a part of a name,
/// and before all others where it is one of the name's own words.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_a_word_of = |other: &str| f64::from(u8::from(other.split('-').any(|part| part == word)));
    let likeness = |other: &str| strsim::jaro_winkler(word, other) + strsim::sorensen_dice(word, other) + is_a_word_of(other);
    known.max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
}
