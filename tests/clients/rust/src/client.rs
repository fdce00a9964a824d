//! rust-rdkafka's clients, as the script needs them.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::BaseConsumer;
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use crate::records::Record;

pub const WAIT: Duration = Duration::from_secs(20);

pub fn say(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

pub struct Client {
    pub bootstrap: String,
    pub topic: String,
    pub admin: AdminClient<DefaultClientContext>,
    runtime: tokio::runtime::Runtime,
}

/// Counts what was delivered, keeps the first failure.
#[derive(Default)]
struct Deliveries(std::sync::Mutex<(usize, Option<String>)>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let mut told = self.0.lock().unwrap();
        match result {
            Ok(_) => told.0 += 1,
            Err((error, _)) => told.1 = Some(say(error)),
        }
    }
}

pub fn read(message: &BorrowedMessage<'_>) -> (i64, Record) {
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        headers.iter().map(|each| (each.key.to_string(), each.value.map(<[u8]>::to_vec))).collect()
    });
    let record = Record {
        partition: message.partition(),
        timestamp_ms: message.timestamp().to_millis().unwrap_or(-1),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers,
    };
    (message.offset(), record)
}

impl Client {
    pub fn new(bootstrap: &str, topic: &str) -> Self {
        Client {
            bootstrap: bootstrap.into(),
            topic: topic.into(),
            admin: ClientConfig::new().set("bootstrap.servers", bootstrap).create().expect("an admin client"),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
        }
    }

    pub fn produce(&self, records: &[Record], codec: &str, idempotent: bool) -> Result<(), String> {
        let producer: ThreadedProducer<Deliveries> = ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("compression.type", codec)
            .set("enable.idempotence", idempotent.to_string())
            .set("linger.ms", "20")
            .create_with_context(Deliveries::default())
            .map_err(say)?;
        for r in records {
            let mut headers = OwnedHeaders::new();
            for (key, value) in &r.headers {
                headers = headers.insert(Header { key, value: value.as_ref() });
            }
            let mut record =
                BaseRecord::to(&self.topic).partition(r.partition).timestamp(r.timestamp_ms).headers(headers);
            record.key = r.key.as_ref();
            record.payload = r.value.as_ref();
            producer.send(record).map_err(|(error, _)| say(error))?;
        }
        producer.flush(WAIT).map_err(say)?;
        let told = producer.context().0.lock().unwrap();
        if told.0 == records.len() {
            Ok(())
        } else {
            Err(format!("{} delivered, {:?}", told.0, told.1))
        }
    }

    pub fn consumer(&self, group: &str) -> Result<BaseConsumer, String> {
        ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("group.id", group)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("heartbeat.interval.ms", "300")
            .create()
            .map_err(say)
    }

    pub fn reader(&self) -> Result<BaseConsumer, String> {
        self.consumer(&format!("{}-unused", self.topic))
    }

    pub fn partitions(&self, offset: impl Fn(i32) -> Offset) -> Result<TopicPartitionList, String> {
        let mut list = TopicPartitionList::new();
        for p in 0..3 {
            list.add_partition_offset(&self.topic, p, offset(p)).map_err(say)?;
        }
        Ok(list)
    }

    pub fn topics(&self) -> Result<Vec<String>, String> {
        let metadata = self.admin.inner().fetch_metadata(None, WAIT).map_err(say)?;
        Ok(metadata.topics().iter().map(|topic| topic.name().to_string()).collect())
    }

    pub fn create_topic(&self, replicas: i32) -> Result<(), String> {
        let topic = NewTopic::new(&self.topic, 3, TopicReplication::Fixed(replicas));
        let created = self.runtime.block_on(self.admin.create_topics([&topic], &AdminOptions::new())).map_err(say)?;
        created.into_iter().try_for_each(|each| each.map(|_| ())).map_err(say)
    }

    pub fn delete_topic(&self) -> Result<(), String> {
        let options = AdminOptions::new();
        let deleted = self.runtime.block_on(self.admin.delete_topics(&[&self.topic], &options)).map_err(say)?;
        deleted.into_iter().try_for_each(|each| each.map(|_| ())).map_err(say)
    }

    pub fn delete_group(&self, group: &str) -> Result<(), String> {
        let options = AdminOptions::new();
        let deleted = self.runtime.block_on(self.admin.delete_groups(&[group], &options)).map_err(say)?;
        deleted.into_iter().try_for_each(|each| each.map(|_| ())).map_err(say)
    }

    pub fn delete_records(&self, partition: i32, before: i64) -> Result<i64, String> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, partition, Offset::Offset(before)).map_err(say)?;
        let options = AdminOptions::new();
        let deleted = self.runtime.block_on(self.admin.delete_records(&list, &options)).map_err(say)?;
        let element = deleted.elements_for_topic(&self.topic).pop().ok_or("nothing told")?;
        element.error().map_err(say)?;
        element.offset().to_raw().ok_or_else(|| "no offset".into())
    }

    pub fn configs(&self, of: ResourceSpecifier<'_>) -> Result<BTreeMap<String, String>, String> {
        let options = AdminOptions::new();
        let mut told = self.runtime.block_on(self.admin.describe_configs([&of], &options)).map_err(say)?;
        let resource = told.pop().ok_or("nothing told")?.map_err(say)?;
        Ok(resource.entries.into_iter().map(|e| (e.name, e.value.unwrap_or_default())).collect())
    }

    /// AlterConfigs, which replaces all: the client knows no IncrementalAlterConfigs.
    pub fn alter_configs(&self, settings: &[(&str, &str)]) -> Result<(), String> {
        let mut wish = AlterConfig::new(ResourceSpecifier::Topic(&self.topic));
        for (name, value) in settings {
            wish = wish.set(name, value);
        }
        let altered = self.runtime.block_on(self.admin.alter_configs([&wish], &AdminOptions::new())).map_err(say)?;
        altered.into_iter().try_for_each(|each| each.map(|_| ())).map_err(say)
    }
}
