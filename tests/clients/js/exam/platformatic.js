// @platformatic/kafka as a driver of `understudy exam`.
'use strict';

// The library needs it; Node.js has it from version 22 on.
Promise.withResolvers ||= function withResolvers() {
  const out = {};
  out.promise = new this((resolve, reject) => Object.assign(out, { resolve, reject }));
  return out;
};

const zlib = require('node:zlib');
const { Admin, Consumer, Producer, GroupProtocols, MessagesStreamModes, ProduceAcks } = require('@platformatic/kafka');
const { readFileSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { Inbox, Outcomes, Unsupported, known, run, within } = require('./kit');

// Its package does not export package.json.
const { version } = JSON.parse(readFileSync(join(dirname(require.resolve('@platformatic/kafka')), '..', 'package.json'), 'utf8'));

// What it throws, as the kit knows errors: a code of Kafka where there is one, anywhere below.
function plain(error) {
  const found = [];
  const walk = (each) => {
    if (!each) return;
    found.push(each);
    for (const inner of [each.cause, ...(each.errors || [])]) walk(inner);
  };
  walk(error);
  const protocol = found.find((each) => each.apiId);
  const wrapped = new Error([...new Set(found.map((each) => each.message))].join(': '));
  wrapped.name = error.name;
  wrapped.type = protocol ? protocol.apiId : error.code;
  wrapped.retriable = Boolean(protocol ? protocol.canRetry : found.some((each) => each.code === 'PLT_KFK_NETWORK'));
  return wrapped;
}

const plainly = (promise) => promise.catch((error) => { throw plain(error); });

class Platformatic {
  constructor() {
    Object.assign(this, { library: '@platformatic/kafka', version, producers: new Map(), consumers: new Map() });
    this.capabilities = [
      'producer', 'idempotence', 'transactions', 'consumer', 'read_committed', 'groups', 'assignment', 'static_members', 'consumer_protocol',
      'compression', 'null_values', 'max_records', 'commit_offsets', 'admin',
    ];
  }

  // It has no delivery timeout: as many retries as fit into it, if each is answered at once.
  common(o) {
    const retryDelay = o.retry_backoff_ms || 50;
    return {
      clientId: o.client_id, bootstrapBrokers: o.bootstrap_servers.split(','), timeout: o.request_timeout_ms, connectTimeout: o.request_timeout_ms,
      requestTimeout: o.request_timeout_ms, retryDelay, retries: Math.ceil((o.delivery_timeout_ms || 15_000) / (4 * retryDelay)), metadataMaxAge: 5_000,
      autocreateTopics: false,
    };
  }

  // ---------------------------------------------------------------- producers

  producer(o) {
    if (o.compression === 'zstd' && !zlib.zstdCompressSync) throw new Unsupported(`it takes zstd from Node.js, and ${process.version} has none`);
    const acks = { all: ProduceAcks.ALL, 1: ProduceAcks.LEADER, 0: ProduceAcks.NO_RESPONSE }[o.acks];
    const inner = new Producer({
      ...this.common(o), acks, idempotent: o.idempotent, compression: o.compression,
      // Its one timeout is that of transactions, too.
      ...(o.transactional_id ? { timeout: o.transaction_timeout_ms } : {}),
      ...(o.transactional_id ? { transactionalId: o.transactional_id } : {}),
    });
    this.producers.set(o.name, { inner, acks, options: o, outcomes: new Outcomes(), transaction: null, last: Promise.resolve() });
  }

  send({ producer, topic, records }) {
    const p = known(this.producers, producer, 'producer');
    const messages = records.map(({ partition, key, value }) => ({
      topic, partition, key: key === null ? undefined : Buffer.from(key), value: value === null ? undefined : Buffer.from(value),
    }));
    // One after the other: sequences are numbered as the requests are made.
    // The acks of the constructor are not those of send (2.12.1), where the default of a producer without idempotence is 1.
    const sending = p.last.then(() => plainly((p.transaction || p.inner).send({ acks: p.acks, messages })));
    p.last = sending.catch(() => {});
    p.outcomes.add(records, sending.then(({ offsets }) => (offsets || []).map((each) => ({ partition: each.partition, baseOffset: Number(each.offset) }))));
  }

  flush({ producer, timeout_ms: timeoutMs }) { return known(this.producers, producer, 'producer').outcomes.flush(timeoutMs); }

  async init_transactions({ producer }) {
    await plainly(known(this.producers, producer, 'producer').inner.initIdempotentProducer({}));
  }

  async begin({ producer }) {
    const p = known(this.producers, producer, 'producer');
    p.transaction = await plainly(p.inner.beginTransaction());
  }

  async end(producer, how) {
    const p = known(this.producers, producer, 'producer');
    await p.last; // an application awaits its sends before: the library does not
    await plainly(p.transaction[how]());
    p.transaction = null;
  }

  commit({ producer }) { return this.end(producer, 'commit'); }

  abort({ producer }) { return this.end(producer, 'abort'); }

  // ---------------------------------------------------------------- consumers, which it has in groups only

  consumer(o) {
    if (o.offset_reset === 'none') throw new Unsupported('its mode `fail` is for groups without offsets only');
    const group = o.protocol === 'consumer'
      ? { groupProtocol: GroupProtocols.CONSUMER }
      : { sessionTimeout: o.session_timeout_ms, heartbeatInterval: o.heartbeat_interval_ms, rebalanceTimeout: o.session_timeout_ms };
    const inner = new Consumer({
      ...this.common(o), ...group, groupId: o.group || `without-a-group-${o.name}`, autocommit: o.auto_commit,
      isolationLevel: o.isolation === 'read_committed' ? 1 : 0, maxWaitTime: 100, minBytes: 1,
      ...(o.instance_id ? { groupInstanceId: o.instance_id } : {}),
    });
    const c = { inner, inbox: new Inbox(), options: o };
    inner.on('consumer:group:join', ({ assignments }) => {
      if (assignments) c.inbox.drop((r) => assignments.some(({ topic, partitions }) => topic === r.topic && partitions.includes(r.partition)));
    });
    inner.on('consumer:heartbeat:error', ({ error }) => c.inbox.error(plain(error)));
    this.consumers.set(o.name, c);
  }

  start(c, options) {
    const consuming = c.inner.consume({ maxWaitTime: 100, minBytes: 1, ...options }).then((stream) => {
      c.stream = stream;
      stream.on('error', (error) => c.inbox.error(plain(error)));
      stream.on('data', ({ topic, partition, offset, key, value }) => {
        c.inbox.record(topic, partition, { offset: `${offset}`, key: key || null, value });
      });
    }, (error) => c.inbox.error(plain(error)));
    return within(consuming, 15_000);
  }

  subscribe({ consumer, topics }) {
    const c = known(this.consumers, consumer, 'consumer');
    // Not awaited: joining takes until the other members have come.
    this.start(c, { topics, mode: MessagesStreamModes.COMMITTED, fallbackMode: c.options.offset_reset });
  }

  assign({ consumer, partitions }) {
    const offsets = partitions.map(({ topic, partition, offset }) => ({ topic, partition, offset: BigInt(offset) }));
    const topics = [...new Set(partitions.map(({ topic }) => topic))];
    return this.start(known(this.consumers, consumer, 'consumer'), { topics, mode: MessagesStreamModes.MANUAL, offsets });
  }

  poll({ consumer, timeout_ms: timeoutMs, max_records: max }) { return known(this.consumers, consumer, 'consumer').inbox.poll(timeoutMs, max); }

  assignment({ consumer }) {
    const { inner } = known(this.consumers, consumer, 'consumer');
    return { partitions: (inner.assignments || []).flatMap(({ topic, partitions }) => partitions.map((partition) => ({ topic, partition }))) };
  }

  commit_offsets({ consumer }) {
    const c = known(this.consumers, consumer, 'consumer');
    const { partitions } = this.assignment({ consumer });
    const offsets = c.inbox.positions(partitions).map(({ topic, partition, offset }) => ({ topic, partition, offset: BigInt(offset), leaderEpoch: -1 }));
    return plainly(c.inner.commit({ offsets }));
  }

  // ---------------------------------------------------------------- the rest

  async create_topic(o) {
    const admin = new Admin(this.common({ ...o, client_id: 'exam-admin', request_timeout_ms: 2_000 }));
    try {
      await plainly(admin.createTopics({ topics: [o.topic], partitions: o.partitions, replicas: -1 }));
    } finally {
      await admin.close();
    }
  }

  async close({ name, timeout_ms: timeoutMs }) {
    const client = this.producers.get(name) || this.consumers.get(name);
    await within(client.inner.close(true), timeoutMs);
  }
}

run(new Platformatic());
