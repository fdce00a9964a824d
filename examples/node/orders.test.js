// Node's own test runner, with KafkaJS. With the command understudy on the PATH: npm install && node --test.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Kafka, logLevel } = require('kafkajs');
const { useKafka } = require('understudy-kafka/node-test');

const kafka = useKafka({ topics: { orders: 1 } });

async function send(order) {
  const client = new Kafka({ brokers: kafka.brokers, logLevel: logLevel.NOTHING });
  const producer = client.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  await producer.send({ topic: 'orders', messages: [{ value: order }] });
  await producer.disconnect();
}

test('what is sent is read', async () => {
  await send('one order');
  const consumer = new Kafka({ brokers: kafka.brokers, logLevel: logLevel.NOTHING }).consumer({ groupId: 'shipping' });
  await consumer.connect();
  await consumer.subscribe({ topic: 'orders', fromBeginning: true });
  const order = await new Promise((read) => consumer.run({ eachMessage: async ({ message }) => read(`${message.value}`) }));
  await consumer.disconnect();
  assert.equal(order, 'one order');
});

test('an answer that is lost makes no second order', async () => {
  await kafka.addFault({ match: { api: 'Produce', topic: 'orders' }, do: { apply_then: { disconnect: 'reset' } } });
  await send('one order'); // the producer is idempotent: it sends again, and the broker knows it
  assert.deepEqual((await kafka.records('orders')).map((record) => record.value), ['one order']);
});
