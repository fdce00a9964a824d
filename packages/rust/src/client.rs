//! The control plane over HTTP: addresses, and a request with its answer. The commands are in `verbs`.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::http::{Request, Response};
use ureq::{AsSendBody, Body};

use crate::Error;

/// Default time limit of a request to the control plane.
const CONTROL_LIMIT: Duration = Duration::from_secs(60);
const MULTIPLE_CHOICES: u16 = 300;

/// The control plane of a running cluster. A clone is another handle of the same cluster, for other threads.
///
/// Its methods block. In an asynchronous test whose client runs in the same thread, such as with `#[tokio::test]` and
/// rskafka, call those that wait for a client, such as [`wait_hits`](Client::wait_hits), within `spawn_blocking`.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    agent: ureq::Agent,
    control: String,
    token: Option<String>,
    limit: Duration,
    brokers: RwLock<Vec<String>>,
}

/// The part of a rejection that is a sentence.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    field: Option<String>,
}

impl Client {
    /// Connects to the control plane of a running cluster, such as `http://127.0.0.1:9099`, with its token if it has one.
    pub fn connect(control: &str, token: Option<&str>) -> Result<Self, Error> {
        let client = Self::new(control, token, Vec::new(), None);
        let cluster = client.ask("GET", "/v1/cluster", None)?;
        let found = cluster["brokers"].as_array().into_iter().flatten().map(address).collect();
        client.move_to(found);
        Ok(client)
    }

    pub(crate) fn new(control: &str, token: Option<&str>, brokers: Vec<String>, limit: Option<Duration>) -> Self {
        let agent = ureq::Agent::config_builder()
            .proxy(None) // a proxy of the environment is not for a server of this machine
            .http_status_as_error(false)
            .max_idle_connections(0) // a kept connection may be closed by the server as a request is sent
            .build()
            .new_agent();
        Self(Arc::new(Shared {
            agent,
            control: control.trim_end_matches('/').to_owned(),
            token: token.map(str::to_owned),
            limit: limit.unwrap_or(CONTROL_LIMIT),
            brokers: RwLock::new(brokers),
        }))
    }

    /// `HOST:PORT` of each broker; a [reset](Client::reset) changes them.
    pub fn brokers(&self) -> Vec<String> {
        self.0.brokers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The brokers joined by commas, for clients that take a single string.
    pub fn bootstrap_servers(&self) -> String {
        self.brokers().join(",")
    }

    /// The URL of the control plane.
    pub fn control(&self) -> &str {
        &self.0.control
    }

    /// Sends any command of the control plane. An answer that is not JSON is returned as a string.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), understudy::Error> {
    /// # let kafka = understudy::start(["--seed", "1"])?;
    /// let quotas = kafka.ask("GET", "/v1/quotas", None)?;
    /// let state = kafka.ask("POST", "/v1/clock/advance", serde_json::json!({"ms": 900_000}))?;
    /// # Ok(()) }
    /// ```
    pub fn ask(&self, method: &str, path: &str, body: impl Into<Option<Value>>) -> Result<Value, Error> {
        self.ask_within(self.0.limit, method, path, body.into())
    }

    /// Resets the cluster to its state after the start, disconnects all clients and moves to other ports.
    pub fn reset(&self) -> Result<(), Error> {
        let done = self.ask("POST", "/v1/reset", json!({"disconnect": true}))?;
        // The ports of a container, which has a token, are published before it starts, so they do not change.
        if let (Some(servers), None) = (done["bootstrap_servers"].as_array(), &self.0.token) {
            self.move_to(servers.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        }
        Ok(())
    }

    /// Resets all but these: `topics`, `groups`, `transactions`, `faults`, `clock`, `journal`, `versions`. Clients stay
    /// connected.
    pub fn reset_keeping(&self, keep: &[&str]) -> Result<(), Error> {
        self.ask("POST", "/v1/reset", json!({"keep": keep})).map(drop)
    }

    /// The answer as a type of this crate, within the usual time limit and this one.
    pub(crate) fn wait<T: DeserializeOwned>(&self, limit: Duration, method: &str, path: &str) -> Result<T, Error> {
        let limit = self.0.limit.saturating_add(limit);
        as_type(method, path, self.ask_within(limit, method, path, None)?)
    }

    /// The answer as a type of this crate.
    pub(crate) fn typed<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> Result<T, Error> {
        as_type(method, path, self.ask(method, path, body)?)
    }

    /// A list in the answer.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        name: &str,
        (method, path): (&str, &str),
        body: impl Into<Option<Value>>,
    ) -> Result<Vec<T>, Error> {
        as_type(method, path, self.ask(method, path, body)?[name].take())
    }

    fn move_to(&self, brokers: Vec<String>) {
        *self.0.brokers.write().unwrap_or_else(PoisonError::into_inner) = brokers;
    }

    fn ask_within(&self, limit: Duration, method: &str, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let failed = |error: ureq::Error| Error::NoAnswer {
            call: format!("{method} {}{path}", self.0.control),
            source: error.into(),
        };
        let mut response = match body {
            Some(body) => self.send(limit, method, path, body.to_string()),
            None => self.send(limit, method, path, ()),
        }
        .map_err(failed)?;
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_json = kind.contains("json");
        let text =
            response.body_mut().with_config().limit(u64::MAX).lossy_utf8(true).read_to_string().map_err(failed)?;
        if status < MULTIPLE_CHOICES {
            return if is_json { parsed(method, path, &text) } else { Ok(Value::String(text)) };
        }
        let problem = serde_json::from_str(&text).unwrap_or(Problem { detail: text, field: None });
        let call = format!("{method} {path}");
        Err(Error::Refused { call, status, detail: problem.detail, field: problem.field })
    }

    fn send(
        &self,
        limit: Duration,
        method: &str,
        path: &str,
        body: impl AsSendBody,
    ) -> Result<Response<Body>, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.0.control));
        if let Some(token) = &self.0.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let agent = &self.0.agent;
        agent.run(agent.configure_request(request.body(body)?).timeout_global(Some(limit)).build())
    }
}

fn parsed(method: &str, path: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| unexpected(method, path, error))
}

fn as_type<T: DeserializeOwned>(method: &str, path: &str, answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|error| unexpected(method, path, error))
}

fn unexpected(method: &str, path: &str, error: serde_json::Error) -> Error {
    Error::NoAnswer { call: format!("{method} {path}"), source: error.into() }
}

fn address(broker: &Value) -> String {
    let (host, port) = (broker["host"].as_str().unwrap_or_default(), &broker["port"]);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// A name as a part of a path.
pub(crate) fn part(name: &str) -> String {
    let is_dots = name.bytes().all(|byte| byte == b'.'); // which would lead to another path
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || (byte == b'.' && !is_dots) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
