//! A cluster of a test, and the idle servers that the next tests use.

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, thread};

use serde_json::Value;

use crate::server::{Server, locked};
use crate::{Builder, Client, Error, FaultState};

const CONFLICT: u16 = 409;

/// Time within which the process of a server that does not answer may turn out to have ended.
const END_LIMIT: Duration = Duration::from_secs(1);

/// The idle clusters with their options; their servers end with this process, whose pipes they read.
static IDLE: Mutex<Vec<(Builder, Client, Arc<Server>)>> = Mutex::new(Vec::new());

/// For each set of options, how its clusters are made.
static MAKERS: Mutex<Vec<(Builder, Arc<Mutex<Maker>>)>> = Mutex::new(Vec::new());

#[derive(Default)]
enum Maker {
    /// No cluster with these options has been made yet.
    #[default]
    Unknown,
    /// With this process they begin and end, in the shared server.
    Shared(Arc<Server>),
    /// Each has a server of its own.
    Own,
}

/// A cluster that belongs to one test, until it is dropped. Its methods are those of [`Client`].
///
/// When a test that panics drops it, it prints the cluster's report. When a test that passes drops it, it panics if no
/// request met one of the test's faults, because the fault was for another API, topic or client. Then the server is
/// reset for the next test with the same options.
#[derive(Debug)]
#[must_use = "the next test may use the server as soon as the cluster is dropped"]
pub struct Cluster {
    client: Client,
    server: Option<Arc<Server>>,
    options: Builder,
}

impl Cluster {
    /// Returns a reset server with these options, or a new one.
    pub(crate) fn take(options: Builder) -> Result<Self, Error> {
        while let Some((client, server)) = idle(&options) {
            match client.reset() {
                Ok(()) if server.has_ended() => drop(server), // it held a cluster in the shared server
                Ok(()) => return Ok(Self { client, server: Some(server), options }),
                Err(error) if error.status() == Some(CONFLICT) => {
                    give_back(options, client, server);
                    return Err(error);
                }
                Err(_) => discard(&client, &server), // such as one that a test has killed
            }
        }
        let (client, server) = create(&options)?;
        Ok(Self { client, server: Some(server), options })
    }

    /// Runs a test that returns a `Result`, and drops the cluster: an error prints the report, as a panic does.
    ///
    /// ```no_run
    /// #[test]
    /// fn an_order_is_sent() -> Result<(), Box<dyn std::error::Error>> {
    ///     understudy::start(["--topic", "orders:1"])?.test(|kafka| {
    ///         kafka.write("orders", ["one order"])?;
    ///         assert_eq!(kafka.records("orders", 0)?.len(), 1);
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn test<T, E>(self, body: impl FnOnce(&Self) -> Result<T, E>) -> Result<T, E> {
        let result = body(&self);
        self.finish(result)
    }

    /// Drops the cluster after a test with this result, which it returns: an error prints the report, as a panic does.
    /// For asynchronous tests: `let result = sends_an_order(&kafka).await; kafka.finish(result)`.
    pub fn finish<T, E>(mut self, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            self.end(true);
        }
        result
    }

    /// Another handle of the control plane, for other threads and tasks.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The last lines of the server's log.
    pub fn log(&self) -> String {
        self.server.as_deref().map(Server::log).unwrap_or_default()
    }

    /// The process id of the server, or of the container's client.
    pub fn pid(&self) -> u32 {
        self.server.as_deref().map(Server::pid).unwrap_or_default()
    }

    /// The report's text with the server's log, even if the cluster does not answer.
    pub fn story(&self) -> String {
        self.with_log(match self.client.report() {
            Ok(report) => format!("understudy, {}", report.text),
            Err(error) => format!("understudy, the cluster does not answer: {error}"),
        })
    }

    fn with_log(&self, text: String) -> String {
        match self.log() {
            log if log.is_empty() => text,
            log => format!("{text}\nthe server's log:\n  {}", log.replace('\n', "\n  ")),
        }
    }

    /// Prints the report of a failed test, and gives the server to the next one. Returns why a test that passed fails:
    /// faults that were not met, or a server that ended.
    fn end(&mut self, failed: bool) -> Option<String> {
        let answer = self.client.unmet_faults();
        if let Some(server) = &self.server {
            // A shared server answers for a moment after the process that holds the cluster was killed.
            let limit = if answer.is_ok() { Duration::ZERO } else { END_LIMIT };
            if let Some(ending) = server.ending(limit) {
                let text = self.with_log(format!("{ending} during this test"));
                drop(self.server.take());
                if failed {
                    eprintln!("{text}");
                }
                return Some(text);
            }
        }
        let unmet = if self.server.is_some() { answer.unwrap_or_default() } else { Vec::new() };
        if failed || !unmet.is_empty() {
            eprintln!("{}", self.story());
        }
        match self.server.take() {
            Some(server) if self.options.separate => drop(server),
            Some(server) if self.options.fresh && server.origin.is_some() => discard(&self.client, &server),
            Some(server) => give_back(self.options.clone(), self.client.clone(), server),
            None => {}
        }
        (!unmet.is_empty()).then(|| {
            format!(
                "no request met these faults (an error that the test returns is only shown by Cluster::test):\n{}",
                Lines(&unmet)
            )
        })
    }
}

impl Deref for Cluster {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.server.is_none() {
            return;
        }
        let failed = thread::panicking();
        if let (Some(why), false) = (self.end(failed), failed) {
            panic!("{why}");
        }
    }
}

struct Lines<'a>(&'a [FaultState]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|fault| writeln!(to, "  {}: {}", fault.meets, fault.does))
    }
}

/// A new cluster: another one of a process that has made one with these options, or the first one of a new process.
fn create(options: &Builder) -> Result<(Client, Arc<Server>), Error> {
    let start = || options.start_server().map(|(server, client)| (client, Arc::new(server)));
    if options.separate {
        return start();
    }
    let maker = maker(options);
    let mut maker = locked(&maker);
    match &*maker {
        Maker::Shared(server) if !server.has_ended() => {
            let made = another(server, options);
            if made.is_ok() || server.ending(END_LIMIT).is_none() {
                return made.map(|client| (client, Arc::clone(server)));
            }
        }
        Maker::Own => {
            drop(maker); // nothing is gained if other tests wait for this start
            return start();
        }
        _ => {}
    }
    let (client, server) = start()?;
    *maker = if server.origin.is_some() { Maker::Shared(Arc::clone(&server)) } else { Maker::Own };
    Ok((client, server))
}

fn maker(options: &Builder) -> Arc<Mutex<Maker>> {
    let mut all = locked(&MAKERS);
    let known = all.iter().find(|(each, _)| each == options).map(|(_, maker)| Arc::clone(maker));
    known.unwrap_or_else(|| {
        let maker = Arc::default();
        all.push((options.clone(), Arc::clone(&maker)));
        maker
    })
}

/// One more cluster with the options of the process's first one; it ends with the process, too.
fn another(server: &Server, options: &Builder) -> Result<Client, Error> {
    let (root, body) = server.origin.as_ref().map(|it| (&*it.root, it.body.clone())).unwrap_or_default();
    let made = Client::new(root, None, Vec::new(), options.control_limit).ask("POST", "/v1/clusters", body)?;
    let brokers = made["bootstrap_servers"].as_array().into_iter().flatten();
    let brokers = brokers.filter_map(Value::as_str).map(str::to_owned).collect();
    let control = made["control_url"].as_str().unwrap_or_default();
    Ok(Client::new(control, None, brokers, options.control_limit))
}

/// Ends a cluster in a shared server; what cannot be deleted ends with the process. A server of its own ends when it is
/// dropped.
fn discard(client: &Client, server: &Server) {
    if let (Some(it), Some((_, id))) = (&server.origin, client.control().split_once("/clusters/")) {
        let _ = Client::new(&it.root, None, Vec::new(), None).ask("DELETE", &format!("/v1/clusters/{id}"), None);
    }
}

fn idle(options: &Builder) -> Option<(Client, Arc<Server>)> {
    let mut all = locked(&IDLE);
    let at = all.iter().rposition(|(given, _, _)| given == options)?;
    let (_, client, server) = all.swap_remove(at);
    Some((client, server))
}

fn give_back(options: Builder, client: Client, server: Arc<Server>) {
    locked(&IDLE).push((options, client, server));
}
