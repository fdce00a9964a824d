// The loop of a driver of `understudy exam` in JavaScript: reads commands, calls the method of that name, writes answers.
'use strict';

const readline = require('node:readline');

class Unsupported extends Error {}

// What a driver reports where its library returns a value instead of throwing.
class Refused extends Error {
  constructor(kind, code, message) { super(message); Object.assign(this, { kind, code }); }
}

const FATAL = new Set(['ERR__FENCED', 'ERR__FATAL', 'PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH', 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED']);

// An error of KafkaJS, or of a library with its interface.
function refused(error) {
  if (error instanceof Refused) return { class: error.kind, code: error.code, message: error.message };
  const cause = (error.errors && error.errors[0]) || error.cause || error;
  const code = cause.type || error.type || null;
  let kind = 'other';
  if (FATAL.has(code) || error.fatal) kind = 'fatal';
  else if (error.abortable) kind = 'abortable';
  else if (error.name === 'KafkaJSRequestTimeoutError') kind = 'timeout';
  else if (error.retriable || cause.retriable) kind = 'retriable';
  const why = cause === error ? '' : ` (${cause.message})`;
  return { class: kind, code, message: `${error.name}: ${error.message}${why}` };
}

// Resolves with the promise, or with nothing when the time is over.
function within(promise, timeoutMs) {
  let timer;
  const over = new Promise((resolve) => { timer = setTimeout(resolve, timeoutMs); });
  return Promise.race([promise, over]).finally(() => clearTimeout(timer));
}

// What has become of a producer's records.
class Outcomes {
  constructor() { Object.assign(this, { open: new Set(), found: [] }); }

  // `sending` resolves with the base offset of each partition, in the form of KafkaJS.
  add(records, sending) {
    const done = sending.then((answers) => {
      const next = new Map();
      for (const each of answers) if (!next.has(each.partition)) next.set(each.partition, Number(each.baseOffset ?? each.offset));
      for (const { id, partition } of records) {
        const offset = next.get(partition);
        this.found.push({ id, offset: offset === undefined || offset < 0 ? -1 : offset });
        if (offset >= 0) next.set(partition, offset + 1);
      }
    }, (error) => {
      for (const { id } of records) this.found.push({ id, error: refused(error) });
    }).finally(() => this.open.delete(one));
    const one = { done, count: records.length };
    this.open.add(one);
  }

  async flush(timeoutMs) {
    await within(Promise.all([...this.open].map((each) => each.done)), timeoutMs);
    const outcomes = this.found;
    this.found = [];
    return { outcomes, pending: [...this.open].reduce((sum, each) => sum + each.count, 0) };
  }
}

const text = (bytes) => (bytes === null || bytes === undefined ? null : bytes.toString());

// Records of `send` in the form of KafkaJS, which has all headers of a name in one list.
function messagesOf(records) {
  return records.map(({ partition, key, value, timestamp, headers = [] }) => {
    const named = {};
    for (const [name, each] of headers) {
      if (each === null) throw new Unsupported("a header's value must be a string or a buffer");
      named[name] = name in named ? [named[name], each].flat() : each;
    }
    return { partition, key, value, headers: named, ...(timestamp === undefined ? {} : { timestamp: `${timestamp}` }) };
  });
}

// Records that arrive in the background, until they are polled.
class Inbox {
  constructor() { Object.assign(this, { records: [], errors: [], next: new Map(), wake: () => {}, taken: [] }); }

  record(topic, partition, message) {
    const { offset, key, value, timestamp, headers } = message;
    this.records.push({
      topic, partition, offset: Number(offset), key: text(key), value: text(value), timestamp: Number(timestamp ?? -1),
      headers: Object.entries(headers ?? {}).flatMap(([name, each]) => [each].flat().map((one) => [name, text(one)])),
    });
    this.wake();
  }

  // Resolves when `poll` has returned all records, for a library that counts what a handler has received as processed.
  processed() { return new Promise((resolve, reject) => { this.taken.push({ resolve, reject }); }); }

  // Ends the handlers that wait: their records were not processed.
  close(why = 'the consumer is closed') { for (const { reject } of this.taken.splice(0)) reject(new Error(why)); }

  // Forgets all that was not polled yet, and the positions in partitions that are not this member's any more.
  begin_again(isMine) {
    this.records = [];
    this.next = new Map([...this.next].filter(([, position]) => isMine(position)));
    this.close('the member has joined again');
  }

  // Forgets what was not polled yet of partitions that were revoked; `isMine` says which were not.
  drop(isMine) { this.records = this.records.filter(isMine); }

  error(error) {
    this.errors.push(refused(error));
    this.wake();
  }

  async poll(timeoutMs, maxRecords = Infinity) {
    if (!this.records.length && !this.errors.length) {
      await within(new Promise((resolve) => { this.wake = resolve; }), timeoutMs);
    }
    const out = { records: this.records.slice(0, maxRecords), errors: this.errors };
    Object.assign(this, { records: this.records.slice(out.records.length), errors: [] });
    if (!this.records.length) for (const { resolve } of this.taken.splice(0)) resolve();
    for (const { topic, partition, offset } of out.records) this.next.set(`${topic} ${partition}`, { topic, partition, offset: `${offset + 1}` });
    return out;
  }

  // Those of the partitions that the consumer has.
  positions(mine = [...this.next.values()]) {
    const names = new Set(mine.map(({ topic, partition }) => `${topic} ${partition}`));
    return [...this.next].filter(([name]) => names.has(name)).map(([, position]) => position);
  }
}

async function answer(driver, name, fields) {
  if (name === 'quit') return { result: {} };
  if (name === 'hello') return { result: { protocol: 1, library: driver.library, version: driver.version, capabilities: driver.capabilities } };
  if (typeof driver[name] !== 'function') return { unsupported: `this driver has no ${name}` };
  try {
    return { result: (await driver[name](fields)) || {} };
  } catch (error) {
    return error instanceof Unsupported ? { unsupported: error.message } : { error: refused(error) };
  }
}

async function run(driver) {
  // A library's promise that nobody waits for must not end the driver.
  process.on('unhandledRejection', (error) => console.error(error));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, command, ...fields } = JSON.parse(line);
    process.stdout.write(`${JSON.stringify({ id, ...(await answer(driver, command, fields)) })}\n`);
    if (command === 'quit') process.exit(0);
  }
}

function known(map, name, kind) {
  if (!map.has(name)) throw new Error(`there is no ${kind} ${name}`);
  return map.get(name);
}

module.exports = { Inbox, Outcomes, Refused, Unsupported, known, messagesOf, run, within };
