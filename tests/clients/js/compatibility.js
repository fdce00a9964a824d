// As Compatibility.java, for KafkaJS: lines of BOOTSTRAP NAME, each answered by lines of STEP RESULT and at last "end".
'use strict';

const readline = require('node:readline');
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs');

const PATIENCE_MS = 15_000;

async function connected(client, work) {
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.disconnect();
  }
}

function produce(kafka, name, settings = {}) {
  const messages = Array.from({ length: 10 }, () => ({ partition: 0, value: 'value'.repeat(20) }));
  return connected(kafka.producer(settings), (producer) => producer.send({ topic: name, compression: CompressionTypes.GZIP, messages }));
}

// So many values from the start of a topic; whoever reads them commits.
async function read(kafka, groupId, topic, wanted) {
  const consumer = kafka.consumer({ groupId, readUncommitted: false, maxWaitTimeInMs: 50 });
  return connected(consumer, async () => {
    await consumer.subscribe({ topic, fromBeginning: true });
    const found = [];
    let late;
    const enough = new Promise((resolve, reject) => {
      late = setTimeout(() => reject(Object.assign(new Error(`${found.length} records`), { name: 'TimeoutError' })), PATIENCE_MS);
      consumer.run({ autoCommit: false, eachMessage: async ({ partition, message }) => {
        found.push(message.value.toString());
        if (found.length < wanted) return;
        await consumer.commitOffsets([{ topic, partition, offset: `${Number(message.offset) + 1}` }]);
        resolve(found);
      } }).catch(reject);
    });
    try {
      return await enough;
    } finally {
      clearTimeout(late);
    }
  });
}

const consume = (kafka, name) => read(kafka, `${name}-group`, name, 10);

async function transaction(kafka, name) {
  const [out, consumerGroupId] = [`${name}-out`, `${name}-other`];
  const producer = kafka.producer({ transactionalId: name, idempotent: true, maxInFlightRequests: 1 });
  await connected(producer, async () => {
    for (const commit of [false, true]) {
      const open = await producer.transaction();
      await open.send({ topic: out, messages: [{ partition: 0, value: commit ? 'committed' : 'aborted' }] });
      const partitions = [{ partition: 0, offset: commit ? '7' : '3' }];
      await open.sendOffsets({ consumerGroupId, topics: [{ topic: name, partitions }] });
      await (commit ? open.commit() : open.abort());
    }
  });
  const values = await read(kafka, `${name}-reader`, out, 1);
  const [{ partitions }] = await connected(kafka.admin(), (admin) => admin.fetchOffsets({ groupId: consumerGroupId, topics: [name] }));
  const committed = partitions.find((each) => each.partition === 0).offset;
  if (values.join() !== 'committed' || committed !== '7') throw new Error(`${values} ${committed}`);
}

function configs(kafka, name) {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name }];
  return connected(kafka.admin(), (admin) => admin.describeConfigs({ includeSynonyms: false, resources }));
}

const STEPS = {
  produce,
  idempotent: (kafka, name) => produce(kafka, name, { idempotent: true, maxInFlightRequests: 1 }),
  consume,
  transaction,
  configs,
};

// The error that was first: what KafkaJS gives up with is a KafkaJSNumberOfRetriesExceeded of it.
function nameOf(error) {
  while (error.cause) error = error.cause;
  return error.type || error.name;
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [bootstrap, name] = line.trim().split(' ');
    const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING });
    for (const [step, play] of Object.entries(STEPS)) {
      let result = 'ok';
      try {
        await play(kafka, name);
      } catch (error) {
        result = nameOf(error);
      }
      console.log(`${step} ${result}`);
      if (step === 'produce' && result !== 'ok') break;
    }
    console.log('end');
  }
}

main();
