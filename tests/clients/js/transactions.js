// KafkaJS through the transactional script of tests/clients/transactions/steps.py.
'use strict';

const { Kafka, logLevel } = require('kafkajs');
const { observed, tell } = require('./observed');
const { Unsupported, expect, report, tick, until } = require('./script');

const NUMBERED = 300;
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const values = (name) => [0, 1, 2].map((partition) => ({ partition, value: `${name}-${partition}` }));

class Script {
  constructor(bootstrap, brokers, topic) {
    this.kafka = new Kafka({ brokers: bootstrap, logLevel: logLevel.NOTHING });
    Object.assign(this, {
      brokers, in: `${topic}-in`, out: `${topic}-out`, result: `${topic}-result`, id: `${topic}-id`, group: `${topic}-group`,
      seen: [], readers: 0,
    });
  }

  async play() {
    for (const name of ['create', 'commit', 'abort', 'isolation', 'fencing', 'transform', 'zombie', 'timeout']) {
      await report(name, () => this[name]());
    }
    process.exit(0);
  }

  // -------------------------------------------------------------- clients

  async plain(topic, messages) {
    const producer = observed(this.kafka.producer(), 'producer');
    await producer.connect();
    await producer.send({ topic, messages });
    await producer.disconnect();
  }

  async transactor(transactionalId, transactionTimeout) {
    const settings = { transactionalId, transactionTimeout, idempotent: true, maxInFlightRequests: 1 };
    const producer = observed(this.kafka.producer(settings), 'producer', { transaction: 'transaction' });
    await producer.connect();
    await (await producer.transaction()).abort(); // it asks for its producer id with the first transaction
    return producer;
  }

  // A transaction, left open.
  async transact(producer, name) {
    const transaction = await producer.transaction();
    await transaction.send({ topic: this.out, messages: values(name) });
    return transaction;
  }

  async member(groupId, topic, eachBatch, readUncommitted = false) {
    const consumer = this.kafka.consumer({
      groupId, readUncommitted, heartbeatInterval: 300, sessionTimeout: 10_000, maxWaitTimeInMs: 50, maxBytesPerPartition: 1000,
    });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: eachBatch(consumer) });
    return consumer;
  }

  async read(topic, count, readUncommitted = false) {
    const read = [];
    this.readers += 1;
    const consumer = await this.member(`${this.group}-reader-${this.readers}`, topic, () => async ({ batch, resolveOffset }) => {
      for (const message of batch.messages) {
        read.push(message.value.toString());
        resolveOffset(message.offset);
      }
    }, readUncommitted);
    await until(() => read.length >= count, () => read);
    for (let quiet = 0; quiet < 6; quiet += 1) await tick(); // what should not be there has this long to come
    await consumer.disconnect();
    read.sort();
    tell('consumer.read', { returned: read });
    return read;
  }

  // Compares what read_committed shows with what was committed, these names now among it.
  async committed(...names) {
    for (const name of names) this.seen.push(...values(name).map((m) => m.value));
    this.seen.sort();
    const read = await this.read(this.out, this.seen.length);
    expect(same(read, this.seen), { read, wanted: this.seen });
  }

  async refused(work) {
    try {
      await work();
    } catch (error) {
      return error;
    }
    throw new Error('nothing was refused');
  }

  // -------------------------------------------------------------- steps

  async create() {
    const admin = this.kafka.admin();
    await admin.connect();
    const topics = [this.in, this.out, this.result];
    await admin.createTopics({
      topics: topics.map((topic) => ({ topic, numPartitions: 3, replicationFactor: Math.min(this.brokers, 3) })),
    });
    await admin.disconnect();
    await this.plain(this.in, [...Array(NUMBERED).keys()].map((n) => ({ partition: n % 3, value: `${n}` })));
    this.producer = await this.transactor(this.id, 30_000);
  }

  async commit() {
    await (await this.transact(this.producer, 'committed')).commit();
    await this.committed('committed');
  }

  async abort() {
    await (await this.transact(this.producer, 'aborted')).abort();
    await this.committed();
    const raw = await this.read(this.out, this.seen.length + 3, true);
    expect(values('aborted').every((m) => raw.includes(m.value)), raw);
  }

  async isolation() {
    const open = await this.transact(this.producer, 'open');
    await this.plain(this.out, values('after'));
    await this.committed();
    await open.commit();
    await this.committed('open', 'after');
  }

  async fencing() {
    const first = await this.transact(this.producer, 'fenced');
    this.producer = await this.transactor(this.id, 30_000);
    const told = await this.refused(async () => {
      await first.send({ topic: this.out, messages: values('late').slice(0, 1) });
      await first.commit();
    });
    expect(['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'].includes(told.type), `${told.type} ${told}`);
    await (await this.transact(this.producer, 'second')).commit();
    await this.committed('second');
    return told.type;
  }

  async transform() {
    const written = new Set();
    let turns = 0;
    let failed = null;
    const consumer = await this.member(this.group, this.in, (running) => async ({ batch }) => {
      const { partition, messages } = batch;
      if (failed || written.size >= NUMBERED) return;
      try {
        turns += 1;
        const transaction = await this.producer.transaction();
        const out = messages.map((m) => ({ partition, value: `t-${m.value}` }));
        await transaction.send({ topic: this.result, messages: out });
        const offsets = [{ partition, offset: `${Number(messages.at(-1).offset) + 1}` }];
        await transaction.sendOffsets({ consumerGroupId: this.group, topics: [{ topic: this.in, partitions: offsets }] });
        if (turns % 3 === 0) {
          await transaction.abort();
          running.seek({ topic: this.in, partition, offset: messages[0].offset });
        } else {
          await transaction.commit();
          messages.forEach((m) => written.add(`${m.value}`));
          running.seek({ topic: this.in, partition, offset: offsets[0].offset });
        }
      } catch (error) {
        failed = error;
      }
    });
    await until(() => failed || written.size >= NUMBERED, () => `${written.size} records`);
    await consumer.disconnect();
    if (failed) throw failed;
    const read = await this.read(this.result, NUMBERED);
    expect(read.length === NUMBERED && new Set(read).size === NUMBERED, `${read.length} records`);
    const admin = this.kafka.admin();
    await admin.connect();
    const [{ partitions }] = await admin.fetchOffsets({ groupId: this.group, topics: [this.in] });
    await admin.disconnect();
    expect(partitions.every((p) => Number(p.offset) === NUMBERED / 3), partitions);
    return `${turns} transactions`;
  }

  async zombie() {
    throw new Unsupported("sendOffsets takes the group's id only, neither member nor generation");
  }

  async timeout() {
    const late = await this.transactor(`${this.id}-late`, 1000);
    const transaction = await this.transact(late, 'late');
    await this.plain(this.out, values('waiting'));
    await this.committed('waiting'); // visible once the coordinator has aborted what was before it
    const told = await this.refused(async () => {
      await transaction.send({ topic: this.out, messages: values('late').slice(0, 1) });
      await transaction.commit();
    });
    const heir = await this.transactor(`${this.id}-late`, 30_000);
    await (await this.transact(heir, 'recovered')).commit();
    await this.committed('recovered');
    return told.type;
  }
}

const [bootstrap, brokers, topic] = process.argv.slice(2);
new Script(bootstrap.split(','), Number(brokers), topic).play();
