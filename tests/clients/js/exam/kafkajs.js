// KafkaJS as a driver of `understudy exam`.
'use strict';

const fs = require('node:fs');

const { ConfigResourceTypes, CompressionTypes, Kafka, logLevel } = require('kafkajs');
const { version } = require('kafkajs/package.json');
const { Inbox, Outcomes, Refused, Unsupported, known, messagesOf, run, within } = require('./kit');

// The codecs that the library brings, or with `--codecs` those that its users add.
const CODECS = process.argv.includes('--codecs') ? require('../codecs') : { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };

class Producer {
  constructor(inner, options) { Object.assign(this, { inner, options, outcomes: new Outcomes(), transaction: null, last: Promise.resolve() }); }
}

// The settings of TLS and SASL.
function security(o) {
  if (o.tls_ca) return { ssl: { ca: [fs.readFileSync(o.tls_ca, 'utf-8')] } };
  if (!o.sasl_mechanism) return {};
  const mechanism = o.sasl_mechanism.toLowerCase();
  if (o.sasl_token) return { sasl: { mechanism, oauthBearerProvider: async () => ({ value: o.sasl_token }) } };
  return { sasl: { mechanism, username: o.sasl_username, password: o.sasl_password } };
}

const inOrder = (partitions, field) => [...partitions].sort((a, b) => a.partition - b.partition).map((each) => Number(each[field]));

const startsOf = (places) => new Map(places.map(({ topic, partition, offset }) => [`${topic} ${partition}`, offset]));

class KafkaJS {
  constructor() {
    Object.assign(this, { library: 'KafkaJS', version, producers: new Map(), consumers: new Map(), altered: {} });
    this.capabilities = [
      'producer', 'idempotence', 'transactions', 'send_offsets', 'consumer', 'read_committed', 'offset_reset', 'seek', 'groups', 'assignment',
      'compression', 'null_values', 'max_records', 'auto_commit', 'commit_offsets', 'admin', 'tls', 'sasl_plain', 'sasl_scram', 'sasl_oauthbearer',
    ];
  }

  // It has no delivery timeout: as many retries as fit into it, if each is answered at once.
  client(o) {
    const backoff = o.retry_backoff_ms || 50;
    const retry = { initialRetryTime: backoff, maxRetryTime: 4 * backoff, retries: Math.ceil((o.delivery_timeout_ms || 15_000) / (4 * backoff)) };
    return new Kafka({
      clientId: o.client_id, brokers: o.bootstrap_servers.split(','), logLevel: logLevel.NOTHING,
      requestTimeout: o.request_timeout_ms, connectionTimeout: o.request_timeout_ms, retry, ...security(o),
      reauthenticationThreshold: 300, // its 10 s are longer than the exam's sessions
    });
  }

  // ---------------------------------------------------------------- producers

  async producer(o) {
    if (!(o.compression in CODECS)) throw new Unsupported(`KafkaJS brings no ${o.compression}`);
    const inner = this.client(o).producer({
      idempotent: o.idempotent, transactionalId: o.transactional_id || undefined, transactionTimeout: o.transaction_timeout_ms,
      maxInFlightRequests: o.idempotent ? 1 : o.max_in_flight, allowAutoTopicCreation: false, metadataMaxAge: 5_000,
    });
    this.producers.set(o.name, new Producer(inner, o));
    if (!o.transactional_id) await inner.connect();
  }

  send({ producer, topic, records }) {
    const p = known(this.producers, producer, 'producer');
    const messages = messagesOf(records);
    const acks = p.options.acks === 'all' ? -1 : Number(p.options.acks);
    // One after the other: the library does not order sends that run at the same time.
    const compression = CODECS[p.options.compression];
    const sending = p.last.then(() => (p.transaction || p.inner).send({ topic, acks, compression, messages }));
    p.last = sending.catch(() => {});
    p.outcomes.add(records, sending);
  }

  flush({ producer, timeout_ms: timeoutMs }) { return known(this.producers, producer, 'producer').outcomes.flush(timeoutMs); }

  init_transactions({ producer }) { return known(this.producers, producer, 'producer').inner.connect(); }

  async begin({ producer }) {
    const p = known(this.producers, producer, 'producer');
    p.transaction = await p.inner.transaction();
  }

  async send_offsets({ producer, consumer }) {
    const c = known(this.consumers, consumer, 'consumer');
    const topics = new Map();
    for (const { topic, partition, offset } of c.inbox.positions()) topics.set(topic, [...(topics.get(topic) || []), { partition, offset }]);
    await this.producers.get(producer).transaction.sendOffsets({
      consumerGroupId: c.groupId, topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
    });
  }

  commit({ producer }) { return this.end(producer, 'commit'); }

  abort({ producer }) { return this.end(producer, 'abort'); }

  // An application awaits its sends before: the library does not.
  async end(producer, how) {
    const p = known(this.producers, producer, 'producer');
    await p.last;
    await p.transaction[how]();
  }

  // ---------------------------------------------------------------- consumers, which KafkaJS has in groups only

  async consumer(o) {
    if (o.offset_reset === 'none') throw new Unsupported('KafkaJS resets offsets always');
    const groupId = o.group || `without-a-group-${o.name}`;
    const c = { inbox: new Inbox(), groupId, options: o, mine: {} };
    c.inner = this.client(o).consumer({
      groupId, sessionTimeout: o.session_timeout_ms, heartbeatInterval: o.heartbeat_interval_ms, maxWaitTimeInMs: 100,
      readUncommitted: o.isolation === 'read_uncommitted', allowAutoTopicCreation: false, metadataMaxAge: 5_000,
    });
    c.joined = new Promise((resolve) => {
      c.inner.on(c.inner.events.GROUP_JOIN, ({ payload }) => { this.joined(c, payload.memberAssignment); resolve(); });
    });
    c.inner.on(c.inner.events.REBALANCING, () => { c.mine = {}; });
    c.inner.on(c.inner.events.CRASH, ({ payload }) => c.inbox.error(payload.error));
    this.consumers.set(o.name, c);
  }

  // It reads each partition from the group's offset again, so that what was not polled yet comes again, here or elsewhere.
  joined(c, assignment) {
    c.mine = assignment;
    c.inbox.begin_again(({ topic, partition }) => (assignment[topic] || []).includes(partition));
  }

  async start(c, topics, autoCommit) {
    await c.inner.connect();
    await c.inner.subscribe({ topics, fromBeginning: c.options.offset_reset === 'earliest' });
    await c.inner.run({
      autoCommit, autoCommitThreshold: 1,
      eachMessage: (each) => this.received(c, each),
    });
  }

  async received(c, { topic, partition, message }) {
    if (c.from && !c.from.has(`${topic} ${partition}`)) return;
    c.inbox.record(topic, partition, message);
    if (c.options.auto_commit) await c.inbox.processed();
  }

  subscribe({ consumer, topics }) { const c = known(this.consumers, consumer, 'consumer'); return this.start(c, topics, c.options.auto_commit); }

  // A group of its own, and a seek. It commits: the library goes back to the group's offsets when it begins again after an error.
  async assign({ consumer, partitions }) {
    const c = known(this.consumers, consumer, 'consumer');
    c.from = startsOf(partitions);
    await this.start(c, [...new Set(partitions.map(({ topic }) => topic))], true);
    await this.begin_at(c, partitions);
    await within(c.joined, 15_000);
    c.inbox.records = [];
  }

  // It refuses to seek while it begins again after an error.
  async begin_at(c, partitions) {
    for (const until = Date.now() + 15_000; ;) {
      try {
        for (const { topic, partition, offset } of partitions) c.inner.seek({ topic, partition, offset: `${offset}` });
        return;
      } catch (error) {
        if (Date.now() > until) throw error;
        await new Promise((resolve) => { setTimeout(resolve, 100); });
      }
    }
  }

  poll({ consumer, timeout_ms: timeoutMs, max_records: max }) { return known(this.consumers, consumer, 'consumer').inbox.poll(timeoutMs, max); }

  assignment({ consumer }) {
    const { mine } = known(this.consumers, consumer, 'consumer');
    return { partitions: Object.entries(mine).flatMap(([topic, all]) => all.map((partition) => ({ topic, partition }))) };
  }

  seek({ consumer, topic, partition, offset }) {
    const c = known(this.consumers, consumer, 'consumer');
    c.inbox.drop((each) => each.topic !== topic || each.partition !== partition);
    c.inbox.next.set(`${topic} ${partition}`, { topic, partition, offset: `${offset}` }); // else what was polled before would be committed
    return c.inner.seek({ topic, partition, offset: `${offset}` });
  }

  commit_offsets({ consumer, offsets }) {
    const c = known(this.consumers, consumer, 'consumer');
    const places = offsets && offsets.map(({ topic, partition, offset }) => ({ topic, partition, offset: `${offset}` }));
    return c.inner.commitOffsets(places || c.inbox.positions(this.assignment({ consumer }).partitions));
  }

  // ---------------------------------------------------------------- administration

  async asked(o, work) {
    const admin = this.client({ ...o, client_id: 'exam-admin', request_timeout_ms: 2_000 }).admin();
    await admin.connect();
    try {
      return await work(admin);
    } finally {
      await admin.disconnect();
    }
  }

  async create_topic(o) {
    const topic = { topic: o.topic, numPartitions: o.partitions, replicationFactor: o.replicas ?? -1 };
    const created = await this.asked(o, (admin) => admin.createTopics({ topics: [topic] }));
    if (!created) throw new Refused('other', 'TOPIC_ALREADY_EXISTS', 'createTopics: false');
  }

  list_topics(o) { return this.asked(o, async (admin) => ({ topics: await admin.listTopics() })); }

  topic(admin, topic) { return admin.fetchTopicMetadata({ topics: [topic] }).then(({ topics: [described] }) => described); }

  async describe_topic(o) {
    const { partitions } = await this.asked(o, (admin) => this.topic(admin, o.topic));
    return { partitions: partitions.map(({ partitionId, leader, replicas, isr }) => ({ partition: partitionId, leader, replicas, isr })) };
  }

  delete_topic(o) { return this.asked(o, (admin) => admin.deleteTopics({ topics: [o.topic] })).then(() => {}); }

  async list_groups(o) {
    const { groups } = await this.asked(o, (admin) => admin.listGroups());
    return { groups: groups.map(({ groupId }) => groupId) };
  }

  async describe_group(o) {
    const { groups: [{ state, members }] } = await this.asked(o, (admin) => admin.describeGroups([o.group]));
    return { state, members: members.length };
  }

  delete_group(o) { return this.asked(o, (admin) => admin.deleteGroups([o.group])).then(() => {}); }

  committed_topic(topic) { return topic; }

  async committed(o) {
    const topics = [this.committed_topic(o.topic, o.partitions)];
    const [{ partitions }] = await this.asked(o, (admin) => admin.fetchOffsets({ groupId: o.group, topics }));
    return { offsets: inOrder(partitions, 'offset') };
  }

  async describe_cluster(o) {
    const { brokers, controller } = await this.asked(o, (admin) => admin.describeCluster());
    return { brokers: brokers.map(({ nodeId }) => nodeId), controller };
  }

  async describe_configs(o) {
    const resources = [{ type: ConfigResourceTypes[o.kind.toUpperCase()], name: o.name }];
    const { resources: [described] } = await this.asked(o, (admin) => admin.describeConfigs({ includeSynonyms: false, resources }));
    return { settings: Object.fromEntries(described.configEntries.map((each) => [each.configName, each.configValue])) };
  }

  // AlterConfigs, which replaces all: the library knows no IncrementalAlterConfigs.
  async alter_config(o) {
    const altered = (this.altered[o.topic] ??= {});
    if (o.value === null) delete altered[o.setting];
    else altered[o.setting] = o.value;
    const configEntries = Object.entries(altered).map(([name, value]) => ({ name, value }));
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: o.topic, configEntries }];
    await this.asked(o, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
  }

  async delete_records(o) {
    const partitions = [{ partition: o.partition, offset: `${o.offset}` }];
    await this.asked(o, async (admin) => {
      await admin.fetchTopicOffsets(o.topic); // it needs to know the leaders
      await admin.deleteTopicRecords({ topic: o.topic, partitions });
    });
    return { low: null };
  }

  async list_offsets(o) {
    if (o.timestamp < 0) return { offsets: inOrder(await this.asked(o, (admin) => admin.fetchTopicOffsets(o.topic)), 'low') };
    return { offsets: inOrder(await this.asked(o, (admin) => admin.fetchTopicOffsetsByTimestamp(o.topic, o.timestamp)), 'offset') };
  }

  // ---------------------------------------------------------------- the rest

  async close({ name, timeout_ms: timeoutMs }) {
    const client = this.producers.get(name) || this.consumers.get(name);
    if (client.inbox) client.inbox.close();
    await within(client.inner.disconnect(), timeoutMs);
  }
}

module.exports = { KafkaJS, Producer, startsOf };

if (require.main === module) run(new KafkaJS());
