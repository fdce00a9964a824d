//! Prints a line of JSON for each step, as tests/clients/steps.py says.

use std::time::{Duration, Instant};

pub type Told = Result<String, String>;

pub fn step(name: &str, work: impl FnOnce() -> Told) {
    let began = Instant::now();
    let told = work();
    let ok = told.is_ok();
    let detail: String = told.unwrap_or_else(|error| error).chars().take(600).collect();
    println!(
        "{{\"step\": \"{name}\", \"ok\": {ok}, \"detail\": \"{}\", \"ms\": {}}}",
        escaped(&detail),
        began.elapsed().as_millis()
    );
}

/// With OBSERVE in the environment, what a call gave or refused is printed as a line of JSON, for
/// tests/differential/clients.py.
pub trait Observed {
    fn told(self, call: &str) -> Self;
}

impl<T: std::fmt::Debug> Observed for Result<T, String> {
    fn told(self, call: &str) -> Self {
        if std::env::var_os("OBSERVE").is_some() {
            let what = match &self {
                Ok(value) => format!("\"returned\": \"{}\"", escaped(&format!("{value:?}"))),
                Err(error) => format!("\"raised\": \"error\", \"told\": \"{}\"", escaped(error)),
            };
            println!("{{\"call\": \"{call}\", {what}}}");
        }
        self
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

pub fn expect(condition: bool, told: impl std::fmt::Debug) -> Result<(), String> {
    if condition {
        Ok(())
    } else {
        Err(format!("{told:?}"))
    }
}

/// Tries until it holds; a client's own waiting sets the pace.
pub fn until<T>(mut condition: impl FnMut() -> Result<Option<T>, String>, told: &str) -> Result<T, String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(value) = condition()? {
            return Ok(value);
        }
        expect(Instant::now() < deadline, told)?;
    }
}
