// Node's own test runner, with KafkaJS. Run it with node --test, with the command understudy on the PATH.
'use strict';

const assert = require('node:assert/strict');
const { after, before, beforeEach, test } = require('node:test');
const { Kafka, logLevel } = require('kafkajs');
const { Understudy } = require('./understudy');

let kafka;
let client;

before(async () => {
  // Kafka lets the first member of a new group wait 3 s for others; a test has no use for that.
  kafka = await Understudy.start('--topic', 'orders:1', '--set', 'group.initial.rebalance.delay.ms=0');
  client = new Kafka({ brokers: kafka.brokers, logLevel: logLevel.NOTHING });
});
after(() => kafka.stop());
beforeEach(() => kafka.ask('POST', '/v1/reset'));

async function send(order) {
  const producer = client.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  await producer.send({ topic: 'orders', messages: [{ value: order }] });
  await producer.disconnect();
}

test('what is sent is read', async () => {
  await send('one order');
  const consumer = client.consumer({ groupId: 'shipping' });
  await consumer.connect();
  await consumer.subscribe({ topic: 'orders', fromBeginning: true });
  const order = await new Promise((read) => consumer.run({ eachMessage: async ({ message }) => read(`${message.value}`) }));
  await consumer.disconnect();
  assert.equal(order, 'one order');
});

test('an answer that is lost makes no second order', async () => {
  await kafka.ask('POST', '/v1/faults', { match: { api: 'Produce', topic: 'orders' }, do: { apply_then: { disconnect: 'reset' } } });
  await send('one order'); // the producer is idempotent: it sends again, and the broker knows it
  assert.deepEqual((await kafka.ask('GET', '/v1/faults?unmet=true')).faults, []);
  const { records } = await kafka.ask('GET', '/v1/topics/orders/partitions/0/records');
  assert.deepEqual(records.map((record) => record.value), ['one order']);
});
