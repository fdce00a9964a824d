//! rust-rdkafka as a driver of `understudy exam`.

mod administration;
mod consumers;
mod kit;
mod producers;

use std::collections::HashMap;
use std::time::Duration;

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use serde_json::Value;

use kit::{name_of, refusal, Answer, Command, Failure, Library};
use producers::Producer;

pub const RETRY_PAUSE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct RustRdkafka {
    producers: HashMap<String, Producer>,
    consumers: HashMap<String, BaseConsumer>,
    altered: administration::Altered,
}

fn main() {
    kit::run(RustRdkafka::default());
}

impl Library for RustRdkafka {
    const NAME: &'static str = "rust-rdkafka";
    const CAPABILITIES: &'static [&'static str] = &[
        "producer",
        "idempotence",
        "transactions",
        "send_offsets",
        "consumer",
        "read_committed",
        "offset_reset",
        "seek",
        "reassign",
        "resubscribe",
        "groups",
        "assignment",
        "static_members",
        "consumer_protocol",
        "commit_offsets",
        "admin",
        "compression",
        "null_values",
        "max_records",
        "auto_commit",
    ];

    fn version(&self) -> String {
        kit::pinned(include_str!("../Cargo.toml"), "rdkafka")
    }

    fn carry_out(&mut self, name: &str, c: &Command) -> Option<Answer> {
        Some(match name {
            "producer" => self.producer(c),
            "send" => self.of(c).and_then(|p| p.send(c)),
            "flush" => self.of(c).map(|p| p.flush(c)),
            "init_transactions" => self.of(c).and_then(|p| p.initialize(c)),
            "begin" => self.of(c).and_then(Producer::begin),
            "send_offsets" => self.send_offsets(c),
            "commit" => self.of(c).and_then(|p| p.commit(c)),
            "abort" => self.of(c).and_then(|p| p.abort(c)),
            "consumer" => self.consumer(c),
            "assign" => self.reader(c).and_then(|m| consumers::assign(m, c)),
            "subscribe" => self.reader(c).and_then(|m| consumers::subscribe(m, c)),
            "poll" => self.reader(c).map(|m| consumers::poll(m, c)),
            "assignment" => self.reader(c).and_then(consumers::assignment),
            "seek" => self.reader(c).and_then(|m| consumers::seek(m, c)),
            "commit_offsets" => self.reader(c).and_then(|m| consumers::commit_offsets(m, c)),
            "close" => self.close(c.text("name")),
            _ => return administration::carry_out(name, c, &mut self.altered),
        })
    }
}

impl RustRdkafka {
    fn producer(&mut self, c: &Command) -> Answer {
        self.producers.insert(c.text("name").into(), Producer::new(c)?);
        Ok(Value::Null)
    }

    fn consumer(&mut self, c: &Command) -> Answer {
        self.consumers.insert(c.text("name").into(), consumers::create(c)?);
        Ok(Value::Null)
    }

    fn of(&self, c: &Command) -> Result<&Producer, Failure> {
        let name = c.text("producer");
        self.producers.get(name).ok_or_else(|| format!("there is no producer {name:?}").into())
    }

    fn reader(&self, c: &Command) -> Result<&BaseConsumer, Failure> {
        let name = c.text("consumer");
        self.consumers.get(name).ok_or_else(|| format!("there is no consumer {name:?}").into())
    }

    fn send_offsets(&self, c: &Command) -> Answer {
        self.of(c)?.send_offsets(self.reader(c)?, c)
    }

    /// Dropping closes: a consumer leaves its group.
    fn close(&mut self, name: &str) -> Answer {
        self.producers.remove(name);
        self.consumers.remove(name);
        Ok(Value::Null)
    }
}

pub fn common(c: &Command) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", c.text("bootstrap_servers"))
        .set("client.id", c.text("client_id"))
        .set("socket.timeout.ms", c.number("request_timeout_ms").max(300).to_string())
        .set("topic.metadata.refresh.fast.interval.ms", "50")
        .set("reconnect.backoff.max.ms", "500")
        .set_log_level(RDKafkaLogLevel::Emerg);
    config
}

/// librdkafka's error, classified as it classifies it; outside of transactions the binding has the code alone.
impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        let code = error.rdkafka_error_code();
        let class = match (&error, code) {
            (KafkaError::Transaction(native), _) if native.is_fatal() => "fatal",
            (KafkaError::MessageConsumptionFatal(_), _) => "fatal",
            (_, Some(RDKafkaErrorCode::Fenced | RDKafkaErrorCode::Fatal)) => "fatal",
            (KafkaError::Transaction(native), _) if native.txn_requires_abort() => "abortable",
            (_, Some(RDKafkaErrorCode::OperationTimedOut | RDKafkaErrorCode::MessageTimedOut)) => "timeout",
            (KafkaError::Transaction(native), _) if native.is_retriable() => "retriable",
            _ => "other",
        };
        let name = match &error {
            KafkaError::Transaction(native) => Some(native.name()),
            _ => code.map(name_of),
        };
        refusal(class, name, &error.to_string())
    }
}
