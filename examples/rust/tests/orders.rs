//! Cargo's tests with rdkafka. Run them with `cargo test`, with the command understudy on the PATH.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message};
use understudy::{Cluster, Disconnect, Effect, Fault};

const PATIENCE: Duration = Duration::from_secs(10);

fn send(kafka: &Cluster, order: &str) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", kafka.bootstrap_servers()).set("enable.idempotence", "true");
    let producer: BaseProducer = config.create().unwrap();
    producer.send(BaseRecord::<(), str>::to("orders").payload(order)).map_err(|(error, _)| error).unwrap();
    producer.flush(PATIENCE).unwrap();
}

/// All orders that are there.
fn read(kafka: &Cluster) -> Vec<String> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", kafka.bootstrap_servers()).set("group.id", "shipping");
    config.set("auto.offset.reset", "earliest").set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().unwrap();
    consumer.subscribe(&["orders"]).unwrap();
    let (mut orders, began) = (Vec::new(), Instant::now());
    while began.elapsed() < PATIENCE {
        match consumer.poll(PATIENCE) {
            Some(Ok(order)) => orders.push(String::from_utf8_lossy(order.payload().unwrap()).into_owned()),
            Some(Err(KafkaError::PartitionEOF(_))) => return orders,
            Some(Err(error)) => panic!("{error}"),
            None => {} // such as a rebalance
        }
    }
    panic!("the consumer does not get to the end of the partition");
}

#[test]
fn what_is_sent_is_read() {
    let kafka = understudy::start(["--brokers", "3", "--topic", "orders:1"]).unwrap();
    send(&kafka, "one order");
    assert_eq!(read(&kafka), ["one order"]);
}

#[test]
fn an_answer_that_is_lost_makes_no_second_order() {
    let kafka = understudy::start(["--topic", "orders:1"]).unwrap();
    let lost_answer = Effect::apply_then(Effect::disconnect(Disconnect::Reset));
    kafka.add_fault(Fault::new(lost_answer).api("Produce").topic("orders")).unwrap();
    send(&kafka, "one order"); // the producer is idempotent: it sends again, and the broker knows it
    assert_eq!(read(&kafka), ["one order"]);
}
