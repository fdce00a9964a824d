// Plays the steps of tests/clients/steps.py with any JavaScript client; each is an adapter with the methods that are called here.
'use strict';

const { observed } = require('./observed');

const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
const PATIENCE_MS = 20_000;

class Unsupported extends Error {}

// A record is {partition, offset, timestampMs, key, value, headers: [[name, Buffer | null], ...]}; keys and values are strings or null.
const text = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString());
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const tick = () => new Promise((resolve) => { setTimeout(resolve, 50); });

function expect(condition, told) {
  if (!condition) throw new Error(typeof told === 'string' ? told : JSON.stringify(told));
}

// Tries until it holds.
async function until(condition, told) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    expect(Date.now() < deadline, told());
    await tick();
  }
}

async function report(name, step) {
  const began = Date.now();
  const line = { step: name, ok: false, detail: '' };
  let timer;
  try {
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no answer in 40 s')), 40_000); });
    line.detail = (await Promise.race([step(), late])) || '';
    line.ok = true;
  } catch (error) {
    line.detail = error instanceof Unsupported ? `unsupported: ${error.message}` : String(error).slice(0, 600);
    if (!(error instanceof Unsupported)) console.error(String(error.stack).slice(0, 1500));
  }
  clearTimeout(timer);
  line.ms = Date.now() - began;
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

class Script {
  constructor(client, brokers, topic, baseMs) {
    Object.assign(this, { client, brokers, topic, baseMs, group: `${topic}-group`, sent: [], read: [], members: [] });
  }

  records(first, parts) {
    return parts.map(([key, value, headers = []], i) => ({
      partition: (first + i) % 3, timestampMs: this.baseMs + 1000 * (first + i), key, value, headers,
    }));
  }

  of(records, partition) { return records.filter((r) => r.partition === partition); }

  async play() {
    await report('list_topics', async () => {
      expect(!(await this.client.listTopics()).includes(this.topic), 'listed already');
    });
    await report('create_topic', async () => {
      await this.client.createTopic(3, Math.min(this.brokers, 3));
      await until(async () => {
        const topic = await this.client.describeTopic().catch(() => []); // not every broker knows it yet
        return topic.length === 3 && topic.every((p) => p.leader > 0);
      }, () => 'no leaders');
    });
    await this.produceAll();
    await this.consumeAll();
    await this.playGroup();
    await this.playAdmin();
    await this.closeMembers();
    await this.client.close();
  }

  // -------------------------------------------------------------- producing

  produce(name, records, codec = 'none', idempotent = false) {
    return report(`produce_${name}`, async () => {
      await this.client.produce(records, codec, idempotent);
      this.sent.push(...records);
    });
  }

  async produceAll() {
    const three = (part) => [0, 1, 2].map(part);
    for (const [n, codec] of CODECS.entries()) {
      const parts = [...Array(30).keys()].map((i) => [`${codec}-${i}`, `${codec}-value-${i}-${'x'.repeat(100)}`]);
      await this.produce(codec, this.records(30 * n, parts), codec);
    }
    const headers = [['h', Buffer.from('one')], ['h', Buffer.from('two')], ['empty', Buffer.from('')]];
    await this.produce('headers', this.records(150, three((i) => [`headers-${i}`, 'headers', headers])));
    const nulls = [...three((i) => [`null-${i}`, null]), ...three((i) => [null, `no-key-${i}`])];
    await this.produce('nulls', this.records(153, nulls));
    await this.produce('idempotent', this.records(159, three((i) => [`idempotent-${i}`, 'idempotent'])), 'none', true);
    const none = [['null', null]];
    if (this.client.nullHeaders) {
      await this.produce('null_header', this.records(162, three((i) => [`null-header-${i}`, 'headers', none])));
    } else {
      await report('produce_null_header', () => { throw new Unsupported("a header's value must be a string or a buffer"); });
    }
  }

  // -------------------------------------------------------------- consuming

  async consumeAll() {
    await report('consume_from_start', async () => {
      this.read = await this.client.consume(this.sent.length);
      for (const p of [0, 1, 2]) {
        const [got, want] = [this.read, this.sent].map((records) => this.of(records, p).map((r) => [r.key, r.value]));
        expect(same(got, want), `partition ${p}: ${JSON.stringify(got)}`);
      }
      return `${this.read.length} records`;
    });
    await report('consume_headers', async () => {
      const [got, want] = [this.read, this.sent].map((records) => records.map((r) => r.headers).filter((h) => h.length)
        .map((h) => h.map(([name, value]) => `${name}=${text(value)}`).join(';')).sort());
      expect(same(got, want) && got.length >= 3, { got, want });
    });
    await report('consume_nulls', async () => {
      const count = (field) => this.read.filter((r) => r[field] === null).length;
      expect(count('value') === 3 && count('key') === 3, `${count('value')} null values, ${count('key')} null keys`);
    });
    await report('consume_timestamps', async () => {
      for (const p of [0, 1, 2]) {
        const [got, want] = [this.read, this.sent].map((records) => this.of(records, p).map((r) => r.timestampMs));
        expect(same(got, want) && got.length > 50, { got, want });
      }
    });
    await report('consume_by_timestamp', async () => {
      const moment = this.baseMs + 75_000;
      const offsets = await this.client.offsetsForTime(moment);
      expect(same(offsets, [25, 25, 25]), offsets);
      for (const r of await this.client.readAt(offsets)) expect(r.timestampMs === moment + 1000 * r.partition, r);
    });
  }

  // -------------------------------------------------------------- the group

  shares() { return this.members.map((member) => member.assigned()); }

  assigned(right) { return until(() => right(this.shares()), () => this.shares()); }

  async playGroup() {
    await report('group_join', async () => {
      this.members.push(await this.client.join(this.group));
      await this.assigned(([first]) => first.length === 3);
    });
    await report('group_rebalance', async () => {
      this.members.push(await this.client.join(this.group));
      await this.assigned(([a, b]) => a.length > 0 && b.length > 0 && same([...a, ...b].sort(), [0, 1, 2]));
      return JSON.stringify(this.shares());
    });
    await report('group_leave', async () => {
      await this.members.pop().close();
      await this.assigned(([first]) => first.length === 3);
    });
    await report('commit', async () => {
      await this.members[0].commit([10, 11, 12]);
      let committed; // Confluent's client does not wait for the answer
      await until(async () => {
        committed = await this.client.committed(this.group);
        return same(committed, [10, 11, 12]);
      }, () => committed);
    });
    await report('resume', async () => {
      await this.closeMembers();
      const member = await this.client.join(this.group);
      this.members.push(member);
      const first = () => [0, 1, 2].map((p) => this.of(member.records, p)[0]?.offset);
      await until(() => first().every((offset) => offset !== undefined), first);
      expect(same(first(), [10, 11, 12]), first());
    });
  }

  async closeMembers() {
    while (this.members.length) await this.members.pop().close();
  }

  // -------------------------------------------------------------- administration

  async playAdmin() {
    const { client } = this;
    await report('list_groups', async () => {
      expect((await client.listGroups()).includes(this.group), 'not listed');
    });
    await report('describe_group', async () => {
      const { state, members } = await client.describeGroup(this.group);
      expect(state.toLowerCase() === 'stable' && members === 1, { state, members });
    });
    await report('describe_cluster', async () => {
      const { ids, controller } = await client.describeCluster();
      expect(ids.length === this.brokers && ids.includes(controller), { ids, controller });
    });
    await report('describe_topic', async () => {
      const topic = await client.describeTopic();
      expect(topic.length === 3, topic);
      for (const { leader, replicas, isr } of topic) {
        expect(isr.includes(leader) && same([...isr].sort(), [...replicas].sort()), topic);
        expect(new Set(replicas).size === Math.min(this.brokers, 3), topic);
      }
    });
    await report('describe_configs', () => this.describeConfigs());
    await report('alter_configs', () => this.alterConfigs());
    await report('delete_records', async () => {
      await client.deleteRecords(0, 5);
      expect((await client.earliest())[0] === 5, await client.earliest());
    });
    await report('delete_group', async () => {
      await this.closeMembers();
      await client.deleteGroup(this.group);
      expect(!(await client.listGroups()).includes(this.group), 'still listed');
    });
    await report('delete_topic', async () => {
      await client.deleteTopic();
      await until(async () => !(await client.listTopics()).includes(this.topic), () => 'still listed');
    });
  }

  async describeConfigs() {
    const topic = await this.client.topicConfigs();
    expect(topic['cleanup.policy'] === 'delete' && topic['retention.ms'] === '604800000', topic);
    const { ids } = await this.client.describeCluster();
    const broker = await this.client.brokerConfigs(ids[0]);
    expect(broker['log.retention.hours'] === '168', broker);
    return `${Object.keys(topic).length} of the topic, ${Object.keys(broker).length} of the broker`;
  }

  async alterConfigs() {
    const seen = (retention) => until(async () => {
      const topic = await this.client.topicConfigs();
      return topic['retention.ms'] === retention && topic['max.message.bytes'] === '100000';
    }, () => `retention.ms is not ${retention}`);
    await this.client.alterTopicConfig('retention.ms', '3600000');
    await this.client.alterTopicConfig('max.message.bytes', '100000');
    await seen('3600000');
    await this.client.alterTopicConfig('retention.ms', null);
    await seen('604800000');
  }
}

async function main(connect) {
  const [bootstrap, brokers, topic, baseMs] = process.argv.slice(2);
  const client = observed(await connect(bootstrap.split(','), topic), 'client', { join: 'join' });
  await new Script(client, Number(brokers), topic, Number(baseMs)).play();
  process.exit(0);
}

module.exports = { CODECS, Unsupported, main, report, text, tick, until, expect };
