//! krafka as a driver of `understudy exam`.

mod consumers;
#[path = "../exam/kit.rs"]
mod kit;
mod producers;

use std::collections::HashMap;
use std::time::Duration;

use krafka::admin::{CreateTopicsOptions, NewTopic};
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::{CloseOptions, Kafka, KafkaBuilder, KrafkaError};
use serde_json::Value;
use tokio::runtime::Runtime;

use consumers::{Reader, Sharer};
use kit::{name_of, refusal, Answer, Command, Failure, Library};
use producers::Producer;

struct Krafka {
    runtime: Runtime,
    producers: HashMap<String, Producer>,
    readers: HashMap<String, Reader>,
    sharers: HashMap<String, Sharer>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    kit::run(Krafka {
        runtime: runtime.expect("a runtime"),
        producers: HashMap::new(),
        readers: HashMap::new(),
        sharers: HashMap::new(),
    });
}

impl Library for Krafka {
    const NAME: &'static str = "krafka";
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
        "share_groups",
        "admin",
        "compression",
        "max_records",
        "auto_commit",
        "tls",
        "sasl_plain",
        "sasl_scram",
        "sasl_oauthbearer",
    ];

    fn version(&self) -> String {
        kit::pinned(include_str!("Cargo.toml"), "krafka")
    }

    fn carry_out(&mut self, name: &str, c: &Command) -> Option<Answer> {
        let runtime = self.runtime.handle().clone();
        Some(match name {
            "producer" => runtime.block_on(self.producer(c)),
            "send" => self.of(c).map(|p| p.send(c)),
            "flush" => self.of(c).map(|p| p.flush(c)),
            "init_transactions" => self.of(c).and_then(|p| runtime.block_on(p.initialize())),
            "begin" => self.of(c).and_then(|p| p.begin()),
            "send_offsets" => runtime.block_on(self.send_offsets(c)),
            "commit" => self.of(c).and_then(|p| runtime.block_on(p.commit())),
            "abort" => self.of(c).and_then(|p| runtime.block_on(p.abort())),
            "consumer" => runtime.block_on(self.consumer(c)),
            "assign" => self.reader(c).and_then(|m| runtime.block_on(m.assign(c))),
            "seek" => self.reader(c).and_then(|m| runtime.block_on(m.seek(c))),
            "assignment" => self.reader(c).map(|m| runtime.block_on(m.assignment())),
            "commit_offsets" => self.reader(c).and_then(|m| runtime.block_on(m.commit())),
            "share_consumer" => runtime.block_on(self.share_consumer(c)),
            "acknowledge" => self.sharer(c).and_then(|m| m.acknowledge(c)),
            "commit_acknowledgements" => self.sharer(c).and_then(|m| runtime.block_on(m.commit())),
            "subscribe" => match self.sharers.get(c.text("consumer")) {
                Some(sharer) => runtime.block_on(sharer.subscribe(c)),
                None => self.reader(c).and_then(|m| runtime.block_on(m.subscribe(c))),
            },
            "poll" => match self.sharers.get_mut(c.text("consumer")) {
                Some(sharer) => Ok(runtime.block_on(sharer.poll(c))),
                None => self.reader(c).map(|m| runtime.block_on(m.poll(c))),
            },
            "create_topic" => runtime.block_on(create_topic(c)),
            "close" => runtime.block_on(self.close(c)),
            _ => return None,
        })
    }
}

impl Krafka {
    async fn producer(&mut self, c: &Command) -> Answer {
        self.producers.insert(c.text("name").into(), Producer::new(c).await?);
        Ok(Value::Null)
    }

    async fn consumer(&mut self, c: &Command) -> Answer {
        self.readers.insert(c.text("name").into(), Reader::new(c).await?);
        Ok(Value::Null)
    }

    async fn share_consumer(&mut self, c: &Command) -> Answer {
        self.sharers.insert(c.text("name").into(), Sharer::new(c).await?);
        Ok(Value::Null)
    }

    fn of(&mut self, c: &Command) -> Result<&mut Producer, Failure> {
        let name = c.text("producer");
        self.producers.get_mut(name).ok_or_else(|| format!("there is no producer {name:?}").into())
    }

    fn reader(&mut self, c: &Command) -> Result<&mut Reader, Failure> {
        let name = c.text("consumer");
        self.readers.get_mut(name).ok_or_else(|| format!("there is no consumer {name:?}").into())
    }

    fn sharer(&mut self, c: &Command) -> Result<&mut Sharer, Failure> {
        let name = c.text("consumer");
        self.sharers.get_mut(name).ok_or_else(|| format!("there is no share consumer {name:?}").into())
    }

    async fn send_offsets(&mut self, c: &Command) -> Answer {
        let reader = self.readers.get(c.text("consumer")).ok_or_else(|| "there is no such consumer".to_string())?;
        let producer = self.producers.get(c.text("producer")).ok_or_else(|| "there is no such producer".to_string())?;
        producer.send_offsets(reader).await
    }

    async fn close(&mut self, c: &Command) -> Answer {
        let (name, options) = (c.text("name"), CloseOptions::new().timeout(c.timeout()));
        if let Some(producer) = self.producers.remove(name) {
            producer.close(options).await?;
        }
        if let Some(reader) = self.readers.remove(name) {
            reader.consumer.close_with(options).await?;
        }
        if let Some(sharer) = self.sharers.remove(name) {
            sharer.consumer.close_with(options).await?;
        }
        Ok(Value::Null)
    }
}

fn security(c: &Command) -> AuthConfig {
    let (user, password) = (c.text("sasl_username"), c.text("sasl_password"));
    match (c.optional("tls_ca"), c.text("sasl_mechanism")) {
        (Some(authority), _) => AuthConfig::ssl(TlsConfig::new().with_ca_cert(authority)),
        (_, "PLAIN") => AuthConfig::sasl_plain(user, password),
        (_, "SCRAM-SHA-256") => AuthConfig::sasl_scram_sha256(user, password),
        (_, "SCRAM-SHA-512") => AuthConfig::sasl_scram_sha512(user, password),
        (_, "OAUTHBEARER") => AuthConfig::sasl_oauthbearer(c.text("sasl_token")),
        _ => AuthConfig::plaintext(),
    }
}

/// What all clients have in common.
pub fn common(c: &Command) -> KafkaBuilder {
    let timeout = Duration::from_millis(c.number("request_timeout_ms") as u64);
    Kafka::builder(c.text("bootstrap_servers"))
        .client_id(c.text("client_id"))
        .connect_timeout(timeout)
        .request_timeout(timeout)
        // As short as that of other drivers.
        .metadata_max_age(Duration::from_secs(5))
        .allow_auto_create_topics(false)
        .security(security(c))
}

/// krafka's error, classified as it classifies it.
impl From<KrafkaError> for Failure {
    fn from(error: KrafkaError) -> Self {
        let class = match &error {
            each if each.is_fatal() => "fatal",
            each if each.requires_abort() => "abortable",
            KrafkaError::DeliveryTimeout { .. } => "timeout",
            each if each.is_retriable() => "retriable",
            KrafkaError::Timeout { .. } => "timeout",
            _ => "other",
        };
        let code = match &error {
            KrafkaError::Broker { code, .. } => Some(name_of(*code)),
            _ => None,
        };
        refusal(class, code, &error.to_string())
    }
}

async fn create_topic(c: &Command) -> Answer {
    let kafka = Kafka::builder(c.text("bootstrap_servers")).client_id("exam-admin").connect().await?;
    let topic = NewTopic::new(c.text("topic"), c.number("partitions") as i32, -1)?;
    let admin = kafka.admin();
    let options = CreateTopicsOptions::default().timeout(c.timeout());
    for (_, made) in admin.create_topics([topic], options).await? {
        made?;
    }
    admin.close().await?;
    Ok(Value::Null)
}
