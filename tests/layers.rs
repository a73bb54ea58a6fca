//! The shape of the source: imports only point downwards, a library lives in one folder, files and functions stay small.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What each layer may use beside itself. A layer that is not here may use nothing, so a further one must be put in its place first.
const BELOW: [(&str, &[&str]); 13] = [
    ("model", &[]),
    ("config", &["model"]),
    ("observe", &["config", "model"]),
    ("source", &["config", "observe", "model"]),
    ("target", &["config", "observe", "model"]),
    ("control", &["source", "target", "config", "observe", "model"]),
    ("copy", &["control", "source", "target", "config", "observe", "model"]),
    ("migrate", &["copy", "control", "source", "target", "config", "observe", "model"]),
    ("check", &["copy", "control", "source", "target", "config", "observe", "model"]),
    ("dual_write", &["copy", "control", "source", "target", "config", "observe", "model"]),
    ("verify", &["copy", "control", "source", "target", "config", "observe", "model"]),
    ("cutover", &["check", "migrate", "dual_write", "verify", "copy", "control", "source", "target", "config", "observe", "model"]),
    ("cli", &["cutover", "check", "migrate", "dual_write", "verify", "copy", "control", "source", "target", "config", "observe", "model"]),
];

/// The folders in which a library may be named.
const HOMES: [(&str, &[&str]); 7] = [
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("redis", &["target"]),
    ("sqlx", &["source", "control"]),
    ("indicatif", &["observe"]),
    ("tracing_subscriber", &["observe"]),
];

/// Those that pass a connection on, and name its type for that.
const CONNECTION_PASSERS: [&str; 4] = ["migrate", "copy", "dual_write", "verify"];
const MOST_FILE_LINES: usize = 400;
const MOST_FUNCTION_LINES: usize = 70;
const FORBIDDEN_NAMES: [&str; 8] = ["utils", "util", "common", "helpers", "helper", "types", "impl", "misc"];
const FORBIDDEN_CODE: [&str; 5] = [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "TODO"];

/// A file by its path under the package, and its text.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// The folder under `src/`, or the file itself where it is not in one.
    fn layer(&self) -> &str {
        let place = self.path.strip_prefix("src").unwrap();
        Path::new(place.components().next().unwrap().as_os_str()).file_stem().unwrap().to_str().unwrap()
    }

    /// Its code without comments and without its tests.
    fn code(&self) -> Vec<&str> {
        if self.path.ends_with("tests.rs") {
            return Vec::new();
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(3).position(|three| three[0] == "#[cfg(test)]" && three[1..].iter().any(|line| line.starts_with("mod ")));
        lines[..tests.unwrap_or(lines.len())].to_vec()
    }

    /// Every path that a `use` of the code imports, written out: `crate::a::{b, c::D}` is two.
    fn imports(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let text: String = self.code().into_iter().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
        for (at, _) in text.match_indices("use ") {
            let line = text[..at].rsplit('\n').next().unwrap().trim();
            if line.is_empty() || line.starts_with("pub") {
                let tree = text[at + 4..].split(';').next().unwrap();
                write_out("", tree, &mut paths);
            }
        }
        paths
    }

    /// The libraries and layers that its code names anywhere, with what follows the name.
    fn names(&self) -> BTreeSet<(String, String)> {
        let layered = |path: &str| match path.strip_prefix("crate::") {
            Some(rest) => format!("crate::{}", rest.split("::").next().unwrap()),
            None => path.split("::").next().unwrap().to_owned(),
        };
        let mut names: BTreeSet<(String, String)> = self.imports().into_iter().map(|path| (layered(&path), path)).collect();
        for line in self.code().into_iter().map(str::trim).filter(|line| !line.starts_with("//") && !line.contains("use ")) {
            for word in line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).filter(|word| word.contains("::")) {
                names.insert((layered(word), word.to_owned()));
            }
        }
        names
    }
}

/// Adds the paths of one tree of a `use`.
fn write_out(before: &str, tree: &str, paths: &mut Vec<String>) {
    let mut depth = 0;
    let mut start = 0;
    for (at, letter) in tree.char_indices().chain([(tree.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let branch = tree[start..at].trim();
                start = (at + 1).min(tree.len());
                match branch.split_once('{') {
                    Some((head, tail)) => write_out(&format!("{before}{}", head.trim()), tail.rsplit_once('}').unwrap().0, paths),
                    None if !branch.is_empty() => paths.push(format!("{before}{branch}")),
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// Arrows that do not point down.
fn upward(file: &File) -> Vec<String> {
    let layer = file.layer();
    if matches!(layer, "main" | "lib") {
        return Vec::new();
    }
    let below = BELOW.iter().find(|(name, _)| *name == layer).map_or(&[][..], |(_, below)| below);
    let layers = file.names().into_iter().filter_map(|(name, path)| Some((name.strip_prefix("crate::")?.to_owned(), path)));
    let wrong = layers.filter(|(name, _)| name != layer && name.starts_with(char::is_lowercase) && !below.contains(&name.as_str()));
    wrong.map(|(_, path)| format!("{}: {layer} must not know {path}", file.path.display())).collect()
}

/// Libraries outside their folder.
fn astray(file: &File) -> Vec<String> {
    let layer = file.layer();
    let own_modules: Vec<&str> = match layer {
        "config" => vec!["redis"],
        _ => Vec::new(),
    };
    let mut wrong = Vec::new();
    for (name, path) in file.names() {
        let Some((_, homes)) = HOMES.iter().find(|(library, _)| *library == name) else { continue };
        let is_connection = path == "sqlx::PgConnection" && CONNECTION_PASSERS.contains(&layer);
        if !homes.contains(&layer) && !own_modules.contains(&name.as_str()) && !is_connection {
            wrong.push(format!("{}: {path} outside {homes:?}", file.path.display()));
        }
    }
    wrong
}

/// What is too long, has a name that says nothing, or ends the process instead of telling.
fn untidy(file: &File) -> Vec<String> {
    let path = file.path.display();
    let mut wrong = Vec::new();
    let code = file.code();
    if code.len() > MOST_FILE_LINES {
        wrong.push(format!("{path}: {} lines", code.len()));
    }
    for part in file.path.components().map(|part| Path::new(part.as_os_str()).file_stem().unwrap().to_str().unwrap()) {
        if FORBIDDEN_NAMES.contains(&part) {
            wrong.push(format!("{path}: a name that says nothing"));
        }
    }
    for (at, line) in code.iter().enumerate() {
        let is_text = line.trim_start().starts_with("//");
        for forbidden in FORBIDDEN_CODE.iter().filter(|forbidden| line.contains(**forbidden) && (!is_text || **forbidden == "TODO")) {
            wrong.push(format!("{path}:{}: {forbidden}", at + 1));
        }
    }
    wrong.extend(long_functions(file));
    wrong
}

/// rustfmt puts the closing brace of a function under its first letter.
fn long_functions(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines: Vec<&str> = file.text.lines().collect();
    for (first, line) in lines.iter().enumerate() {
        let head = line.trim_start();
        let words =
            ["fn ", "pub fn ", "async fn ", "pub async fn ", "pub(super) fn ", "pub(super) async fn ", "pub(crate) fn ", "pub(crate) async fn "];
        if !words.iter().chain(&["const fn ", "pub const fn "]).any(|word| head.starts_with(word)) {
            continue;
        }
        let brace = format!("{}}}", &line[..line.len() - head.len()]);
        let length = lines[first..].iter().position(|line| *line == brace).map_or(1, |last| last + 1);
        if length > MOST_FUNCTION_LINES && !head.trim_end().ends_with(';') {
            wrong.push(format!("{}:{}: a function of {length} lines", file.path.display(), first + 1));
        }
    }
    wrong
}

fn files(folder: &str) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(File { text: std::fs::read_to_string(&path).unwrap(), path: path.strip_prefix(root).unwrap().to_owned() });
            }
        }
    }
    assert!(!found.is_empty(), "{folder} holds no source");
    found
}

fn findings(folder: &str, rule: fn(&File) -> Vec<String>) -> String {
    files(folder).iter().flat_map(rule).map(|line| line + "\n").collect()
}

#[test]
fn no_layer_knows_one_beside_or_above_it() {
    assert_eq!(findings("src", upward), "");
}

#[test]
fn every_library_is_named_in_its_own_folder_only() {
    assert_eq!(findings("src", astray), "");
}

#[test]
fn files_and_functions_are_short_and_nothing_ends_the_process_without_a_word() {
    assert_eq!(findings("src", untidy), "");
    let too_long = |file: &File| {
        let lines = file.text.lines().count();
        let file_is_long = (lines > MOST_FILE_LINES).then(|| format!("{}: {lines} lines", file.path.display()));
        file_is_long.into_iter().chain(long_functions(file)).collect()
    };
    assert_eq!(findings("tests", too_long), "");
}

#[test]
fn what_breaks_a_rule_is_found() {
    let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
    let found = |rule: fn(&File) -> Vec<String>, path: &str, text: &str| rule(&file(path, text)).len();
    for (path, text) in [
        ("src/source/a.rs", "use crate::target::Link;"),
        ("src/target/a.rs", "use crate::{config::Config, source::Source};"),
        ("src/verify/a.rs", "use crate::{\n    copy::Copier,\n    migrate::{Report},\n};"),
        ("src/model/a.rs", "fn f() { crate::config::load() }"),
        ("src/config/a.rs", "use crate::observe::log;"),
        ("src/copy/a.rs", "pub use crate::cli::Program;"),
        ("src/no_such_layer/a.rs", "use crate::model::Rules;"),
    ] {
        assert_eq!(found(upward, path, text), 1, "{path}: {text}");
    }
    for (path, text) in [
        ("src/config/a.rs", "use clap::Arg;"),
        ("src/copy/a.rs", "use redis::{Cmd};"),
        ("src/copy/a.rs", "fn f(error: redis::RedisError) {}"),
        ("src/migrate/a.rs", "use sqlx::PgPool;"),
        ("src/cli/a.rs", "use indicatif::ProgressBar;"),
    ] {
        assert_eq!(found(astray, path, text), 1, "{path}: {text}");
    }
    for (path, text) in
        [("src/copy/a.rs", "use sqlx::PgConnection;"), ("src/config/a.rs", "use super::redis::Mode;"), ("src/cli/a.rs", "use clap::Arg;")]
    {
        assert_eq!(found(astray, path, text), 0, "{path}: {text}");
    }
    let long = format!("    pub fn f() {{\n{}    }}\n", "        g();\n".repeat(69));
    for (path, text) in [
        ("src/copy/utils.rs", ""),
        ("src/common/mod.rs", ""),
        ("src/copy/a.rs", "a.unwrap();"),
        ("src/copy/a.rs", "// TODO later"),
        ("src/copy/a.rs", "dbg!(x)"),
        ("src/copy/a.rs", &"\n".repeat(401)),
        ("src/copy/a.rs", &long),
    ] {
        assert_eq!(found(untidy, path, text), 1, "{path}: {text}");
    }
    let tested = format!("{}#[cfg(test)]\nmod tests {{\n    a.unwrap();\n}}\n", "\n".repeat(400));
    assert_eq!(found(untidy, "src/copy/a.rs", &tested), 0);
}
