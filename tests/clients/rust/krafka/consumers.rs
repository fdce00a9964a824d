//! Consumers and share consumers of krafka.

use std::collections::HashMap;
use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord, GroupProtocol, IsolationLevel};
use krafka::producer::TopicPartitionOffset;
use krafka::share_consumer::{AcknowledgementMode, ShareConsumer};
use krafka::KrafkaError;
use serde_json::{json, Value};

use crate::common;
use crate::kit::{Answer, Command, Failure};

const WAIT: Duration = Duration::from_millis(100);

pub struct Reader {
    pub consumer: Consumer,
    /// After the last record of each partition that `poll` has returned.
    next: HashMap<(String, i32), i64>,
}

impl Reader {
    pub async fn new(c: &Command) -> Result<Self, Failure> {
        let kafka = common(c).connect().await?;
        let mut builder = match c.optional("group") {
            Some(group) => kafka.consumer(group),
            None => kafka.consumer_without_group(),
        };
        builder = builder
            .isolation_level(match c.text("isolation") {
                "read_committed" => IsolationLevel::ReadCommitted,
                _ => IsolationLevel::ReadUncommitted,
            })
            .auto_offset_reset(match c.text("offset_reset") {
                "earliest" => AutoOffsetReset::Earliest,
                "latest" => AutoOffsetReset::Latest,
                _ => AutoOffsetReset::None,
            })
            .enable_auto_commit(c.flag("auto_commit"))
            .fetch_max_wait(WAIT)
            .max_poll_records(1); // a command may ask for so few, and krafka sets the limit here only
        if c.text("protocol") == "consumer" {
            builder = builder.group_protocol(GroupProtocol::Consumer);
        } else if c.optional("group").is_some() {
            builder = builder
                .session_timeout(Duration::from_millis(c.number("session_timeout_ms") as u64))
                .heartbeat_interval(Duration::from_millis(c.number("heartbeat_interval_ms") as u64));
        }
        if let Some(instance_id) = c.optional("instance_id") {
            builder = builder.group_instance_id(instance_id);
        }
        Ok(Reader { consumer: builder.build().await?, next: HashMap::new() })
    }

    /// Replaces the partitions of all topics: krafka's `assign` replaces those of one.
    pub async fn assign(&mut self, c: &Command) -> Answer {
        let mut topics: HashMap<String, Vec<i32>> =
            self.consumer.assignment().await.into_keys().map(|topic| (topic, vec![])).collect();
        for each in c.list("partitions") {
            topics.entry(each.text("topic").into()).or_default().push(each.number("partition") as i32);
        }
        for (topic, partitions) in topics {
            self.consumer.assign(&topic, partitions).await?;
        }
        for each in c.list("partitions") {
            self.seek(&each).await?;
        }
        Ok(Value::Null)
    }

    pub async fn subscribe(&self, c: &Command) -> Answer {
        self.consumer.subscribe(c.texts("topics")).await?;
        Ok(Value::Null)
    }

    pub async fn seek(&mut self, c: &Command) -> Answer {
        let (topic, partition, offset) = (c.text("topic"), c.number("partition") as i32, c.number("offset"));
        self.consumer.seek(topic, partition, offset).await?;
        self.next.insert((topic.into(), partition), offset);
        Ok(Value::Null)
    }

    /// Takes all that has arrived, or as many records as are wanted.
    pub async fn poll(&mut self, c: &Command) -> Value {
        let (mut records, mut errors) = (vec![], vec![]);
        let mut wait = c.timeout();
        while records.len() < c.limit("max_records") {
            match self.consumer.poll(wait).await {
                Ok(found) if found.is_empty() => break,
                Ok(found) => records.extend(found),
                Err(error) => {
                    errors.push(error);
                    break;
                }
            }
            wait = Duration::ZERO;
        }
        for each in &records {
            self.next.insert((each.topic.to_string(), each.partition), each.offset + 1);
        }
        shown(&records, errors)
    }

    pub async fn assignment(&self) -> Value {
        let places: Vec<Value> = self
            .consumer
            .assignment()
            .await
            .into_iter()
            .flat_map(|(topic, partitions)| {
                partitions.into_iter().map(move |each| json!({"topic": topic, "partition": each}))
            })
            .collect();
        json!({ "partitions": places })
    }

    pub async fn commit(&self) -> Answer {
        self.consumer.commit().await?;
        Ok(Value::Null)
    }

    /// Of the partitions that it has, and of which `poll` has returned records.
    pub async fn positions(&self) -> Vec<TopicPartitionOffset> {
        let mine = self.consumer.assignment().await;
        let has = |topic: &String, partition| mine.get(topic).is_some_and(|each| each.contains(partition));
        let read = self.next.iter().filter(|((topic, partition), _)| has(topic, partition));
        read.map(|((topic, partition), next)| TopicPartitionOffset::new(topic.clone(), *partition, *next)).collect()
    }
}

fn shown(records: &[ConsumerRecord], errors: Vec<KrafkaError>) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let records: Vec<Value> = records
        .iter()
        .map(|each| {
            json!({
                "topic": &*each.topic, "partition": each.partition, "offset": each.offset,
                "key": each.key.as_deref().map(text), "value": each.value.as_deref().map(text).unwrap_or_default(),
            })
        })
        .collect();
    let errors: Vec<Value> = errors
        .into_iter()
        .filter_map(|error| match error.into() {
            Failure::Refused(error) => Some(error),
            Failure::Unsupported(_) => None,
        })
        .collect();
    json!({"records": records, "errors": errors})
}

pub struct Sharer {
    pub consumer: ShareConsumer,
    /// What was polled, by its place: krafka acknowledges a record, not a place.
    polled: HashMap<(String, i32, i64), ConsumerRecord>,
}

impl Sharer {
    pub async fn new(c: &Command) -> Result<Self, Failure> {
        let builder = common(c).connect().await?.share_consumer(c.text("group"));
        let builder = builder.acknowledgement_mode(AcknowledgementMode::Explicit).fetch_max_wait(WAIT);
        Ok(Sharer { consumer: builder.build().await?, polled: HashMap::new() })
    }

    pub async fn subscribe(&self, c: &Command) -> Answer {
        self.consumer.subscribe(c.texts("topics")).await?;
        Ok(Value::Null)
    }

    pub async fn poll(&mut self, c: &Command) -> Value {
        match self.consumer.poll(c.timeout()).await {
            Ok(records) => {
                for each in &records {
                    self.polled.insert((each.topic.to_string(), each.partition, each.offset), each.clone());
                }
                shown(&records, vec![])
            }
            Err(error) => shown(&[], vec![error]),
        }
    }

    pub fn acknowledge(&mut self, c: &Command) -> Answer {
        for each in c.list("records") {
            let place = (each.text("topic").to_string(), each.number("partition") as i32, each.number("offset"));
            let record = self.polled.get(&place).ok_or_else(|| format!("{place:?} was not polled"))?;
            match c.text("type") {
                "accept" => self.consumer.ack(record)?,
                "release" => self.consumer.release(record)?,
                _ => self.consumer.reject(record)?,
            }
        }
        Ok(Value::Null)
    }

    pub async fn commit(&self) -> Answer {
        for (_, outcome) in self.consumer.commit().await? {
            outcome?;
        }
        Ok(Value::Null)
    }
}
