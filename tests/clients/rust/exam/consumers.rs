//! Consumers of rust-rdkafka.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::common;
use crate::kit::{Answer, Command, Failure};

const SEEK_TIMEOUT: Duration = Duration::from_secs(10);

pub fn create(c: &Command) -> Result<BaseConsumer, Failure> {
    let mut config = common(c);
    let group = c.optional("group").unwrap_or_else(|| format!("without-a-group-{}", c.text("name")));
    let reset = c.text("offset_reset");
    config
        .set("group.id", group)
        .set("isolation.level", c.text("isolation"))
        .set("auto.offset.reset", if reset == "none" { "error" } else { reset })
        .set("enable.auto.commit", c.flag("auto_commit").to_string())
        .set("fetch.wait.max.ms", "100")
        .set("fetch.error.backoff.ms", "50");
    if c.text("protocol") == "consumer" {
        config.set("group.protocol", "consumer");
    } else {
        config
            .set("session.timeout.ms", c.number("session_timeout_ms").to_string())
            .set("heartbeat.interval.ms", c.number("heartbeat_interval_ms").to_string());
    }
    if let Some(instance_id) = c.optional("instance_id") {
        config.set("group.instance.id", instance_id);
    }
    Ok(config.create()?)
}

fn places(c: &Command, field: &str) -> Result<TopicPartitionList, Failure> {
    let mut list = TopicPartitionList::new();
    for each in c.list(field) {
        let offset = Offset::Offset(each.number("offset"));
        list.add_partition_offset(each.text("topic"), each.number("partition") as i32, offset)?;
    }
    Ok(list)
}

pub fn assign(consumer: &BaseConsumer, c: &Command) -> Answer {
    consumer.assign(&places(c, "partitions")?)?;
    Ok(Value::Null)
}

pub fn subscribe(consumer: &BaseConsumer, c: &Command) -> Answer {
    consumer.subscribe(&c.texts("topics"))?;
    Ok(Value::Null)
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into())
}

fn headers(message: &BorrowedMessage<'_>) -> Vec<(String, Option<String>)> {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    headers.map(|each| (each.key.to_string(), text(each.value))).collect()
}

/// Takes all that has arrived.
pub fn poll(consumer: &BaseConsumer, c: &Command) -> Value {
    let (mut records, mut errors) = (vec![], vec![]);
    let until = Instant::now() + c.timeout();
    let most = c.limit("max_records");
    loop {
        if records.len() >= most {
            return json!({"records": records, "errors": errors});
        }
        let first = records.is_empty() && errors.is_empty();
        let wait = if first { until.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
        match consumer.poll(wait) {
            Some(Ok(message)) => records.push(json!({
                "topic": message.topic(), "partition": message.partition(), "offset": message.offset(),
                "key": text(message.key()), "value": text(message.payload()),
                "timestamp": message.timestamp().to_millis(), "headers": headers(&message),
            })),
            Some(Err(error)) => {
                if let Failure::Refused(error) = error.into() {
                    errors.push(error);
                }
            }
            // It also returns after a rebalance.
            None if wait.is_zero() => return json!({"records": records, "errors": errors}),
            None => {}
        }
    }
}

pub fn assignment(consumer: &BaseConsumer) -> Answer {
    let found = consumer.assignment()?;
    let places: Vec<Value> =
        found.elements().iter().map(|each| json!({"topic": each.topic(), "partition": each.partition()})).collect();
    Ok(json!({"partitions": places}))
}

pub fn seek(consumer: &BaseConsumer, c: &Command) -> Answer {
    let offset = Offset::Offset(c.number("offset"));
    consumer.seek(c.text("topic"), c.number("partition") as i32, offset, SEEK_TIMEOUT)?;
    Ok(Value::Null)
}

pub fn commit_offsets(consumer: &BaseConsumer, c: &Command) -> Answer {
    let offsets = places(c, "offsets")?;
    if offsets.count() > 0 {
        consumer.commit(&offsets, CommitMode::Sync)?;
    } else {
        consumer.commit_consumer_state(CommitMode::Sync)?;
    }
    Ok(Value::Null)
}
