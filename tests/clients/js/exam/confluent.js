// @confluentinc/kafka-javascript (librdkafka behind KafkaJS's interface) as a driver of `understudy exam`.
'use strict';

const { KafkaJS: Confluent } = require('@confluentinc/kafka-javascript');
const { version } = require('@confluentinc/kafka-javascript/package.json');
const { KafkaJS, Producer, startsOf } = require('./kafkajs');
const { Inbox, Unsupported, known, messagesOf, run, within } = require('./kit');

// The settings of TLS and SASL. Tokens need a callback of their own, which this driver does not have.
function security(o) {
  if (o.tls_ca) return { 'security.protocol': 'ssl', 'ssl.ca.location': o.tls_ca };
  if (!o.sasl_mechanism) return {};
  const account = { 'sasl.username': o.sasl_username, 'sasl.password': o.sasl_password };
  return { 'security.protocol': 'sasl_plaintext', 'sasl.mechanism': o.sasl_mechanism, ...account };
}

class ConfluentJS extends KafkaJS {
  constructor() {
    super();
    const capabilities = this.capabilities.filter((each) => each !== 'sasl_oauthbearer');
    Object.assign(this, { library: 'confluent-kafka-javascript', version, capabilities });
  }

  client(o) {
    return new Confluent.Kafka({
      kafkaJS: { brokers: o.bootstrap_servers.split(','), clientId: o.client_id, logLevel: Confluent.logLevel.NOTHING },
      'socket.timeout.ms': Math.max(o.request_timeout_ms || 2_000, 300), 'reconnect.backoff.max.ms': 500,
      'topic.metadata.refresh.fast.interval.ms': 50, ...security(o),
    });
  }

  async producer(o) {
    const settings = {
      kafkaJS: { idempotent: o.idempotent, acks: o.acks === 'all' ? -1 : Number(o.acks), compression: o.compression },
      'message.timeout.ms': o.delivery_timeout_ms, 'request.timeout.ms': o.request_timeout_ms, 'linger.ms': o.linger_ms,
      'retry.backoff.ms': o.retry_backoff_ms, 'max.in.flight.requests.per.connection': o.max_in_flight,
    };
    if (o.transactional_id) {
      settings['transactional.id'] = o.transactional_id;
      settings['transaction.timeout.ms'] = o.transaction_timeout_ms;
      settings['message.timeout.ms'] = Math.min(o.delivery_timeout_ms, o.transaction_timeout_ms);
    }
    const inner = this.client(o).producer(settings);
    this.producers.set(o.name, new Producer(inner, o));
    if (!o.transactional_id) await inner.connect();
  }

  send({ producer, topic, records }) {
    const p = known(this.producers, producer, 'producer');
    p.outcomes.add(records, (p.transaction || p.inner).send({ topic, messages: messagesOf(records) }));
  }

  async send_offsets({ producer, consumer }) {
    const c = known(this.consumers, consumer, 'consumer');
    const topics = new Map();
    for (const { topic, partition, offset } of c.inbox.positions()) topics.set(topic, [...(topics.get(topic) || []), { partition, offset }]);
    await this.producers.get(producer).transaction.sendOffsets({
      consumer: c.inner, topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
    });
  }

  async consumer(o) {
    const groupId = o.group || `without-a-group-${o.name}`;
    const c = { inbox: new Inbox(), groupId, options: o };
    if (o.offset_reset === 'none') throw new Unsupported('the interface of KafkaJS has no such reset');
    c.inner = this.client(o).consumer({
      kafkaJS: {
        groupId, fromBeginning: o.offset_reset === 'earliest', autoCommit: o.auto_commit, sessionTimeout: o.session_timeout_ms,
        heartbeatInterval: o.heartbeat_interval_ms, maxWaitTimeInMs: 100, readUncommitted: o.isolation === 'read_uncommitted',
      },
      'fetch.error.backoff.ms': 50,
      rebalance_cb: (event, partitions) => {
        if (event.code === Confluent.ErrorCodes.ERR__REVOKE_PARTITIONS) {
          c.inbox.drop((r) => !partitions.some((each) => each.topic === r.topic && each.partition === r.partition));
        }
      },
    });
    this.consumers.set(o.name, c);
  }

  async start(c, topics) {
    await c.inner.connect();
    await c.inner.subscribe({ topics });
    c.running = c.inner.run({
      eachMessage: (each) => this.received(c, each),
    });
    c.running.catch((error) => c.inbox.error(error));
    c.joined = (async () => {
      while (c.inner.assignment().length === 0) await new Promise((resolve) => { setTimeout(resolve, 20); });
    })();
  }

  async assign({ consumer, partitions }) {
    const c = known(this.consumers, consumer, 'consumer');
    c.from = startsOf(partitions);
    await this.start(c, [...new Set(partitions.map(({ topic }) => topic))]);
    await within(c.joined, 15_000);
    for (const { topic, partition, offset } of partitions) c.inner.seek({ topic, partition, offset: `${offset}` });
    c.inbox.records = c.inbox.records.filter((r) => r.offset >= c.from.get(`${r.topic} ${r.partition}`));
  }

  assignment({ consumer }) {
    const { inner } = known(this.consumers, consumer, 'consumer');
    return { partitions: inner.assignment().map(({ topic, partition }) => ({ topic, partition })) };
  }

  // commitOffsets does not wait for the response.
  async commit_offsets({ consumer, offsets, timeout_ms: timeoutMs }) {
    await super.commit_offsets({ consumer, offsets });
    if (!offsets) return;
    const { inner } = known(this.consumers, consumer, 'consumer');
    const committed = async () => {
      const all = await inner.committed(offsets.map(({ topic, partition }) => ({ topic, partition })), timeoutMs);
      return offsets.every((o) => all.some((each) => each.topic === o.topic && each.partition === o.partition && Number(each.offset) === o.offset));
    };
    for (const until = Date.now() + timeoutMs; !(await committed()) && Date.now() < until;) {
      await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
  }

  // ---------------------------------------------------------------- administration, where it is not as in KafkaJS

  topic(admin, topic) { return admin.fetchTopicMetadata({ topics: [topic] }).then(([described]) => described); }

  async describe_group(o) {
    const { state, members } = await super.describe_group(o);
    return { state: Object.entries(Confluent.ConsumerGroupStates).find(([, value]) => value === state)[0], members };
  }

  committed_topic(topic, partitions) { return { topic, partitions: [...Array(partitions).keys()] }; }

  async describe_cluster() { throw new Unsupported('the admin client has no call for DescribeCluster'); }

  async describe_configs() { throw new Unsupported('the admin client has no call for DescribeConfigs'); }

  async alter_config() { throw new Unsupported('the admin client has no call for IncrementalAlterConfigs'); }
}

run(new ConfluentJS());
