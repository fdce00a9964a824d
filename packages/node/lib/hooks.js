'use strict';
// One cluster for a file of tests, reset before each of them; a report for each failed test.

const { Cluster } = require('./index');
const { Server, checkOptions } = require('./server');

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
  async begin(options) {
    this.options = options;
    this.server = await Server.start(options);
    Object.assign(this, { control: this.server.control, token: this.server.token, brokers: this.server.brokers });
    this.isFresh = true;
  }

  /** Before a test: resets the cluster. */
  async renew() {
    if (!this.server) return; // its start has failed, which is the error of each test
    try {
      if (!this.isFresh) await this.reset();
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
    checkOptions(options);
    const kafka = new Shared('');
    before(() => kafka.begin(options));
    beforeEach(() => kafka.renew());
    afterEach((context) => kafka.judge(failed(context), (text) => print(text, context)));
    after(() => kafka.stop());
    return kafka;
  };
}

module.exports = { hooks };
