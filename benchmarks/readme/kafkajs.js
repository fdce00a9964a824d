// Client of benchmarks.readme: KafkaJS, a test for each line of the standard input.
'use strict';
const { createInterface } = require('node:readline');
const { Kafka, logLevel } = require('kafkajs');

async function readBack(bootstrap, topic, groupId) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ value: 'one order' }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const value = await new Promise((resolve) => {
    consumer.run({ eachMessage: async ({ message }) => resolve(String(message.value)) });
  });
  await consumer.disconnect();
  if (value !== 'one order') throw new Error(`another record: ${value}`);
}

(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const begun = performance.now();
    await readBack(...line.split(' '));
    console.log(performance.now() - begun);
  }
})();
