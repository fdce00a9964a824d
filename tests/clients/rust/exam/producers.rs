//! Producers of rust-rdkafka.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{DeliveryResult, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use serde_json::Value;

use crate::kit::{Answer, Command, Failure, Outcomes};
use crate::{common, RETRY_PAUSE};

/// Collects the outcome of each record, which has its id with it.
#[derive(Default)]
struct Deliveries(Outcomes);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, id: usize) {
        match result {
            Ok(message) => self.0.written(id, message.offset()),
            Err((error, _)) => self.0.refused(id, error.clone().into()),
        }
    }
}

pub struct Producer(ThreadedProducer<Deliveries>);

impl Producer {
    pub fn new(c: &Command) -> Result<Self, Failure> {
        let mut config = common(c);
        let mut delivery_timeout_ms = c.number("delivery_timeout_ms");
        if let Some(transactional_id) = c.optional("transactional_id") {
            let timeout_ms = c.number("transaction_timeout_ms");
            delivery_timeout_ms = delivery_timeout_ms.min(timeout_ms);
            config.set("transactional.id", transactional_id).set("transaction.timeout.ms", timeout_ms.to_string());
        }
        config
            .set("acks", c.text("acks"))
            .set("enable.idempotence", c.flag("idempotent").to_string())
            .set("message.timeout.ms", delivery_timeout_ms.to_string())
            .set("request.timeout.ms", c.number("request_timeout_ms").to_string())
            .set("retry.backoff.ms", c.number("retry_backoff_ms").to_string())
            .set("linger.ms", c.number("linger_ms").to_string())
            .set("max.in.flight.requests.per.connection", c.number("max_in_flight").to_string())
            .set("compression.type", c.text("compression"));
        Ok(Producer(config.create_with_context(Deliveries::default())?))
    }

    fn outcomes(&self) -> &Outcomes {
        &self.0.context().0
    }

    pub fn send(&self, c: &Command) -> Answer {
        for each in c.list("records") {
            let id = each.number("id") as usize;
            let (key, value) = (each.optional("key"), each.optional("value"));
            let mut record = BaseRecord::<str, str, usize>::with_opaque_to(c.text("topic"), id)
                .partition(each.number("partition") as i32);
            (record.key, record.payload, record.timestamp) =
                (key.as_deref(), value.as_deref(), each.optional_number("timestamp"));
            let mut headers = OwnedHeaders::new();
            for header in each.list("headers") {
                let (key, value) = header.pair();
                headers = headers.insert(Header { key, value });
            }
            if headers.count() > 0 {
                record = record.headers(headers);
            }
            self.outcomes().sent();
            // Refused at once: in a transaction that has failed already.
            if let Err((error, _)) = self.0.send(record) {
                self.outcomes().refused(id, error.into());
            }
        }
        Ok(Value::Null)
    }

    pub fn flush(&self, c: &Command) -> Value {
        let until = Instant::now() + c.timeout();
        // What it does not get done is in `pending`.
        let _ = self.0.flush(c.timeout());
        // The last reports may still be with the thread that polls.
        self.outcomes().flush(until.max(Instant::now() + RETRY_PAUSE))
    }

    pub fn initialize(&self, c: &Command) -> Answer {
        retried(c, |left| self.0.init_transactions(left))
    }

    pub fn begin(&self) -> Answer {
        self.0.begin_transaction()?;
        Ok(Value::Null)
    }

    pub fn send_offsets(&self, consumer: &BaseConsumer, c: &Command) -> Answer {
        let metadata = consumer.group_metadata().ok_or_else(|| "the consumer has no group".to_string())?;
        let mut known = TopicPartitionList::new();
        for each in consumer.position()?.elements() {
            if let Offset::Offset(offset) = each.offset() {
                known.add_partition_offset(each.topic(), each.partition(), Offset::Offset(offset))?;
            }
        }
        retried(c, |left| self.0.send_offsets_to_transaction(&known, &metadata, left))
    }

    pub fn commit(&self, c: &Command) -> Answer {
        retried(c, |left| self.0.commit_transaction(left))
    }

    pub fn abort(&self, c: &Command) -> Answer {
        retried(c, |left| self.0.abort_transaction(left))
    }
}

/// Calls again after retriable errors, as librdkafka's documentation asks applications to.
fn retried(c: &Command, call: impl Fn(Duration) -> KafkaResult<()>) -> Answer {
    let until = Instant::now() + c.timeout();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match call(left.max(Duration::from_millis(1))) {
            Ok(()) => return Ok(Value::Null),
            Err(KafkaError::Transaction(error)) if error.is_retriable() && !left.is_zero() => {
                std::thread::sleep(RETRY_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
