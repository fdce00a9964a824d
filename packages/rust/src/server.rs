//! The server's process: starts it, waits until it is ready, stops it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::finding::{Found, SETTINGS_VARIABLE, TOKEN_VARIABLE};
use crate::{Builder, Client, Error};

const STOP_LIMIT: Duration = Duration::from_secs(5);
const LOG_LINES: usize = 30;
const LINE_ENDS: [char; 10] = ['\n', '\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];

/// A running process. It ends when its standard input closes, so it never outlives this process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Mutex<Child>,
    lifeline: Mutex<Option<ChildStdin>>,
    log: Arc<Mutex<VecDeque<String>>>,
    pub(crate) origin: Option<Origin>,
}

/// Where a cluster of a shared server was made: the control plane's URL, and the body of `POST /v1/clusters`.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) root: String,
    pub(crate) body: Value,
}

/// What a server prints when it is ready.
#[derive(Debug, Default)]
struct Addresses {
    brokers: Vec<String>,
    control: String,
    cluster: Option<Value>,
}

impl Server {
    /// Returns when the server is ready, or fails with the last lines of its log.
    pub(crate) fn start(found: &Found, options: &[String], with: &Builder) -> Result<(Self, Client), Error> {
        let (left, settings) = off_the_command_line(options);
        let mut command = Command::new(&found.program);
        command.args(&found.arguments).args(left);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A test's cluster is the same on every machine.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("UNDERSTUDY_")) {
            command.env_remove(name);
        }
        if !settings.is_empty() {
            command.env(SETTINGS_VARIABLE, settings.join("\n"));
        }
        if let Some(container) = &found.container {
            command.env(TOKEN_VARIABLE, &container.token);
        }
        let mut child = command.spawn().map_err(|error| Error::NotReady {
            why: format!("{} cannot be started: {error}", found.program.display()),
            log: String::new(),
        })?;
        let lifeline = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut server =
            Self { child: Mutex::new(child), lifeline: Mutex::new(lifeline), log: Arc::default(), origin: None };
        let (to_ready, ready) = channel();
        let (to_end, log_end) = channel();
        let log = Arc::clone(&server.log);
        thread::spawn(move || read_addresses(stdout, &to_ready));
        thread::spawn(move || {
            keep_log(stderr, &log);
            drop(to_end);
        });
        let addresses =
            server.ready(&ready, &log_end, with.time_to_start()).map_err(|error| match (error, &found.container) {
                (Error::NotReady { why, log }, Some(container)) => {
                    Error::NotReady { why, log: format!("{log}\n{}", container.searched) }
                }
                (error, _) => error,
            })?;
        let (root, _) = addresses.control.split_once("/clusters/").unwrap_or_default();
        server.origin = addresses.cluster.map(|body| Origin { root: root.to_owned(), body });
        let client = match &found.container {
            Some(it) => Client::new(&it.control, Some(&it.token), it.brokers.clone(), with.control_limit),
            None => Client::new(&addresses.control, None, addresses.brokers, with.control_limit),
        };
        Ok((server, client))
    }

    fn ready(&self, ready: &Receiver<Addresses>, log_end: &Receiver<()>, limit: Duration) -> Result<Addresses, Error> {
        let why = match ready.recv_timeout(limit) {
            Ok(addresses) => return Ok(addresses),
            Err(RecvTimeoutError::Timeout) => format!("it took longer than {limit:?}"),
            Err(RecvTimeoutError::Disconnected) => match self.ended_within(STOP_LIMIT) {
                Some(status) => format!("it ended with {status}"),
                None => "it closed its standard output".to_owned(),
            },
        };
        self.stop();
        let _ = log_end.recv_timeout(STOP_LIMIT);
        Err(Error::NotReady { why, log: self.log() })
    }

    /// The last lines that the server wrote to stderr.
    pub(crate) fn log(&self) -> String {
        let lines = locked(&self.log);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn pid(&self) -> u32 {
        locked(&self.child).id()
    }

    /// How the server ended, such as `the server (process 7) was killed by signal 9`, if it has, or does within the limit.
    pub(crate) fn ending(&self, limit: Duration) -> Option<String> {
        let status = self.ended_within(limit)?;
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal: Option<i32> = None;
        let how = match (signal, status.code()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, code) => format!("ended with code {}", code.unwrap_or_default()),
        };
        Some(format!("the server (process {}) {how}", self.pid()))
    }

    /// Closes the server's standard input, which stops it in order, and kills it if it does not end.
    pub(crate) fn stop(&self) {
        drop(locked(&self.lifeline).take());
        if self.ended_within(STOP_LIMIT).is_none() {
            let mut child = locked(&self.child);
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Whether a test has killed it.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended_within(Duration::ZERO).is_some()
    }

    fn ended_within(&self, limit: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            let status = locked(&self.child).try_wait();
            match status {
                Ok(Some(status)) => return Some(status),
                Ok(None) if began.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A value that one thread uses at a time, also after another one has panicked with it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_addresses(stdout: Option<impl Read>, ready: &Sender<Addresses>) {
    let mut found = Addresses::default();
    for line in lines(stdout) {
        if let Some(servers) = line.strip_prefix("bootstrap.servers=") {
            found.brokers = servers.split(',').map(str::to_owned).collect();
        } else if let Some(body) = line.strip_prefix("cluster=") {
            found.cluster = serde_json::from_str(body).ok();
        } else if let Some(control) = line.strip_prefix("control=") {
            found.control = control.to_owned();
            let _ = ready.send(std::mem::take(&mut found)); // after the first time, there is no receiver
        }
    }
}

fn keep_log(stderr: Option<impl Read>, log: &Mutex<VecDeque<String>>) {
    for line in lines(stderr) {
        let mut kept = locked(log);
        kept.push_back(line);
        if kept.len() > LOG_LINES {
            kept.pop_front();
        }
    }
}

/// The lines until the end, whatever their bytes.
fn lines(stream: Option<impl Read>) -> impl Iterator<Item = String> {
    let line = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned();
    stream.into_iter().flat_map(|stream| BufReader::new(stream).split(b'\n').map_while(Result::ok)).map(line)
}

/// Moves the values of `--set` to a list for the environment, and returns the remaining arguments: each user of this
/// machine can read a command line, so it must have no secrets. A value with a line end, or a blank at an end, stays.
fn off_the_command_line(options: &[String]) -> (Vec<&str>, Vec<&str>) {
    let (mut left, mut settings) = (Vec::new(), Vec::new());
    let fits = |value: &str| value.contains('=') && value == value.trim() && !value.contains(LINE_ENDS);
    let mut rest = options.iter().map(String::as_str).peekable();
    while let Some(option) = rest.next() {
        match (option.strip_prefix("--set="), rest.peek()) {
            (Some(value), _) if fits(value) => settings.push(value),
            (None, Some(_)) if option == "--set" => {
                let value = rest.next().unwrap_or_default();
                if fits(value) { settings.push(value) } else { left.extend([option, value]) }
            }
            _ => left.push(option),
        }
    }
    (left, settings)
}

#[cfg(test)]
mod tests {
    use super::off_the_command_line;

    #[test]
    fn settings_go_into_the_environment() {
        let given = ["--set", "a=b c", "--seed", "1", "--set=d=e", "--set", "f=g\nh", "--set", "i=j ", "--set"];
        let given = given.map(str::to_owned);
        let (left, settings) = off_the_command_line(&given);
        assert_eq!(settings, ["a=b c", "d=e"]);
        assert_eq!(left, ["--seed", "1", "--set", "f=g\nh", "--set", "i=j ", "--set"]);
    }
}
