//! Answers of the control plane, and records to write. Fields that are not listed here are in the answer of
//! [`Client::ask`](crate::Client::ask).

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::FaultState;

/// The cluster's report for a failed test; `text` has all of it.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// All of the report.
    pub text: String,
    /// The cluster's time in milliseconds since 1970; the next report can start here.
    pub now_ms: i64,
    /// The last requests, oldest first, without successful ApiVersions, Fetch and Heartbeat.
    pub requests: Vec<ReportedRequest>,
    /// The last refusal of each transactional id, producer and group.
    pub refusals: Vec<ReportedRefusal>,
    /// Faults that no request has matched.
    pub unmet_faults: Vec<FaultState>,
    /// Sequence diagrams of the most relevant transactional ids, in characters.
    pub diagrams: Vec<String>,
    /// What may explain why a test waits or gets no records.
    pub hints: Vec<String>,
}

/// One request of the report; the journal has it in full, under the same id.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ReportedRequest {
    /// Its id in the journal.
    pub id: i64,
    /// When it arrived, by the cluster's clock.
    pub at_ms: i64,
    /// The request, the names in it, and its result, in one line.
    pub text: String,
    /// The name of its API.
    pub api: String,
    /// The first error code in the response.
    pub error: Option<String>,
    /// Ids of the faults that applied, separated by commas.
    pub fault: Option<String>,
    /// Such as `orders-0`, `group g`, `transactional id x`.
    pub names: Vec<String>,
}

/// The last refusal of a transactional id, a producer or a group, and its reason.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ReportedRefusal {
    /// Such as `transactional id x`, `producer 4000`, `group g`.
    pub subject: String,
    /// The error code.
    pub error: String,
    /// The reason.
    pub why: String,
    /// When, by the cluster's clock.
    pub at_ms: i64,
}

/// The explanation of the last refusal.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The reason in plain English; also if there was no refusal.
    pub why: String,
    /// The error code; None if there was no refusal.
    pub error: Option<String>,
    /// When, by the cluster's clock.
    pub at_ms: Option<i64>,
    /// The rule of the specification that decided.
    pub rule: String,
    /// The source of the rule: a KIP or a Kafka class.
    pub citation: String,
    /// How many older events were dropped; -1: an unknown number.
    pub forgotten: i64,
}

/// The cluster's clock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[non_exhaustive]
pub struct ClockState {
    /// Its time in milliseconds since 1970.
    pub now_ms: i64,
    /// How far it is ahead of the machine's clock.
    pub ahead_ms: i64,
    /// Whether it is frozen.
    pub frozen: bool,
}

/// A request with its response.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct JournalEntry {
    /// Its id.
    pub id: i64,
    /// When it arrived, by the cluster's clock.
    pub at_ms: i64,
    /// The name of its API.
    pub api: String,
    /// Its version.
    pub version: i16,
    /// The broker that got it.
    pub broker: i32,
    /// The client's `client.id`.
    pub client_id: Option<String>,
    /// `answered`, `is being served`, or why there was no response.
    pub outcome: String,
    /// The first error code in the response.
    pub error: Option<String>,
    /// The request.
    pub request: Map<String, Value>,
    /// The response.
    pub response: Option<Map<String, Value>>,
    /// All other fields, by name.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// A key, a value or a header of a record: text if its bytes are UTF-8, or else base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// UTF-8.
    Text(String),
    /// Other bytes.
    Bytes {
        /// The bytes in base64.
        base64: String,
    },
}

impl Content {
    /// The bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Bytes { base64 } => STANDARD.decode(base64).unwrap_or_default(),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes { base64: STANDARD.encode(bytes) },
        }
    }
}

/// A record of a partition.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Its offset.
    pub offset: i64,
    /// Its key.
    pub key: Option<Content>,
    /// Its value; None for a tombstone.
    pub value: Option<Content>,
    /// Its headers.
    pub headers: Vec<Header>,
    /// Its timestamp.
    pub timestamp_ms: i64,
    /// Whether it is part of a transaction.
    pub transactional: bool,
    /// `commit` or `abort` for a transaction's marker.
    pub control: Option<String>,
    /// All other fields, by name.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

impl Record {
    /// The value, if it is text.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Some(Content::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// A header of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// Its name; a record may have the same one twice.
    pub key: String,
    /// Its value.
    pub value: Option<Content>,
}

/// A record to write. Text is a record with this value; a tombstone is `NewRecord::default().key("k")`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewRecord {
    value: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Content>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_ms: Option<i64>,
}

impl From<&str> for NewRecord {
    fn from(value: &str) -> Self {
        Self::value(value)
    }
}

impl From<String> for NewRecord {
    fn from(value: String) -> Self {
        Self::value(value)
    }
}

impl From<&[u8]> for NewRecord {
    fn from(value: &[u8]) -> Self {
        Self::value(value)
    }
}

impl NewRecord {
    /// With this value.
    pub fn value(value: impl Into<Content>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// With this key.
    pub fn key(mut self, key: impl Into<Content>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With one more header.
    pub fn header(mut self, key: impl Into<String>, value: impl Into<Content>) -> Self {
        self.headers.push(Header { key: key.into(), value: Some(value.into()) });
        self
    }

    /// In this partition; by default the one that Kafka's Java client would choose.
    pub fn partition(mut self, index: i32) -> Self {
        self.partition = Some(index);
        self
    }

    /// With this timestamp; by default the cluster's time.
    pub fn timestamp_ms(mut self, time: i64) -> Self {
        self.timestamp_ms = Some(time);
        self
    }
}

/// Where a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Written {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}
