'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

/** A cluster in a process of its own, on free ports: the command understudy, and its control plane over HTTP. */
class Understudy {
  /** Ready when the promise is; takes further options of `understudy serve`. */
  static async start(...options) {
    const kafka = new Understudy();
    kafka.process = spawn('understudy', ['serve', '--port', '0', '--control-port', '0', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: kafka.process.stdout })) {
      const [name, value] = line.split(/=(.*)/s);
      if (name === 'bootstrap.servers') kafka.brokers = value.split(',');
      if (name === 'control') {
        kafka.control = value;
        return kafka;
      }
    }
    throw new Error('understudy ended instead of getting ready');
  }

  /** A verb of the control plane, such as ask('POST', '/v1/clock/advance', { ms: 900_000 }); its answer. */
  async ask(method, path, body) {
    const answer = await fetch(this.control + path, { method, body: JSON.stringify(body) });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.detail);
    return content;
  }

  async stop() {
    this.process.kill();
    await once(this.process, 'exit');
  }
}

module.exports = { Understudy };
