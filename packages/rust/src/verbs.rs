//! The commands of the control plane, as methods. [`Client::ask`] sends those that are not here.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::client::part;
use crate::faults::milliseconds;
use crate::{Client, ClockState, Error, Fault, FaultState, JournalEntry, NewRecord, Record, Refusal, Report, Written};

/// Conditions on requests of the journal, joined by AND; the default matches the newest requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JournalQuery {
    /// Id of the request.
    pub id: Option<i64>,
    /// Name of the API, such as `EndTxn`.
    pub api: Option<String>,
    /// The client's `client.id`.
    pub client_id: Option<String>,
    /// Number of the connection.
    pub connection: Option<i64>,
    /// Id of the broker that got the request.
    pub broker: Option<i32>,
    /// Topic that the request or its response names.
    pub topic: Option<String>,
    /// Group id.
    pub group: Option<String>,
    /// Transactional id.
    pub transactional_id: Option<String>,
    /// Error code anywhere in the response, by name.
    pub error: Option<String>,
    /// Only requests with any error code in the response, or without a response.
    pub errors: Option<bool>,
    /// `answered`, `is being served`, or why there was no response, such as `never answered`.
    pub outcome: Option<String>,
    /// Id of a fault that applied to the request.
    pub fault: Option<String>,
    /// Not before this time of the cluster's clock (ms), or not before this request id.
    pub since: Option<i64>,
    /// Maximum number of requests; the newest are returned.
    pub limit: Option<u64>,
}

/// Clock and report.
impl Client {
    /// The report for a failed test.
    pub fn report(&self) -> Result<Report, Error> {
        self.report_since(0)
    }

    /// The report since a time of the cluster's clock in milliseconds, such as that of an earlier report.
    pub fn report_since(&self, since_ms: i64) -> Result<Report, Error> {
        self.typed("GET", &format!("/v1/report?since={since_ms}"), None)
    }

    /// Requests with their responses, oldest first.
    pub fn journal(&self, conditions: &JournalQuery) -> Result<Vec<JournalEntry>, Error> {
        self.list("entries", ("GET", &format!("/v1/journal?{}", query(&json!(conditions)))), None)
    }

    /// The cluster's clock.
    pub fn clock(&self) -> Result<ClockState, Error> {
        self.typed("GET", "/v1/clock", None)
    }

    /// Advances the clock, by whole milliseconds; returns after all timers that became due have run.
    pub fn advance(&self, by: Duration) -> Result<ClockState, Error> {
        self.typed("POST", "/v1/clock/advance", json!({"ms": milliseconds(by)}))
    }

    /// Freezes the clock; [`thaw`](Client::thaw) unfreezes it.
    pub fn freeze(&self) -> Result<ClockState, Error> {
        self.typed("POST", "/v1/clock/freeze", None)
    }

    /// Unfreezes the clock.
    pub fn thaw(&self) -> Result<ClockState, Error> {
        self.typed("POST", "/v1/clock/thaw", None)
    }

    /// Takes a snapshot of the whole cluster; returns its id.
    pub fn snapshot(&self) -> Result<String, Error> {
        let taken = self.ask("POST", "/v1/snapshots", None)?;
        Ok(taken["id"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns to a snapshot.
    pub fn restore(&self, snapshot: &str) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/snapshots/{}/restore", part(snapshot)), None).map(drop)
    }

    /// Behaves like this release of Kafka for new connections, such as `3.9`.
    pub fn set_version(&self, release: &str) -> Result<(), Error> {
        self.ask("PUT", "/v1/versions", json!({"as_version": release})).map(drop)
    }
}

/// Faults.
impl Client {
    /// Adds a fault.
    pub fn add_fault(&self, fault: Fault) -> Result<FaultState, Error> {
        self.typed("POST", "/v1/faults", json!(fault))
    }

    /// All faults, oldest first.
    pub fn faults(&self) -> Result<Vec<FaultState>, Error> {
        self.list("faults", ("GET", "/v1/faults"), None)
    }

    /// The faults that no request has matched.
    pub fn unmet_faults(&self) -> Result<Vec<FaultState>, Error> {
        self.list("faults", ("GET", "/v1/faults?unmet=true"), None)
    }

    /// Waits until that many requests have met a fault; [`Error::TooFewHits`] after the time limit.
    pub fn wait_hits(&self, fault: &FaultState, hits: u64, limit: Duration) -> Result<FaultState, Error> {
        let path = format!("/v1/faults/{}?wait_hits={hits}&timeout_ms={}", part(&fault.id), milliseconds(limit));
        let state: FaultState = self.wait(limit, "GET", &path)?;
        if state.hits < hits {
            return Err(Error::TooFewHits { hits: state.hits, wanted: hits, limit });
        }
        Ok(state)
    }

    /// Removes a fault.
    pub fn remove_fault(&self, fault: &FaultState) -> Result<(), Error> {
        self.ask("DELETE", &format!("/v1/faults/{}", part(&fault.id)), None).map(drop)
    }

    /// Removes all faults.
    pub fn clear_faults(&self) -> Result<(), Error> {
        self.ask("DELETE", "/v1/faults", None).map(drop)
    }
}

/// Topics and records.
impl Client {
    /// Creates a topic with that many partitions.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<(), Error> {
        self.ask("POST", "/v1/topics", json!({"name": name, "partitions": partitions})).map(drop)
    }

    /// A topic with its partitions: leader, replicas, offsets.
    pub fn topic(&self, name: &str) -> Result<Value, Error> {
        self.ask("GET", &format!("/v1/topics/{}", part(name)), None)
    }

    /// Changes settings of a topic.
    pub fn configure_topic<K: Into<String>, V: Into<Value>>(
        &self,
        name: &str,
        configs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Error> {
        let configs: serde_json::Map<_, _> =
            configs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.ask("PUT", &format!("/v1/topics/{}/configs", part(name)), json!({"configs": configs})).map(drop)
    }

    /// Deletes a topic with its records.
    pub fn delete_topic(&self, name: &str) -> Result<(), Error> {
        self.ask("DELETE", &format!("/v1/topics/{}", part(name)), None).map(drop)
    }

    /// Writes records without a Kafka client: values, or [`NewRecord`]s with keys and more.
    pub fn write<R: Into<NewRecord>>(
        &self,
        topic: &str,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Vec<Written>, Error> {
        let rows: Vec<NewRecord> = records.into_iter().map(Into::into).collect();
        let path = format!("/v1/topics/{}/records", part(topic));
        self.list("written", ("POST", &path), json!({"records": rows}))
    }

    /// Reads the first hundred records of a partition without a Kafka client.
    pub fn records(&self, topic: &str, partition: i32) -> Result<Vec<Record>, Error> {
        self.list("records", ("GET", &format!("/v1/topics/{}/partitions/{partition}/records", part(topic))), None)
    }

    /// Reads up to that many records, 10,000 at most, from an offset on; a negative one is relative to the end.
    pub fn records_from(&self, topic: &str, partition: i32, offset: i64, limit: u64) -> Result<Vec<Record>, Error> {
        let topic = part(topic);
        let path = format!("/v1/topics/{topic}/partitions/{partition}/records?offset={offset}&limit={limit}");
        self.list("records", ("GET", &path), None)
    }

    /// Moves the leader of a partition to a broker, or removes it; the leader epoch increases.
    pub fn move_leader(&self, topic: &str, partition: i32, broker: Option<i32>) -> Result<(), Error> {
        let path = format!("/v1/topics/{}/partitions/{partition}/leader", part(topic));
        self.ask("POST", &path, json!({"broker": broker})).map(drop)
    }

    /// Sets the in-sync replicas of a partition; others do not replicate.
    pub fn set_isr(&self, topic: &str, partition: i32, replicas: &[i32]) -> Result<(), Error> {
        let path = format!("/v1/topics/{}/partitions/{partition}/isr", part(topic));
        self.ask("POST", &path, json!({"replicas": replicas})).map(drop)
    }
}

/// Brokers and coordinators.
impl Client {
    /// Kills a broker: its connections are reset, its memory is lost.
    pub fn kill_broker(&self, id: i32) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/brokers/{id}/kill"), None).map(drop)
    }

    /// Performs a controlled shutdown of a broker.
    pub fn stop_broker(&self, id: i32) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/brokers/{id}/stop"), None).map(drop)
    }

    /// Starts a broker again.
    pub fn start_broker(&self, id: i32) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/brokers/{id}/start"), None).map(drop)
    }

    /// Makes a broker hang: it accepts connections, but reads no requests.
    pub fn pause_broker(&self, id: i32) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/brokers/{id}/pause"), None).map(drop)
    }

    /// Resumes a paused broker.
    pub fn resume_broker(&self, id: i32) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/brokers/{id}/resume"), None).map(drop)
    }

    /// Moves the coordinator of a group to a broker.
    pub fn move_group_coordinator(&self, group: &str, broker: i32) -> Result<(), Error> {
        let body = json!({"type": "group", "key": group, "broker": broker});
        self.ask("POST", "/v1/coordinators/move", body).map(drop)
    }

    /// Moves the coordinator of a transactional id to a broker.
    pub fn move_transaction_coordinator(&self, transactional_id: &str, broker: i32) -> Result<(), Error> {
        let body = json!({"type": "transaction", "key": transactional_id, "broker": broker});
        self.ask("POST", "/v1/coordinators/move", body).map(drop)
    }
}

/// Groups and transactions.
impl Client {
    /// A group: members, assignment, offsets, lag.
    pub fn group(&self, id: &str) -> Result<Value, Error> {
        self.ask("GET", &format!("/v1/groups/{}", part(id)), None)
    }

    /// Explains the last refusal of a group's member.
    pub fn why_group(&self, id: &str) -> Result<Refusal, Error> {
        self.typed("GET", &format!("/v1/groups/{}/why", part(id)), None)
    }

    /// Starts a rebalance now.
    pub fn rebalance(&self, group: &str) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/groups/{}/rebalance", part(group)), None).map(drop)
    }

    /// Removes a member as if its session had timed out.
    pub fn evict(&self, group: &str, member: &str) -> Result<(), Error> {
        let path = format!("/v1/groups/{}/members/{}/evict", part(group), part(member));
        self.ask("POST", &path, None).map(drop)
    }

    /// A transactional id: state, epochs, partitions, deadline and timeline.
    pub fn transaction(&self, id: &str) -> Result<Value, Error> {
        self.ask("GET", &format!("/v1/transactions/{}", part(id)), None)
    }

    /// Explains the last refusal of a transactional id.
    pub fn why_transaction(&self, id: &str) -> Result<Refusal, Error> {
        self.typed("GET", &format!("/v1/transactions/{}/why", part(id)), None)
    }

    /// Explains the last refusal of an idempotent producer, by its producer id.
    pub fn why_producer(&self, id: i64) -> Result<Refusal, Error> {
        self.typed("GET", &format!("/v1/producers/{id}/why"), None)
    }

    /// Holds commits and aborts at a step: `prepare`, `markers` or `complete`.
    pub fn hold_transaction(&self, id: &str, at: &str) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/transactions/{}/hold", part(id)), json!({"at": at})).map(drop)
    }

    /// Continues a held commit or abort.
    pub fn release_transaction(&self, id: &str) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/transactions/{}/release", part(id)), None).map(drop)
    }

    /// Aborts a transaction as its timeout would.
    pub fn abort_transaction(&self, id: &str) -> Result<(), Error> {
        self.ask("POST", &format!("/v1/transactions/{}/abort", part(id)), None).map(drop)
    }
}

/// The query string with the values that are not null.
fn query(values: &Value) -> String {
    let given = values.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let pairs = given.map(|(name, value)| match value {
        Value::String(text) => format!("{name}={}", part(text)),
        other => format!("{name}={other}"),
    });
    pairs.collect::<Vec<_>>().join("&")
}
