'use strict';
// One cluster for a file of tests, reset before each of them, or a new one for each; a report for each failed test.

const { Cluster } = require('./index');
const { OPTIONS, Server, checkOptions } = require('./server');

/** Time within which the process of a server that does not answer may turn out to have ended. */
const END_LIMIT_MS = 1_000;

function withLog(text, kafka) {
  const log = kafka.log();
  return `${text}${log ? `\nthe server's log:\n${log.replace(/^/gm, '  ')}` : ''}`;
}

/** An error whose sentence is all that a runner prints: the lines of a stack would be those of this package. */
function sentence(text) {
  const error = new Error(text);
  error.stack = text;
  return error;
}

class Shared extends Cluster {
  /** HOST:PORT of each broker. Throws outside of tests, where there is no cluster yet. */
  get brokers() {
    if (!this.server) throw new Error('kafka.brokers is known within tests and hooks: the cluster starts before the first test');
    return this.addresses;
  }

  set brokers(addresses) {
    this.addresses = addresses;
  }

  /** Starts the server, once; again if it has ended. */
  async begin({ fresh = false, ...options }) {
    this.options = { fresh, ...options };
    this.server = await Server.start(options);
    Object.assign(this, { control: this.server.control, token: this.server.token, brokers: this.server.brokers });
    this.isFresh = true;
  }

  /** Whether each test has a new cluster: where the server is shared, and the file wants it. */
  get isPerTest() {
    return Boolean(this.options.fresh && this.server.cluster);
  }

  /** The control plane of the shared server. */
  get root() {
    return new Cluster(this.server.control.split('/clusters/')[0]);
  }

  /** Makes one more cluster with the options of the first one; it ends with the process of that one, too. */
  async another() {
    const made = await this.root.ask('POST', '/v1/clusters', this.server.cluster);
    Object.assign(this, { control: made.control_url, brokers: made.bootstrap_servers });
  }

  /** After a test: ends a cluster of its own. What cannot be deleted ends with the process. */
  async discard() {
    if (this.server && this.isPerTest) await this.root.ask('DELETE', `/v1/clusters/${this.control.split('/clusters/')[1]}`).catch(() => {});
  }

  /** Before a test: resets the cluster, or makes a new one. */
  async renew() {
    if (!this.server) return; // its start has failed, which is the error of each test
    try {
      if (!this.isFresh) await (this.isPerTest ? this.another() : this.reset());
    } catch (error) {
      if (!(await this.server.endsWithin(END_LIMIT_MS))) throw error;
      await this.begin(this.options);
    }
    this.isFresh = false;
  }

  /** After a test: prints the report if it failed; fails a passed test if no request matched one of its faults. */
  async judge(failed, print) {
    if (!this.server) return;
    let answer;
    try {
      answer = failed ? (await this.report()).text : await this.unmetFaults();
    } catch (error) {
      const end = await this.server.endsWithin(END_LIMIT_MS);
      const text = end ? withLog(`${end} during this test`, this) : withLog(`understudy, ${error.message}`, this);
      if (!failed && !this.server.isStopped) throw sentence(text);
      print(text);
      return;
    }
    if (failed) print(withLog(`understudy, ${answer}`, this));
    else if (answer.length > 0) {
      const lines = answer.map(({ match, do: effect }) => `  ${JSON.stringify({ match, do: effect })}`);
      throw new Error(`no request met these faults:\n${lines.join('\n')}`);
    }
  }
}

/** Returns `useKafka` for a test runner: its hooks, its way to detect a failed test, and its way to print. */
function hooks({ before, beforeEach, afterEach, after, failed, print }) {
  return (options = {}) => {
    checkOptions(options, [...OPTIONS, 'fresh']);
    const kafka = new Shared('');
    before(() => kafka.begin(options));
    beforeEach(() => kafka.renew());
    afterEach((context) => kafka.judge(failed(context), (text) => print(text, context)).finally(() => kafka.discard()));
    after(() => kafka.stop());
    return kafka;
  };
}

module.exports = { hooks };
