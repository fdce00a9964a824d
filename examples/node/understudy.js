'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 5_000;

/**
 * A cluster in a process of its own, on free ports: the command understudy, and its control plane over HTTP.
 * With --lifeline the process ends when its standard input closes, so it never outlives this one.
 */
class Understudy {
  /** Ready when the promise is; takes further options of `understudy serve`. */
  static async start(...options) {
    const kafka = new Understudy();
    const words = ['serve', '--lifeline', '--port', '0', '--control-port', '0', ...options];
    kafka.process = spawn('understudy', words, { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(kafka.process, 'spawn');
    const late = setTimeout(() => kafka.process.kill('SIGKILL'), START_LIMIT_MS);
    try {
      for await (const line of createInterface({ input: kafka.process.stdout })) {
        const [name, value] = line.split(/=(.*)/s);
        if (name === 'bootstrap.servers') kafka.brokers = value.split(',');
        if (name === 'control') {
          kafka.control = value;
          return kafka;
        }
      }
    } finally {
      clearTimeout(late);
    }
    throw new Error(`understudy ended, or was not ready within ${START_LIMIT_MS / 1000} s`);
  }

  /** A verb of the control plane, such as ask('POST', '/v1/clock/advance', { ms: 900_000 }); its answer. */
  async ask(method, path, body) {
    const answer = await fetch(this.control + path, { method, body: JSON.stringify(body) });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.detail);
    return content;
  }

  async stop() {
    const late = setTimeout(() => this.process.kill('SIGKILL'), STOP_LIMIT_MS);
    this.process.kill('SIGTERM');
    await once(this.process, 'exit');
    clearTimeout(late);
  }
}

module.exports = { Understudy };
