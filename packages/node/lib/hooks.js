'use strict';
// One cluster for a file of tests, reset before each of them; a report for each failed test.

const { Cluster } = require('./index');
const { Server } = require('./server');

/** Returns the text of the report, even if the cluster is gone. */
async function story(kafka) {
  let text;
  try {
    ({ text } = await kafka.report());
  } catch (error) {
    text = error.message;
  }
  const log = kafka.log();
  return `understudy, ${text}${log ? `\nthe server's log:\n${log.replace(/^/gm, '  ')}` : ''}`;
}

class Shared extends Cluster {
  /** Starts the server, once. */
  async begin(options) {
    this.server = await Server.start(options);
    Object.assign(this, { control: this.server.control, token: this.server.token, brokers: this.server.brokers });
    this.isFresh = true;
  }

  /** Before a test: resets the cluster. */
  async renew() {
    if (!this.isFresh) await this.reset();
    this.isFresh = false;
  }

  /** After a test: prints the report if it failed; fails a passed test if no request matched one of its faults. */
  async judge(failed, print) {
    if (failed) {
      print(await story(this));
      return;
    }
    const unmet = await this.unmetFaults();
    if (unmet.length === 0) return;
    const lines = unmet.map(({ match, do: effect }) => `  ${JSON.stringify({ match, do: effect })}`);
    throw new Error(`no request met these faults:\n${lines.join('\n')}`);
  }
}

/** Returns `useKafka` for a test runner: its hooks, its way to detect a failed test, and its way to print. */
function hooks({ before, beforeEach, afterEach, after, failed, print }) {
  return (options = {}) => {
    const kafka = new Shared('');
    before(() => kafka.begin(options));
    beforeEach(() => kafka.renew());
    afterEach((context) => kafka.judge(failed(context), (text) => print(text, context)));
    after(() => kafka.stop());
    return kafka;
  };
}

module.exports = { hooks };
