// @confluentinc/kafka-javascript (librdkafka behind KafkaJS's interface) through the script.
'use strict';

const { KafkaJS: Confluent } = require('@confluentinc/kafka-javascript');
const { KafkaJS, recordOf } = require('./kafkajs');
const { main, Unsupported } = require('./script');

class Member {
  constructor(client, groupId) {
    Object.assign(this, { client, records: [] });
    this.consumer = client.kafka.consumer({
      kafkaJS: {
        groupId,
        fromBeginning: true,
        autoCommit: false,
        heartbeatInterval: 300,
        sessionTimeout: 10_000,
        // A consumer that closes asks once more for its topic. Where that is read after DeleteTopics, it would make the topic again.
        allowAutoTopicCreation: false,
      },
    });
  }

  async start() {
    await this.consumer.connect();
    await this.consumer.subscribe({ topic: this.client.topic });
    this.running = this.consumer.run({
      eachMessage: async ({ partition, message }) => { this.records.push(recordOf(partition, message)); },
    });
    return this;
  }

  assigned() {
    return this.consumer.assignment().filter((each) => each.topic === this.client.topic).map((each) => each.partition);
  }

  commit(offsets) {
    return this.consumer.commitOffsets(offsets.map((o, partition) => ({ topic: this.client.topic, partition, offset: `${o}` })));
  }

  close() { return this.consumer.disconnect(); }
}

class ConfluentJS extends KafkaJS {
  constructor(bootstrap, topic) {
    super(bootstrap, topic);
    this.kafka = new Confluent.Kafka({ kafkaJS: { brokers: bootstrap, logLevel: Confluent.logLevel.WARN } });
    this.admin = this.kafka.admin();
  }

  join(group) { return new Member(this, group).start(); }

  async produce(records, codec, idempotent) {
    const producer = this.kafka.producer({ kafkaJS: { idempotent, acks: -1, compression: codec } });
    await producer.connect();
    const messages = records.map((r) => {
      const headers = {};
      for (const [name, value] of r.headers) headers[name] = name in headers ? [headers[name], value].flat() : value;
      return { partition: r.partition, timestamp: `${r.timestampMs}`, key: r.key, value: r.value, headers };
    });
    await producer.send({ topic: this.topic, messages });
    await producer.disconnect();
  }

  async committed(groupId) {
    const [{ partitions }] = await this.admin.fetchOffsets({ groupId, topics: [{ topic: this.topic, partitions: [0, 1, 2] }] });
    return partitions.sort((a, b) => a.partition - b.partition).map((o) => Number(o.offset));
  }

  async listGroups() { return (await this.admin.listGroups()).groups.map((g) => g.groupId); }

  async describeGroup(group) {
    const { groups: [described] } = await this.admin.describeGroups([group]);
    const [state] = Object.entries(Confluent.ConsumerGroupStates).find(([, value]) => value === described.state);
    return { state, members: described.members.length };
  }

  async describeTopic() {
    const [topic] = await this.admin.fetchTopicMetadata({ topics: [this.topic] });
    return topic.partitions.map(({ leader, replicas, isr }) => ({ leader, replicas, isr }));
  }

  async describeCluster() { throw new Unsupported('the admin client has no call for DescribeCluster'); }

  async topicConfigs() { throw new Unsupported('the admin client has no call for DescribeConfigs'); }

  async alterTopicConfig() { throw new Unsupported('the admin client has no call for IncrementalAlterConfigs'); }
}

main((bootstrap, topic) => new ConfluentJS(bootstrap, topic).start());
