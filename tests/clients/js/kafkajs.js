// KafkaJS through the script.
'use strict';

const { Kafka, logLevel, ConfigResourceTypes } = require('kafkajs');
const codecs = require('./codecs');
const { main, text, until } = require('./script');

function headersOf(headers = {}) {
  return Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
}

function recordOf(partition, message) {
  return {
    partition,
    offset: Number(message.offset),
    timestampMs: Number(message.timestamp),
    key: text(message.key),
    value: text(message.value),
    headers: headersOf(message.headers),
  };
}

class Member {
  constructor(client, group) {
    Object.assign(this, { client, group, records: [], mine: [] });
    this.consumer = client.kafka.consumer({
      groupId: group, heartbeatInterval: 300, sessionTimeout: 10_000, maxWaitTimeInMs: 100, allowAutoTopicCreation: false,
      retry: { retries: 20 },
    });
    const { GROUP_JOIN, REBALANCING } = this.consumer.events;
    this.consumer.on(GROUP_JOIN, ({ payload }) => { this.mine = payload.memberAssignment[client.topic] || []; });
    this.consumer.on(REBALANCING, () => { this.mine = []; });
  }

  async start() {
    await this.consumer.connect();
    await this.consumer.subscribe({ topic: this.client.topic, fromBeginning: true });
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => { this.records.push(recordOf(partition, message)); },
    });
    return this;
  }

  assigned() { return this.mine; }

  commit(offsets) {
    return this.consumer.commitOffsets(offsets.map((o, partition) => ({ topic: this.client.topic, partition, offset: `${o}` })));
  }

  close() { return this.consumer.disconnect(); }
}

class KafkaJS {
  constructor(bootstrap, topic) {
    this.topic = topic;
    this.kafka = new Kafka({ brokers: bootstrap, logLevel: logLevel.WARN });
    this.admin = this.kafka.admin();
    this.altered = {};
    this.nullHeaders = false;
  }

  async start() {
    await this.admin.connect();
    return this;
  }

  close() { return this.admin.disconnect(); }

  listTopics() { return this.admin.listTopics(); }

  createTopic(numPartitions, replicationFactor) {
    return this.admin.createTopics({ topics: [{ topic: this.topic, numPartitions, replicationFactor }] });
  }

  deleteTopic() { return this.admin.deleteTopics({ topics: [this.topic] }); }

  async produce(records, codec, idempotent) {
    const producer = this.kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : undefined });
    await producer.connect();
    const messages = records.map((r) => {
      const headers = {};
      for (const [name, value] of r.headers) headers[name] = name in headers ? [headers[name], value].flat() : value;
      return { partition: r.partition, timestamp: `${r.timestampMs}`, key: r.key, value: r.value, headers };
    });
    await producer.send({ topic: this.topic, compression: codecs[codec], acks: -1, messages });
    await producer.disconnect();
  }

  join(group) { return new Member(this, group).start(); }

  // KafkaJS reads in groups only.
  async consume(count) {
    const member = await this.join(`${this.topic}-reader`);
    await until(() => member.records.length >= count, () => `${member.records.length} records`);
    await member.close();
    return member.records;
  }

  async readAt(offsets) {
    const member = await this.join(`${this.topic}-seeker`);
    await until(() => member.assigned().length === 3, () => 'no partitions');
    member.records = [];
    offsets.forEach((offset, partition) => member.consumer.seek({ topic: this.topic, partition, offset: `${offset}` }));
    const at = () => offsets.map((o, p) => member.records.find((r) => r.partition === p && r.offset === o));
    await until(() => at().every(Boolean), at);
    await member.close();
    return at();
  }

  async offsetsForTime(timestampMs) {
    const offsets = await this.admin.fetchTopicOffsetsByTimestamp(this.topic, timestampMs);
    return offsets.sort((a, b) => a.partition - b.partition).map((o) => Number(o.offset));
  }

  async earliest() {
    const offsets = await this.admin.fetchTopicOffsets(this.topic);
    return offsets.sort((a, b) => a.partition - b.partition).map((o) => Number(o.low));
  }

  async committed(groupId) {
    const [{ partitions }] = await this.admin.fetchOffsets({ groupId, topics: [this.topic] });
    return partitions.sort((a, b) => a.partition - b.partition).map((o) => Number(o.offset));
  }

  async listGroups() { return (await this.admin.listGroups()).groups.map((g) => g.groupId); }

  async describeGroup(group) {
    const { groups: [described] } = await this.admin.describeGroups([group]);
    return { state: described.state, members: described.members.length };
  }

  deleteGroup(group) { return this.admin.deleteGroups([group]); }

  async describeCluster() {
    const { brokers, controller } = await this.admin.describeCluster();
    return { ids: brokers.map((b) => b.nodeId), controller };
  }

  async describeTopic() {
    const { topics: [topic] } = await this.admin.fetchTopicMetadata({ topics: [this.topic] });
    return topic.partitions.map(({ leader, replicas, isr }) => ({ leader, replicas, isr }));
  }

  async configs(type, name) {
    const { resources: [described] } = await this.admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name }] });
    return Object.fromEntries(described.configEntries.map((e) => [e.configName, e.configValue]));
  }

  topicConfigs() { return this.configs(ConfigResourceTypes.TOPIC, this.topic); }

  brokerConfigs(broker) { return this.configs(ConfigResourceTypes.BROKER, `${broker}`); }

  // AlterConfigs, which replaces all: the client knows no IncrementalAlterConfigs.
  alterTopicConfig(name, value) {
    delete this.altered[name];
    if (value !== null) this.altered[name] = value;
    const configEntries = Object.entries(this.altered).map(([key, each]) => ({ name: key, value: each }));
    return this.admin.alterConfigs({
      validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name: this.topic, configEntries }],
    });
  }

  deleteRecords(partition, before) {
    return this.admin.deleteTopicRecords({ topic: this.topic, partitions: [{ partition, offset: `${before}` }] });
  }
}

module.exports = { KafkaJS, Member, recordOf };

if (require.main === module) main((bootstrap, topic) => new KafkaJS(bootstrap, topic).start());
