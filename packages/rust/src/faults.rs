//! Faults: the requests that they match, and their effects.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A fault, for [`Client::add_fault`](crate::Client::add_fault): an effect, conditions on requests, and how often it
/// applies. Without conditions, it affects the next request, whatever its API.
///
/// ```
/// use understudy::{Disconnect, Effect, Fault};
///
/// let lost_answer = Effect::apply_then(Effect::disconnect(Disconnect::Reset));
/// let fault = Fault::new(lost_answer).api("Produce").topic("orders").times(2);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    #[serde(rename = "match")]
    conditions: FaultMatch,
    #[serde(rename = "do")]
    effect: Effect,
    skip: u32,
    times: Option<u32>,
    probability: f64,
}

/// The conditions of a fault, joined by AND; the default matches every request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FaultMatch {
    /// Name of the API, such as `EndTxn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// First and last version of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<(u16, u16)>,
    /// Id of the broker that receives the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker: Option<i32>,
    /// Name of the listener that the request came through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
    /// `client.id` of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Topic that the request names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Partition that the request names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// With topic and partition: a Produce that appends, or a Fetch that starts, at this offset or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// Group id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Transactional id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactional_id: Option<String>,
    /// Path in the request, such as `committed`, and its required value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request: Map<String, Value>,
}

impl Fault {
    /// A fault with this effect on the next request.
    pub fn new(effect: Effect) -> Self {
        Self { conditions: FaultMatch::default(), effect, skip: 0, times: Some(1), probability: 1.0 }
    }

    /// Only requests of this API, such as `EndTxn`.
    pub fn api(mut self, name: impl Into<String>) -> Self {
        self.conditions.api = Some(name.into());
        self
    }

    /// Only requests from the first to the last of these versions.
    pub fn versions(mut self, first: u16, last: u16) -> Self {
        self.conditions.versions = Some((first, last));
        self
    }

    /// Only requests to this broker.
    pub fn broker(mut self, id: i32) -> Self {
        self.conditions.broker = Some(id);
        self
    }

    /// Only requests through this listener.
    pub fn listener(mut self, name: impl Into<String>) -> Self {
        self.conditions.listener = Some(name.into());
        self
    }

    /// Only requests of clients with this `client.id`.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.conditions.client_id = Some(id.into());
        self
    }

    /// Only requests that name this topic.
    pub fn topic(mut self, name: impl Into<String>) -> Self {
        self.conditions.topic = Some(name.into());
        self
    }

    /// Only requests that name this partition.
    pub fn partition(mut self, index: i32) -> Self {
        self.conditions.partition = Some(index);
        self
    }

    /// With topic and partition: only a Produce that appends, or a Fetch that starts, at this offset or later.
    pub fn offset(mut self, offset: i64) -> Self {
        self.conditions.offset = Some(offset);
        self
    }

    /// Only requests that name this group.
    pub fn group(mut self, id: impl Into<String>) -> Self {
        self.conditions.group = Some(id.into());
        self
    }

    /// Only requests with this transactional id.
    pub fn transactional_id(mut self, id: impl Into<String>) -> Self {
        self.conditions.transactional_id = Some(id.into());
        self
    }

    /// Only requests with this value at this path, such as `request("committed", true)` for EndTxn.
    pub fn request(mut self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.conditions.request.insert(path.into(), value.into());
        self
    }

    /// Skips that many matching requests first.
    pub fn skip(mut self, count: u32) -> Self {
        self.skip = count;
        self
    }

    /// Affects that many matching requests; one by default.
    pub fn times(mut self, count: u32) -> Self {
        self.times = Some(count);
        self
    }

    /// Affects all matching requests.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Affects a matching request with this probability; 1 by default.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }
}

/// What a fault does to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Effect(Map<String, Value>);

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Disconnect {
    /// In order, with a FIN.
    Close,
    /// At once, with a RST.
    Reset,
}

impl Effect {
    /// Returns this Kafka error code, by name, instead of processing the request.
    pub fn error(code: &str) -> Self {
        Self::one("error", code)
    }

    /// Closes the connection instead of processing the request.
    pub fn disconnect(how: Disconnect) -> Self {
        Self::one("disconnect", json!(how))
    }

    /// Never responds; the connection stays open and silent.
    pub fn drop() -> Self {
        Self::one("drop", true)
    }

    /// Waits before the request is processed, by the cluster's clock.
    pub fn delay(by: Duration) -> Self {
        Self::one("delay_ms", milliseconds(by))
    }

    /// Processes the request, and waits before its response, by the cluster's clock.
    pub fn delay_response(by: Duration) -> Self {
        Self::one("delay_ms", milliseconds(by)).and("where", "after")
    }

    /// Processes the request, then does this instead of responding: an error, a disconnect, a drop or a delay.
    pub fn apply_then(effect: Effect) -> Self {
        Self::one("apply_then", effect.0)
    }

    /// Responds with this throttle time (KIP-219).
    pub fn throttle(by: Duration) -> Self {
        Self::one("throttle_ms", milliseconds(by))
    }

    /// Changes the response: path, such as `topics.*.error_code`, and its new value.
    pub fn alter<P: Into<String>, V: Into<Value>>(changes: impl IntoIterator<Item = (P, V)>) -> Self {
        let changes: Map<_, _> = changes.into_iter().map(|(path, value)| (path.into(), value.into())).collect();
        Self::one("alter", changes)
    }

    /// Corrupts the bytes of the response, such as `json!({"truncate": 10})`.
    pub fn bytes(how: Value) -> Self {
        Self::one("bytes", how)
    }

    fn one(name: &str, value: impl Into<Value>) -> Self {
        Self(Map::new()).and(name, value)
    }

    fn and(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

/// A fault on the server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct FaultState {
    /// Its id.
    pub id: String,
    /// How many requests it has affected.
    pub hits: u64,
    /// Its conditions.
    #[serde(rename = "match")]
    pub conditions: FaultMatch,
    /// Its effect.
    #[serde(rename = "do")]
    pub effect: Effect,
    /// How many of the matching requests it leaves alone first.
    pub skip: u64,
    /// How many requests it affects in all; None: any number.
    pub times: Option<u64>,
    /// With which probability it affects a matching request.
    pub probability: f64,
    /// How many more requests it affects; 0: it is exhausted, None: any number.
    pub remaining: Option<u64>,
    /// Its conditions in plain English.
    pub meets: String,
    /// Its effect in plain English.
    pub does: String,
}

/// Whole milliseconds, rounded up, so that a short delay is not none.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    time.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u64::MAX)
}
