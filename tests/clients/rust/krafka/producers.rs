//! Producers of krafka.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka::producer::{Acks, DeliveryHandle, ProducerBuilder, TransactionalProducer};
use krafka::{CloseOptions, Compression, Kafka, KrafkaError, Record};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::common;
use crate::consumers::Reader;
use crate::kit::{Answer, Command, Failure, Outcomes};

/// One with or without transactions.
enum Inner {
    Plain(krafka::producer::Producer),
    Transactional(TransactionalProducer),
}

impl Inner {
    async fn enqueue(&self, record: Record) -> Result<DeliveryHandle, KrafkaError> {
        match self {
            Inner::Plain(producer) => producer.enqueue(record).await,
            Inner::Transactional(producer) => producer.enqueue(record).await,
        }
    }
}

/// Records in the order of `send`: `enqueue` may wait for metadata, and a transaction ends after those before it.
enum Work {
    Record(usize, Record),
    Reached(oneshot::Sender<()>),
}

struct Running {
    inner: Arc<Inner>,
    work: mpsc::UnboundedSender<Work>,
}

pub struct Producer {
    kafka: Kafka,
    options: Options,
    outcomes: Arc<Outcomes>,
    /// None of a transactional one that has no producer id yet.
    running: Option<Running>,
}

struct Options {
    acks: Acks,
    idempotent: bool,
    transactional_id: Option<String>,
    transaction_timeout: Duration,
    delivery_timeout: Duration,
    retry_backoff: Duration,
    linger: Duration,
    compression: Compression,
}

impl Options {
    fn new(c: &Command) -> Self {
        let duration = |field| Duration::from_millis(c.number(field) as u64);
        Options {
            acks: match c.text("acks") {
                "0" => Acks::None,
                "1" => Acks::Leader,
                _ => Acks::All,
            },
            idempotent: c.flag("idempotent"),
            transactional_id: c.optional("transactional_id"),
            transaction_timeout: duration("transaction_timeout_ms"),
            delivery_timeout: duration("delivery_timeout_ms"),
            retry_backoff: duration("retry_backoff_ms"),
            linger: duration("linger_ms"),
            compression: match c.text("compression") {
                "gzip" => Compression::Gzip,
                "snappy" => Compression::Snappy,
                "lz4" => Compression::Lz4,
                "zstd" => Compression::Zstd,
                _ => Compression::None,
            },
        }
    }

    fn builder(&self, kafka: &Kafka) -> ProducerBuilder {
        let builder = kafka.producer().acks(self.acks).idempotent(self.idempotent).compression(self.compression);
        builder
            .delivery_timeout(self.delivery_timeout)
            .max_block(self.delivery_timeout)
            .retry_backoff(self.retry_backoff)
            .linger(self.linger)
    }
}

impl Producer {
    pub async fn new(c: &Command) -> Result<Self, Failure> {
        let in_flight = c.number("max_in_flight").max(1) as usize;
        let kafka = common(c).max_in_flight_requests(in_flight).connect().await?;
        let (options, outcomes) = (Options::new(c), Arc::default());
        let mut producer = Producer { kafka, options, outcomes, running: None };
        if producer.options.transactional_id.is_none() {
            let inner = producer.options.builder(&producer.kafka).build().await?;
            producer.start(Inner::Plain(inner));
        }
        Ok(producer)
    }

    fn start(&mut self, inner: Inner) {
        let (work, mut queue) = mpsc::unbounded_channel();
        let (inner, outcomes) = (Arc::new(inner), self.outcomes.clone());
        self.running = Some(Running { inner: inner.clone(), work });
        tokio::spawn(async move {
            while let Some(each) = queue.recv().await {
                match each {
                    Work::Record(id, record) => match inner.enqueue(record).await {
                        Ok(handle) => {
                            let outcomes = outcomes.clone();
                            tokio::spawn(async move {
                                match handle.await {
                                    Ok(written) => outcomes.written(id, written.offset),
                                    Err(error) => outcomes.refused(id, error.into()),
                                }
                            });
                        }
                        Err(error) => outcomes.refused(id, error.into()),
                    },
                    Work::Reached(reached) => {
                        let _ = reached.send(());
                    }
                }
            }
        });
    }

    fn running(&self) -> Result<&Running, Failure> {
        self.running.as_ref().ok_or_else(|| "transactions are not initialized".to_string().into())
    }

    fn transactional(&self) -> Result<&TransactionalProducer, Failure> {
        match &*self.running()?.inner {
            Inner::Transactional(producer) => Ok(producer),
            Inner::Plain(_) => Err("the producer has no transactions".to_string().into()),
        }
    }

    pub fn send(&self, c: &Command) -> Value {
        for each in c.list("records") {
            let id = each.number("id") as usize;
            let mut record =
                Record::new(c.text("topic"), each.text("value").to_string()).partition(each.number("partition") as i32);
            if let Some(key) = each.optional("key") {
                record = record.key(key);
            }
            self.outcomes.sent();
            match self.running() {
                Ok(running) => drop(running.work.send(Work::Record(id, record))),
                Err(failure) => self.outcomes.refused(id, failure),
            }
        }
        Value::Null
    }

    pub fn flush(&self, c: &Command) -> Value {
        self.outcomes.flush(Instant::now() + c.timeout())
    }

    /// krafka gets the producer id where it builds the producer.
    pub async fn initialize(&mut self) -> Answer {
        if let (None, Some(id)) = (&self.running, &self.options.transactional_id) {
            let builder = self.options.builder(&self.kafka).transaction_timeout(self.options.transaction_timeout);
            let inner = builder.build_transactional(id).await?;
            self.start(Inner::Transactional(inner));
        }
        Ok(Value::Null)
    }

    pub fn begin(&self) -> Answer {
        self.transactional()?.begin()?;
        Ok(Value::Null)
    }

    pub async fn send_offsets(&self, reader: &Reader) -> Answer {
        let producer = self.transactional()?;
        let member = reader.consumer.group_metadata().await;
        let member = member.ok_or_else(|| "the consumer is no member".to_string())?;
        producer.send_offsets(&reader.positions().await, &member).await?;
        Ok(Value::Null)
    }

    pub async fn commit(&self) -> Answer {
        self.ended(|producer| producer.commit()).await
    }

    pub async fn abort(&self) -> Answer {
        self.ended(|producer| producer.abort()).await
    }

    /// Ends the transaction after what was sent before has been handed over.
    async fn ended<'a, F, R>(&'a self, end: F) -> Answer
    where
        F: FnOnce(&'a TransactionalProducer) -> R,
        R: Future<Output = Result<(), KrafkaError>>,
    {
        let producer = self.transactional()?;
        let (reached, reaches) = oneshot::channel();
        let _ = self.running()?.work.send(Work::Reached(reached));
        let _ = reaches.await;
        end(producer).await?;
        Ok(Value::Null)
    }

    pub async fn close(self, options: CloseOptions) -> Answer {
        if let Some(running) = self.running {
            match &*running.inner {
                Inner::Plain(producer) => producer.close_with(options).await?,
                Inner::Transactional(producer) => producer.close_with(options).await?,
            }
        }
        Ok(Value::Null)
    }
}
