//! The loop of a driver of `understudy exam` in Rust: reads commands, calls the library, writes answers.

use std::io::{BufRead, Write};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

/// What a command is answered with where it has no result.
pub enum Failure {
    /// The library cannot do it: a sentence.
    Unsupported(String),
    /// An error object of the contract.
    Refused(Value),
}

pub type Answer = Result<Value, Failure>;

/// A command that the driver cannot carry out, such as one with a name that it does not know.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        refusal("other", None, &message)
    }
}

pub fn refusal(class: &str, code: Option<String>, message: &str) -> Failure {
    Failure::Refused(json!({"class": class, "code": code, "message": message}))
}

/// Kafka's name of a code that a library spells in camel case.
pub fn name_of(code: impl std::fmt::Debug) -> String {
    let mut out = String::new();
    for (index, letter) in format!("{code:?}").char_indices() {
        if index > 0 && letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

/// The version that a manifest pins of a package.
pub fn pinned(manifest: &str, package: &str) -> String {
    let rest = manifest.split(&format!("{package} = {{ version = \"=")).nth(1);
    rest.and_then(|rest| rest.split('"').next()).unwrap_or_default().into()
}

/// The fields of one command.
pub struct Command(Value);

impl Command {
    pub fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    pub fn number(&self, field: &str) -> i64 {
        self.0[field].as_i64().unwrap_or_default()
    }

    pub fn optional_number(&self, field: &str) -> Option<i64> {
        self.0[field].as_i64()
    }

    /// The name and value of a header, which is a list of the two.
    pub fn pair(&self) -> (&str, Option<&str>) {
        (self.0[0].as_str().unwrap_or_default(), self.0[1].as_str())
    }

    /// A number that may be missing: then there is no limit.
    pub fn limit(&self, field: &str) -> usize {
        self.0[field].as_u64().map_or(usize::MAX, |number| number as usize)
    }

    pub fn flag(&self, field: &str) -> bool {
        self.0[field].as_bool().unwrap_or_default()
    }

    pub fn list(&self, field: &str) -> impl Iterator<Item = Command> + '_ {
        self.0[field].as_array().into_iter().flatten().map(|each| Command(each.clone()))
    }

    pub fn texts(&self, field: &str) -> Vec<&str> {
        self.0[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn optional(&self, field: &str) -> Option<String> {
        self.0[field].as_str().map(Into::into)
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.number("timeout_ms").max(0) as u64)
    }
}

/// One library.
pub trait Library {
    const NAME: &'static str;
    const CAPABILITIES: &'static [&'static str];

    fn version(&self) -> String;

    /// Carries out a command; `None`: the driver has no such command.
    fn carry_out(&mut self, name: &str, command: &Command) -> Option<Answer>;
}

fn answer<L: Library>(library: &mut L, name: &str, command: &Command) -> Answer {
    match name {
        "quit" => Ok(json!({})),
        "hello" => Ok(json!({
            "protocol": 1, "library": L::NAME, "version": library.version(), "capabilities": L::CAPABILITIES,
        })),
        _ => library
            .carry_out(name, command)
            .unwrap_or_else(|| Err(Failure::Unsupported(format!("this driver has no {name}")))),
    }
}

/// Answers commands until `quit` or the end of stdin.
pub fn run<L: Library>(mut library: L) {
    for line in std::io::stdin().lock().lines() {
        let command = Command(serde_json::from_str(&line.expect("a line")).expect("JSON"));
        let name = command.text("command");
        let mut out = json!({"id": command.0["id"]});
        match answer(&mut library, name, &command) {
            Ok(result) => out["result"] = if result.is_null() { json!({}) } else { result },
            Err(Failure::Unsupported(reason)) => out["unsupported"] = reason.into(),
            Err(Failure::Refused(error)) => out["error"] = error,
        }
        println!("{out}");
        std::io::stdout().flush().expect("stdout");
        if name == "quit" {
            std::process::exit(0);
        }
    }
}

/// What becomes of a producer's records.
#[derive(Default)]
pub struct Outcomes {
    /// How many have no outcome yet, and the outcomes that `flush` has not returned yet.
    found: Mutex<(usize, Vec<Value>)>,
    changed: Condvar,
}

impl Outcomes {
    pub fn sent(&self) {
        self.found.lock().unwrap().0 += 1;
    }

    pub fn written(&self, id: usize, offset: i64) {
        self.add(json!({"id": id, "offset": offset}));
    }

    pub fn refused(&self, id: usize, failure: Failure) {
        if let Failure::Refused(error) = failure {
            self.add(json!({"id": id, "error": error}));
        }
    }

    fn add(&self, outcome: Value) {
        let mut found = self.found.lock().unwrap();
        found.0 -= 1;
        found.1.push(outcome);
        self.changed.notify_all();
    }

    /// Waits until all records have an outcome, and returns those that it has not returned before.
    pub fn flush(&self, until: Instant) -> Value {
        let left = until.saturating_duration_since(Instant::now());
        let waited = self.changed.wait_timeout_while(self.found.lock().unwrap(), left, |found| found.0 > 0);
        let mut found = waited.unwrap().0;
        json!({"outcomes": std::mem::take(&mut found.1), "pending": found.0})
    }
}
