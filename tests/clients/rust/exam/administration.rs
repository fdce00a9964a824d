//! What an administrator does with rust-rdkafka.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Value};

use crate::kit::{Answer, Command, Failure};

/// What was altered, by topic: AlterConfigs replaces all, and the library knows no IncrementalAlterConfigs.
pub type Altered = HashMap<String, BTreeMap<String, String>>;

/// Carries out a command of an administrator; `None`: it is another one.
pub fn carry_out<'a>(name: &str, c: &'a Command, altered: &mut Altered) -> Option<Answer> {
    let work: fn(&Administrator<'a>) -> Answer = match name {
        "create_topic" => Administrator::create_topic,
        "list_topics" => Administrator::list_topics,
        "describe_topic" => Administrator::describe_topic,
        "delete_topic" => Administrator::delete_topic,
        "list_groups" => Administrator::list_groups,
        "describe_group" => Administrator::describe_group,
        "delete_group" => Administrator::delete_group,
        "committed" => Administrator::committed,
        "describe_cluster" => Administrator::describe_cluster,
        "describe_configs" => Administrator::describe_configs,
        "alter_config" => {
            let settings = altered.entry(c.text("topic").into()).or_default();
            match c.optional("value") {
                Some(value) => settings.insert(c.text("setting").into(), value),
                None => settings.remove(c.text("setting")),
            };
            return Some(Administrator::new(c).and_then(|admin| admin.alter(settings)));
        }
        "delete_records" => Administrator::delete_records,
        "list_offsets" => Administrator::list_offsets,
        _ => return None,
    };
    Some(Administrator::new(c).and_then(|admin| work(&admin)))
}

struct Administrator<'a> {
    c: &'a Command,
    client: AdminClient<DefaultClientContext>,
    options: AdminOptions,
    runtime: tokio::runtime::Runtime,
}

fn config(c: &Command) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", c.text("bootstrap_servers")).set_log_level(RDKafkaLogLevel::Emerg);
    config
}

/// The first error among the results of one request.
fn done<T, N: Debug>(results: Vec<Result<T, (N, RDKafkaErrorCode)>>) -> Answer {
    for each in results {
        each.map_err(|(_, code)| Failure::from(KafkaError::Global(code)))?;
    }
    Ok(Value::Null)
}

impl<'a> Administrator<'a> {
    fn new(c: &'a Command) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let options = AdminOptions::new().operation_timeout(Some(c.timeout())).request_timeout(Some(c.timeout()));
        Ok(Administrator { c, client: config(c).create()?, options, runtime })
    }

    fn create_topic(&self) -> Answer {
        let replicas = TopicReplication::Fixed(self.c.optional_number("replicas").unwrap_or(-1) as i32);
        let topic = NewTopic::new(self.c.text("topic"), self.c.number("partitions") as i32, replicas);
        done(self.runtime.block_on(self.client.create_topics([&topic], &self.options))?)
    }

    fn list_topics(&self) -> Answer {
        let metadata = self.client.inner().fetch_metadata(None, self.c.timeout())?;
        Ok(json!({"topics": metadata.topics().iter().map(|topic| topic.name()).collect::<Vec<_>>()}))
    }

    fn describe_topic(&self) -> Answer {
        let metadata = self.client.inner().fetch_metadata(None, self.c.timeout())?;
        let topic = metadata.topics().iter().find(|topic| topic.name() == self.c.text("topic"));
        let describe = |p: &rdkafka::metadata::MetadataPartition| json!({"partition": p.id(), "leader": p.leader(), "replicas": p.replicas(), "isr": p.isr()});
        let partitions: Vec<Value> =
            topic.ok_or_else(|| "not listed".to_string())?.partitions().iter().map(describe).collect();
        Ok(json!({"partitions": partitions}))
    }

    fn delete_topic(&self) -> Answer {
        done(self.runtime.block_on(self.client.delete_topics(&[self.c.text("topic")], &self.options))?)
    }

    fn list_groups(&self) -> Answer {
        let listed = self.client.inner().fetch_group_list(None, self.c.timeout())?;
        Ok(json!({"groups": listed.groups().iter().map(|group| group.name()).collect::<Vec<_>>()}))
    }

    fn describe_group(&self) -> Answer {
        let listed = self.client.inner().fetch_group_list(Some(self.c.text("group")), self.c.timeout())?;
        let group = listed.groups().first().ok_or_else(|| "not listed".to_string())?;
        Ok(json!({"state": group.state(), "members": group.members().len()}))
    }

    fn delete_group(&self) -> Answer {
        done(self.runtime.block_on(self.client.delete_groups(&[self.c.text("group")], &self.options))?)
    }

    fn consumer(&self) -> Result<BaseConsumer, Failure> {
        let group = self.c.optional("group").unwrap_or_else(|| "without-a-group".into());
        Ok(config(self.c).set("group.id", group).create()?)
    }

    /// The partitions of the command, which has their number, each with this offset.
    fn partitions(&self, offset: Offset) -> Result<TopicPartitionList, Failure> {
        let mut list = TopicPartitionList::new();
        for partition in 0..self.c.number("partitions") {
            list.add_partition_offset(self.c.text("topic"), partition as i32, offset)?;
        }
        Ok(list)
    }

    fn committed(&self) -> Answer {
        let committed = self.consumer()?.committed_offsets(self.partitions(Offset::Invalid)?, self.c.timeout())?;
        Ok(json!({"offsets": offsets(&committed)}))
    }

    fn describe_cluster(&self) -> Answer {
        let metadata = self.client.inner().fetch_metadata(None, self.c.timeout())?;
        let brokers: Vec<i32> = metadata.brokers().iter().map(|each| each.id()).collect();
        let native = self.client.inner().native_ptr();
        // SAFETY: the client lives as long as the call, which has no wrapper.
        let controller =
            unsafe { rdkafka::bindings::rd_kafka_controllerid(native, self.c.timeout().as_millis() as i32) };
        Ok(json!({"brokers": brokers, "controller": controller}))
    }

    fn describe_configs(&self) -> Answer {
        let name = self.c.text("name");
        let resource = match self.c.text("kind") {
            "broker" => ResourceSpecifier::Broker(name.parse().map_err(|_| format!("no broker {name}"))?),
            _ => ResourceSpecifier::Topic(name),
        };
        let mut described = self.runtime.block_on(self.client.describe_configs([&resource], &self.options))?;
        let entries =
            described.pop().ok_or_else(|| "nothing was described".to_string())?.map_err(KafkaError::Global)?.entries;
        let settings: BTreeMap<String, Option<String>> = entries.into_iter().map(|e| (e.name, e.value)).collect();
        Ok(json!({"settings": settings}))
    }

    fn alter(&self, settings: &BTreeMap<String, String>) -> Answer {
        let mut wanted = AlterConfig::new(ResourceSpecifier::Topic(self.c.text("topic")));
        for (name, value) in settings {
            wanted = wanted.set(name, value);
        }
        done(self.runtime.block_on(self.client.alter_configs([&wanted], &self.options))?)
    }

    fn delete_records(&self) -> Answer {
        let mut before = TopicPartitionList::new();
        let offset = Offset::Offset(self.c.number("offset"));
        before.add_partition_offset(self.c.text("topic"), self.c.number("partition") as i32, offset)?;
        let deleted = self.runtime.block_on(self.client.delete_records(&before, &self.options))?;
        for element in deleted.elements() {
            element.error()?;
        }
        Ok(json!({"low": offsets(&deleted)[0]}))
    }

    fn list_offsets(&self) -> Answer {
        let (consumer, timestamp) = (self.consumer()?, self.c.number("timestamp"));
        if timestamp >= 0 {
            let listed = consumer.offsets_for_times(self.partitions(Offset::Offset(timestamp))?, self.c.timeout())?;
            return Ok(json!({"offsets": offsets(&listed)}));
        }
        let mut earliest = vec![];
        for partition in 0..self.c.number("partitions") {
            earliest.push(consumer.fetch_watermarks(self.c.text("topic"), partition as i32, self.c.timeout())?.0);
        }
        Ok(json!({"offsets": earliest}))
    }
}

/// Those of partitions in their order; -1 where one has none.
fn offsets(list: &TopicPartitionList) -> Vec<i64> {
    list.elements().iter().map(|each| if let Offset::Offset(offset) = each.offset() { offset } else { -1 }).collect()
}
