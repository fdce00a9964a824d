//! rust-rdkafka through the script of tests/clients/steps.py.

mod client;
mod records;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::admin::ResourceSpecifier;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use client::{read, say, Client, WAIT};
use records::{of_step, Headers, Record, CODECS};
use report::{expect, step, until, Observed};

struct Script {
    client: Client,
    brokers: usize,
    base_ms: i64,
    group: String,
    sent: Vec<Record>,
    read: Vec<Record>,
    members: Vec<BaseConsumer>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut script = Script {
        client: Client::new(&arguments[1], &arguments[3]),
        brokers: arguments[2].parse().expect("a number of brokers"),
        base_ms: arguments[4].parse().expect("milliseconds"),
        group: format!("{}-group", arguments[3]),
        sent: vec![],
        read: vec![],
        members: vec![],
    };
    script.begin();
    script.consume();
    script.play_group();
    script.describe();
    script.end();
}

impl Script {
    fn begin(&mut self) {
        step("list_topics", || {
            let topics = self.client.topics().told("client.list_topics")?;
            expect(!topics.contains(&self.client.topic), &topics)?;
            Ok(format!("{} topics", topics.len()))
        });
        step("create_topic", || {
            self.client.create_topic(self.brokers.min(3) as i32).told("client.create_topic")?;
            until(
                || Ok(self.topic()?.filter(|topic| topic.len() == 3 && topic.values().all(|(leader, ..)| *leader > 0))),
                "no leaders",
            )?;
            Ok(String::new())
        });
        for name in CODECS.iter().chain(&["headers", "nulls", "idempotent", "null_header"]) {
            let records = of_step(self.base_ms, name);
            step(&format!("produce_{name}"), || {
                let codec = if CODECS.contains(name) { name } else { "none" };
                self.client.produce(&records, codec, *name == "idempotent").told("client.produce")?;
                self.sent.extend(records);
                Ok(String::new())
            });
        }
    }

    /// By partition: leader, replicas, in-sync replicas; None before the topic is known.
    fn topic(&self) -> Result<Option<BTreeMap<i32, (i32, Vec<i32>, Vec<i32>)>>, String> {
        let metadata = self.client.admin.inner().fetch_metadata(None, WAIT).map_err(say)?;
        Ok(metadata.topics().iter().find(|topic| topic.name() == self.client.topic).map(|topic| {
            topic.partitions().iter().map(|p| (p.id(), (p.leader(), p.replicas().to_vec(), p.isr().to_vec()))).collect()
        }))
    }

    // ---------------------------------------------------------------- consuming

    fn consume(&mut self) {
        step("consume_from_start", || {
            let consumer = self.client.reader()?;
            let mut plain = BTreeSet::new();
            consumer.assign(&self.client.partitions(|_| Offset::Beginning)?).map_err(say)?;
            until(
                || {
                    if let Some(message) = consumer.poll(Duration::from_millis(100)) {
                        let (offset, record) = read(&message.map_err(say)?);
                        plain.insert((record.partition, offset, record.plain(offset)));
                        self.read.push(record);
                    }
                    Ok((self.read.len() >= self.sent.len()).then_some(()))
                },
                "not all records",
            )?;
            Ok(plain).told("consumer.read")?;
            let of = |records: &[Record], p: i32| -> Vec<_> {
                let mine = records.iter().filter(|r| r.partition == p);
                mine.map(|r| (r.key.clone(), r.value.clone())).collect()
            };
            for p in 0..3 {
                expect(of(&self.read, p) == of(&self.sent, p), of(&self.read, p))?;
            }
            Ok(format!("{} records", self.read.len()))
        });
        step("consume_headers", || {
            let of = |records: &[Record]| -> BTreeSet<Headers> { records.iter().map(|r| r.headers.clone()).collect() };
            expect(of(&self.read) == of(&self.sent) && of(&self.read).len() == 3, of(&self.read))?;
            Ok(String::new())
        });
        step("consume_nulls", || {
            expect(self.read.iter().filter(|r| r.value.is_none()).count() == 3, "null values")?;
            expect(self.read.iter().filter(|r| r.key.is_none()).count() == 3, "null keys")?;
            Ok(String::new())
        });
        step("consume_timestamps", || {
            for p in 0..3 {
                let of = |records: &[Record]| -> Vec<i64> {
                    records.iter().filter(|r| r.partition == p).map(|r| r.timestamp_ms).collect()
                };
                expect(of(&self.read) == of(&self.sent) && of(&self.read).len() == 55, of(&self.read))?;
            }
            Ok(String::new())
        });
        step("consume_by_timestamp", || {
            let moment = self.base_ms + 75_000;
            let consumer = self.client.reader()?;
            let wish = self.client.partitions(|_| Offset::Offset(moment))?;
            let found = consumer.offsets_for_times(wish, WAIT).map_err(say).told("consumer.offsets_for_times")?;
            for element in found.elements() {
                expect(element.offset() == Offset::Offset(25), &found)?;
                let mut one = TopicPartitionList::new();
                one.add_partition_offset(&self.client.topic, element.partition(), element.offset()).map_err(say)?;
                consumer.assign(&one).map_err(say)?;
                let message = consumer.poll(WAIT).ok_or("nothing read")?.map_err(say)?;
                let (offset, first) = read(&message);
                Ok(first.plain(offset)).told("consumer.read_at")?;
                expect(first.timestamp_ms == moment + 1000 * i64::from(first.partition), &first)?;
            }
            Ok(String::new())
        });
    }

    // ---------------------------------------------------------------- the group

    fn join(&mut self) -> Result<(), String> {
        let member = self.client.consumer(&self.group)?;
        member.subscribe(&[&self.client.topic]).map_err(say)?;
        self.members.push(member);
        Ok(())
    }

    fn shares(&self) -> Result<Vec<BTreeSet<i32>>, String> {
        let mut shares = vec![];
        for member in &self.members {
            if let Some(message) = member.poll(Duration::from_millis(50)) {
                message.map_err(say)?;
            }
            let assigned = member.assignment().map_err(say)?;
            shares.push(assigned.elements().iter().map(|each| each.partition()).collect());
        }
        Ok(shares)
    }

    fn shared(&self, right: impl Fn(&[BTreeSet<i32>]) -> bool) -> Result<String, String> {
        let shares = until(|| Ok(Some(self.shares()?).filter(|shares| right(shares))), "never shared so")?;
        Ok(format!("{shares:?}"))
    }

    fn play_group(&mut self) {
        step("group_join", || {
            self.join()?;
            self.shared(|shares| shares[0].len() == 3)
        });
        step("group_rebalance", || {
            self.join()?;
            self.shared(|shares| {
                let all: BTreeSet<i32> = shares.iter().flatten().copied().collect();
                shares.iter().all(|each| !each.is_empty()) && all.len() == 3 && shares[0].len() + shares[1].len() == 3
            })
        });
        step("group_leave", || {
            self.members.pop();
            self.shared(|shares| shares[0].len() == 3)
        });
        step("commit", || {
            let offsets = self.client.partitions(|p| Offset::Offset(10 + i64::from(p)))?;
            let member = self.members.first().ok_or("no member")?;
            member.commit(&offsets, CommitMode::Sync).map_err(say).told("member.commit")?;
            let wish = self.client.partitions(|_| Offset::Invalid)?;
            let committed = member.committed_offsets(wish, WAIT).map_err(say).told("member.committed")?;
            for element in committed.elements() {
                expect(element.offset() == Offset::Offset(10 + i64::from(element.partition())), &committed)?;
            }
            Ok(String::new())
        });
        step("resume", || {
            self.members.clear();
            self.join()?;
            let mut first = BTreeMap::new();
            let member = &self.members[0];
            until(
                || {
                    if let Some(message) = member.poll(Duration::from_millis(100)) {
                        let (offset, record) = read(&message.map_err(say)?);
                        first.entry(record.partition).or_insert(offset);
                    }
                    Ok((first.len() == 3).then_some(()))
                },
                "not all partitions are read",
            )?;
            Ok(&first).told("member.read")?;
            expect(first == BTreeMap::from([(0, 10), (1, 11), (2, 12)]), &first)?;
            Ok(String::new())
        });
    }

    // ---------------------------------------------------------------- administration

    fn group_of(&self, name: Option<&str>) -> Result<Vec<(String, String, usize)>, String> {
        let told = self.client.admin.inner().fetch_group_list(name, WAIT).map_err(say)?;
        Ok(told.groups().iter().map(|g| (g.name().into(), g.state().into(), g.members().len())).collect())
    }

    fn configs(&self) -> Result<BTreeMap<String, String>, String> {
        self.client.configs(ResourceSpecifier::Topic(&self.client.topic)).told("client.describe_topic_configs")
    }

    fn alter(&self, settings: &[(&str, &str)]) -> Result<(), String> {
        self.client.alter_configs(settings).told("client.alter_topic_config")
    }

    fn describe(&mut self) {
        step("list_groups", || {
            let groups = self.group_of(None).told("client.list_groups")?;
            expect(groups.iter().any(|(name, ..)| *name == self.group), &groups)?;
            Ok(String::new())
        });
        step("describe_group", || {
            let groups = self.group_of(Some(&self.group)).told("client.describe_group")?;
            expect(groups.iter().any(|(_, state, members)| state == "Stable" && *members == 1), &groups)?;
            Ok(String::new())
        });
        step("describe_cluster", || {
            let metadata = self.client.admin.inner().fetch_metadata(None, WAIT).map_err(say)?;
            let ids: Vec<i32> = metadata.brokers().iter().map(|each| each.id()).collect();
            let native = self.client.admin.inner().native_ptr();
            // SAFETY: the client lives as long as the script; the call has no wrapper.
            let controller = unsafe { rdkafka::bindings::rd_kafka_controllerid(native, 20_000) };
            expect(ids.len() == self.brokers && ids.contains(&controller), (&ids, controller))?;
            Ok(format!("{ids:?}"))
        });
        step("describe_topic", || {
            let topic = self.topic()?.ok_or("not listed")?;
            let shape: Vec<_> = topic.values().map(|(_, replicas, isr)| (replicas.len(), isr.len())).collect();
            Ok(shape).told("client.describe_topic")?;
            for (leader, replicas, isr) in topic.values() {
                let (replicas, in_sync): (BTreeSet<_>, BTreeSet<_>) = (replicas.iter().collect(), isr.iter().collect());
                expect(replicas == in_sync && replicas.len() == self.brokers.min(3) && isr.contains(leader), &topic)?;
            }
            expect(topic.len() == 3, &topic)?;
            Ok(String::new())
        });
        step("describe_configs", || {
            let topic = self.configs()?;
            expect(topic["cleanup.policy"] == "delete" && topic["retention.ms"] == "604800000", &topic)?;
            let broker = self.client.configs(ResourceSpecifier::Broker(1)).told("client.describe_broker_configs")?;
            expect(broker["log.retention.hours"] == "168", &broker)?;
            Ok(format!("{} of the topic, {} of the broker", topic.len(), broker.len()))
        });
        step("alter_configs", || {
            let seen = |retention: &str| {
                until(
                    || {
                        let topic = self.configs()?;
                        Ok((topic["retention.ms"] == retention && topic["max.message.bytes"] == "100000").then_some(()))
                    },
                    "not seen",
                )
            };
            self.alter(&[("retention.ms", "3600000"), ("max.message.bytes", "100000")])?;
            seen("3600000")?;
            self.alter(&[("max.message.bytes", "100000")])?;
            seen("604800000")?;
            Ok(String::new())
        });
    }

    fn end(&mut self) {
        step("delete_records", || {
            let low = self.client.delete_records(0, 5).told("client.delete_records")?;
            let found = self.client.reader()?.fetch_watermarks(&self.client.topic, 0, WAIT).map_err(say);
            let (earliest, _) = found.told("consumer.watermarks")?;
            expect(low == 5 && earliest == 5, (low, earliest))?;
            Ok(String::new())
        });
        step("delete_group", || {
            self.members.clear();
            self.client.delete_group(&self.group).told("client.delete_group")?;
            let groups = self.group_of(None).told("client.list_groups")?;
            expect(!groups.iter().any(|(name, ..)| *name == self.group), &groups)?;
            Ok(String::new())
        });
        step("delete_topic", || {
            self.client.delete_topic().told("client.delete_topic")?;
            until(|| Ok((!self.client.topics().told("client.list_topics")?.contains(&self.client.topic)).then_some(())), "still listed")?;
            Ok(String::new())
        });
    }
}
