'use strict';
// The server's process: starts it, waits until it is ready, stops it.

const os = require('node:os');
const { spawn } = require('node:child_process');
const { createInterface } = require('node:readline');
const { clearTimeout, setTimeout } = require('node:timers'); // not the global ones, which tests replace
const { find } = require('./finding');

const START_LIMIT_MS = 120_000;
const STOP_LIMIT_MS = 5_000;
const LOG_LINES = 30;

/** Converts an object to options of `understudy serve`. */
function commandLine({ brokers, topics = [], settings = {}, asVersion, seed, dataDir, args = [] } = {}) {
  const seeds = Array.isArray(topics) ? topics : Object.entries(topics).map(([name, count]) => `${name}:${count}`);
  const single = { '--brokers': brokers, '--as-version': asVersion, '--seed': seed, '--data-dir': dataDir };
  return [
    '--for-tests', // Kafka's defaults would make clients pause in each test
    ...Object.entries(single).flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)])),
    ...seeds.flatMap((topic) => ['--topic', topic]),
    ...Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]),
    ...args,
  ];
}

/**
 * Returns the settings of `--set` for the environment, and the remaining arguments: each user of this machine can read a
 * command line, so it must have no secrets. A value with a line end, or a blank at an end, stays on the command line.
 */
function offTheCommandLine(words) {
  const left = [];
  const settings = [];
  for (let at = 0; at < words.length; at += 1) {
    const count = words[at] === '--set' && at + 1 < words.length ? 2 : 1;
    const value = count === 2 ? words[at + 1] : words[at].startsWith('--set=') ? words[at].slice('--set='.length) : '';
    const fits = value.includes('=') && value === value.trim() && !/[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/.test(value);
    if (fits) settings.push(value);
    else left.push(...words.slice(at, at + count));
    at += count - 1;
  }
  return { left, settings };
}

/** This process's environment without UNDERSTUDY_*, so that a test's cluster is the same everywhere; settings; a container's token. */
function environment(token, settings) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('UNDERSTUDY_'));
  return {
    ...Object.fromEntries(kept),
    ...(settings.length && { UNDERSTUDY_SET: settings.join('\n') }),
    ...(token && { UNDERSTUDY_CONTROL_TOKEN: token }),
  };
}

const OPTIONS = ['brokers', 'topics', 'settings', 'asVersion', 'seed', 'dataDir', 'args', 'command', 'image', 'startLimitMs'];

/** Throws an Error for an option that does not exist, which would otherwise be without effect. */
function checkOptions(options, known = OPTIONS) {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown) throw new Error(`there is no option ${unknown}; there are ${known.join(', ')}`);
}

class Server {
  /** Resolves when the server is ready. Rejects with its last lines if it ends first, or takes too long. */
  static async start(options = {}) {
    checkOptions(options);
    const words = commandLine(options);
    const found = await find({ command: options.command, image: options.image, options: words });
    const server = new Server(found, words);
    try {
      await server.ready(found, options.startLimitMs ?? START_LIMIT_MS);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  constructor({ program, words, token }, options) {
    this.lines = [];
    const { left, settings } = offTheCommandLine(options);
    // With --lifeline the server ends when its standard input closes, so it never outlives this process.
    this.process = spawn(program, [...words, ...left], { stdio: ['pipe', 'pipe', 'pipe'], env: environment(token, settings) });
    this.process.stdin.on('error', () => {});
    createInterface({ input: this.process.stderr }).on('line', (line) => {
      this.lines.push(line);
      if (this.lines.length > LOG_LINES) this.lines.shift();
    });
    this.exited = new Promise((resolve) => {
      this.process.once('error', (error) => resolve(error.message));
      this.process.once('exit', (code, signal) => {
        const how = signal ? `was killed by signal ${os.constants.signals[signal]}` : `ended with code ${code}`;
        if (!this.isStopped) this.end = `the server (process ${this.process.pid}) ${how}`;
        resolve(`it ended with ${signal ?? `code ${code}`}`);
      });
    });
  }

  /** Resolves to how the process ended without being stopped, if it does within this time; otherwise to undefined. */
  async endsWithin(limitMs) {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      await new Promise((resolve) => {
        const late = setTimeout(resolve, limitMs);
        this.exited.then(() => resolve(clearTimeout(late)));
      });
    } else {
      await this.exited;
    }
    return this.end;
  }

  ready({ control, brokers, token, searched }, limitMs) {
    this.token = token;
    return new Promise((resolve, reject) => {
      const fail = (why) => reject(new Error(['understudy is not ready: ' + why, this.log(), searched].filter(Boolean).join('\n')));
      const late = setTimeout(() => fail(`it took longer than ${limitMs / 1000} s`), limitMs);
      this.exited.then((why) => setImmediate(() => fail(why)));
      createInterface({ input: this.process.stdout }).on('line', (line) => {
        const [name, value] = line.split(/=(.*)/s);
        if (name === 'bootstrap.servers') this.brokers = brokers ?? value.split(',');
        if (name === 'cluster') this.cluster = JSON.parse(value); // the body that has made it in the shared server
        if (name === 'control') {
          this.control = control ?? value;
          resolve();
        }
      });
      this.exited.then(() => clearTimeout(late));
      const ready = resolve;
      resolve = () => {
        clearTimeout(late);
        this.letGo();
        ready();
      };
    });
  }

  /** Lets a test process end without waiting for its server. */
  letGo() {
    this.process.unref();
    for (const stream of this.process.stdio) stream.unref?.();
  }

  /** The last lines that the server wrote to stderr. */
  log() {
    return this.lines.join('\n');
  }

  /** Sends SIGTERM, and SIGKILL if the server does not end. */
  async stop() {
    this.isStopped = true;
    const late = setTimeout(() => this.process.kill('SIGKILL'), STOP_LIMIT_MS);
    this.process.ref();
    this.process.kill('SIGTERM');
    await this.exited;
    clearTimeout(late);
  }
}

module.exports = { OPTIONS, Server, checkOptions, commandLine, offTheCommandLine };
