'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { describe, test } = require('node:test');
const { Cluster, ControlError, start } = require('../lib/index');
const { find } = require('../lib/finding');
const { hooks } = require('../lib/hooks');
const { commandLine, offTheCommandLine } = require('../lib/server');
const { useKafka } = require('../lib/node-test');

describe('a cluster of a file of tests', () => {
  const kafka = useKafka({ brokers: 2, topics: { orders: 3 } });
  const ports = new Set();

  for (const number of [1, 2]) {
    test(`is as just started for test ${number}`, async () => {
      ports.add(kafka.bootstrapServers);
      assert.equal(kafka.brokers.length, 2);
      assert.deepEqual(await kafka.records('orders'), []);
      const [written] = await kafka.write('orders', { value: 'one order', partition: 0 });
      assert.equal(written.offset, 0);
      assert.equal((await kafka.records('orders'))[0].value, 'one order');
      assert.equal(ports.size, number, 'clients of the test before must not come back');
    });
  }

  test('is steered by methods', async () => {
    const before = await kafka.freeze();
    const { now_ms: now } = await kafka.advance({ minutes: 15 });
    assert.equal(now - before.now_ms, 900_000);
    assert.equal((await kafka.advance({ seconds: 1.001 })).now_ms - now, 1001);
    assert.equal((await kafka.thaw()).frozen, false);
    await kafka.createTopic('payments', { partitions: 2 });
    assert.equal((await kafka.topic('payments')).partitions.length, 2);
    await kafka.killBroker(2);
    await kafka.startBroker(2);
    await kafka.pauseBroker(2);
    await kafka.resumeBroker(2);
    const fault = await kafka.addFault({ match: { api: 'EndTxn' }, do: { drop: true } });
    assert.deepEqual((await kafka.unmetFaults()).map(({ id }) => id), [fault.id]);
    assert.equal((await kafka.waitHits(fault, 0)).hits, 0);
    await assert.rejects(kafka.waitHits(fault, 1, 1), { name: 'TimeoutError', message: /^0 of 1 requests met fault/ });
    assert.equal((await kafka.clearFaults()).removed, 1);
    assert.match((await kafka.report()).text, /^last requests:/);
    assert.deepEqual(await kafka.journal({ api: 'Fetch', limit: 1 }), []);
  });

  test('refuses in a sentence', async () => {
    const refused = kafka.addFault({ match: { api: 'EndTx' }, do: { drop: true } });
    await assert.rejects(refused, (error) => error instanceof ControlError && error.status === 422 && /EndTxn/.test(error.message));
    await assert.rejects(kafka.whyGroup('a b'), /there is no group 'a b'/);
  });

  test('answers with more than JSON', async () => {
    assert.match(await kafka.ask('GET', '/metrics'), /^# HELP/);
    const capture = await kafka.ask('GET', '/v1/journal.pcap');
    assert.equal(capture.readUInt32LE(0), 0xa1b2c3d4);
  });

  test('can be joined by its control plane', async () => {
    assert.deepEqual((await Cluster.connect(kafka.control)).brokers, kafka.brokers);
  });
});

describe('a new cluster for each test', () => {
  const kafka = useKafka({ topics: { orders: 1 }, fresh: true });
  const seen = new Set();

  for (const number of [1, 2, 3]) {
    test(`is as just started for test ${number}, and the one before has ended`, async () => {
      for (const control of seen) {
        await assert.rejects(new Cluster(control).write('orders', 'late'), { name: 'ControlError', status: 410 });
      }
      seen.add(kafka.control);
      await kafka.write('orders', 'one order');
      assert.equal((await kafka.records('orders')).length, 1);
      assert.equal(seen.size, number);
    });
  }
});

test('tests may replace fetch and the functions of http', async (context) => {
  const kafka = await start();
  context.after(() => kafka.stop());
  context.mock.method(globalThis, 'fetch', () => { throw new Error('not here'); });
  context.mock.method(http, 'request', () => { throw new Error('not here'); });
  assert.equal((await kafka.ask('GET', '/v1/health')).status, 'ok');
  assert.deepEqual((await Cluster.connect(`${kafka.control}/`)).brokers, kafka.brokers);
});

describe('a control plane that does not answer', () => {
  /** Serves it, and returns its URL. */
  const served = async (context, answer) => {
    const server = http.createServer(answer);
    await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
    context.after(() => server.close() && server.closeAllConnections());
    return `http://127.0.0.1:${server.address().port}`;
  };
  /** Joins one that answers the first request only. */
  const joined = async (context) => {
    let requests = 0;
    return Cluster.connect(await served(context, (request, response) => {
      requests += 1;
      if (requests === 1) response.setHeader('Content-Type', 'application/json').end('{"brokers": []}');
      else response.writeHead(200).write('the beginning of a body');
    }));
  };

  test('has a time limit', async (context) => {
    const kafka = await joined(context);
    kafka.timeoutMs = 50;
    const message = `GET /v1/report: the control plane at ${kafka.control} does not answer: no answer within 0.05 s; the server may still be processing it`;
    await assert.rejects(kafka.report(), { name: 'TimeoutError', message });
  });

  test('can be left by a signal', async (context) => {
    const kafka = await joined(context);
    const controller = new AbortController();
    const asked = kafka.ask('GET', '/v1/report', undefined, { signal: controller.signal });
    controller.abort();
    await assert.rejects(asked, { name: 'AbortError' });
  });

  test('is named when it is gone', async () => {
    await assert.rejects(Cluster.connect('http://127.0.0.1:1'), {
      code: 'ECONNREFUSED',
      message: /^GET \/v1\/cluster: the control plane at http:\/\/127.0.0.1:1 does not answer: connect ECONNREFUSED/,
    });
  });

  test('may be something else', async (context) => {
    const url = await served(context, (request, response) => {
      response.writeHead(502, { 'Content-Type': 'application/json' }).end('<html>bad gateway');
    });
    await assert.rejects(Cluster.connect(url), { name: 'ControlError', status: 502, message: 'GET /v1/cluster: <html>bad gateway' });
  });
});

describe('finding the server', () => {
  const started = async (options) => {
    const kafka = await start(options);
    const { status } = await kafka.ask('GET', '/v1/health');
    await kafka.stop();
    return status;
  };

  test('an explicit command goes first, and a wrong one is an error', async () => {
    await assert.rejects(started({ command: '/nowhere/understudy' }), /command is "\/nowhere\/understudy", but there is no such program/);
  });

  test('a server that ends is reported with its last lines', async () => {
    await assert.rejects(started({ args: ['--brokers', 'many'] }), /not ready: it ended with code 2\n.*brokers/s);
  });

  test('a server that is not ready in time is stopped', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'understudy-'));
    const slow = path.join(folder, 'slow');
    fs.writeFileSync(slow, '#!/bin/sh\nexec cat\n', { mode: 0o755 });
    await assert.rejects(started({ command: slow, startLimitMs: 100 }), /took longer than 0.1 s/);
    fs.rmSync(folder, { recursive: true });
  });

  test('the brokers of a container are counted', async (context) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'understudy-'));
    context.after(() => fs.rmSync(folder, { recursive: true }));
    fs.writeFileSync(path.join(folder, 'docker'), '#!/bin/sh\n', { mode: 0o755 });
    const { PATH, UNDERSTUDY_COMMAND, XDG_CACHE_HOME } = process.env;
    context.after(() => Object.entries({ PATH, UNDERSTUDY_COMMAND, XDG_CACHE_HOME }).forEach(([name, value]) => {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }));
    Object.assign(process.env, { PATH: folder, UNDERSTUDY_COMMAND: ' ', XDG_CACHE_HOME: folder });
    for (const options of [['--brokers', '3'], ['--brokers=3'], ['--brokers=1,2,3'], ['--brokers', '2', '--brokers=3']]) {
      assert.equal((await find({ options })).brokers.length, 3, options.join(' '));
    }
    for (const options of [['--brokers', 'many'], ['--brokers=0'], ['--brokers']]) {
      await assert.rejects(find({ options }), /is not a number of brokers/);
    }
  });

  test('settings may be secrets', async () => {
    const jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";';
    const settings = { 'sasl.enabled.mechanisms': 'PLAIN', 'listener.name.sasl_plaintext.plain.sasl.jaas.config': jaas };
    assert.equal(await started({ settings, args: ['--listener', 'SASL_PLAINTEXT://127.0.0.1:0', '--set=num.partitions=2'] }), 'ok');
    assert.deepEqual(offTheCommandLine(['--set', 'a=b c', '--seed', '1', '--set=d=e', '--set', 'f=g\nh', '--set', 'i=j ', '--set']), {
      left: ['--seed', '1', '--set', 'f=g\nh', '--set', 'i=j ', '--set'],
      settings: ['a=b c', 'd=e'],
    });
  });

  test('options become those of the command', () => {
    assert.deepEqual(commandLine({ brokers: 3, topics: ['t:1'], settings: { 'num.partitions': 2 }, asVersion: '3.9', args: ['--log-level', 'debug'] }), [
      ...['--for-tests', '--brokers', '3', '--as-version', '3.9', '--topic', 't:1'],
      ...['--set', 'num.partitions=2', '--log-level', 'debug'],
    ]);
  });
});

describe('a server that dies', () => {
  /** What node:test prints of a file of tests, which uses this package. */
  const printed = (context, code, env = {}) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'understudy-'));
    context.after(() => fs.rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'orders.test.js');
    const head = `const { test } = require('node:test');\nconst { useKafka } = require(${JSON.stringify(require.resolve('../lib/node-test'))});\n`;
    fs.writeFileSync(file, head + code);
    const { NODE_TEST_CONTEXT, ...rest } = process.env;
    const done = spawnSync(process.execPath, ['--test', '--test-reporter=tap', file], { encoding: 'utf8', env: { ...rest, ...env } });
    return done.stdout + done.stderr;
  };

  test('fails its test with one sentence, and the next test gets a new one', (context) => {
    const text = printed(context, `
      const kafka = useKafka({ topics: { orders: 1 } });
      test('that passes', () => { process.kill(kafka.server.process.pid, 'SIGKILL'); });
      test('after it', async () => { await kafka.write('orders', 'one order'); });
      test('that fails', async () => { process.kill(kafka.server.process.pid, 'SIGKILL'); throw new Error('its own reason'); });
      test('after that', async () => { await kafka.write('orders', 'one order'); });
    `, { UNDERSTUDY_SERVER: 'own' });
    assert.match(text, /# pass 2\n# fail 2\n/);
    assert.equal(text.match(/the server \(process \d+\) was killed by signal 9 during this test/g).length, 2, text);
    assert.doesNotMatch(text, /ECONNREFUSED|node:_http|Invalid URL/);
  });

  test('or does not start is named, with what was looked for', (context) => {
    const env = { PATH: '/nowhere', UNDERSTUDY_COMMAND: '', XDG_CACHE_HOME: '/nowhere/cache' };
    const text = printed(context, "const kafka = useKafka(); test('first', () => {}); test('second', () => {});", env);
    assert.match(text, /there is no understudy server; looked, in this order, for the option command \(not given\), UNDERSTUDY_COMMAND \(not set\)/);
    assert.match(text, /nowhere\/cache\/understudy\/[\d.]+\/understudy \(not found\), docker on the PATH \(not found\)\. To get a server, run/);
    assert.doesNotMatch(text, /Invalid URL/);
  });

  test('is not there outside of tests, and its options have names', () => {
    const bystander = hooks({ before() {}, beforeEach() {}, afterEach() {}, after() {} });
    assert.throws(() => bystander({}).brokers, /kafka\.brokers is known within tests and hooks/);
    assert.throws(() => bystander({}).bootstrapServers, /within tests and hooks/);
    assert.throws(() => bystander({ topicz: ['orders'] }), /there is no option topicz; there are brokers, topics, /);
  });
});
