'use strict';
// A cluster in a separate process, and its control plane over HTTP.

const http = require('node:http');
const https = require('node:https');
const { clearTimeout, setTimeout } = require('node:timers'); // not the global ones, which tests replace
const { Server } = require('./server');

/** A rejection by the control plane: `status` of HTTP, `field` if one field is invalid. */
class ControlError extends Error {
  constructor(status, { detail, field }, call) {
    super(`${call}: ${detail}${field ? ` (field ${field})` : ''}`);
    this.name = 'ControlError';
    this.status = status;
    this.field = field;
  }
}

const part = encodeURIComponent;
// Saved when this module is loaded, because tests may replace them later, as nock does.
const requests = { 'http:': http.request, 'https:': https.request };

function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : '';
}

/** Returns status, type and content of a response. Not by `fetch`, which tests replace and jsdom does not have. */
function answerOf(url, { timeoutMs, ...options }, body) {
  return new Promise((resolve, reject) => {
    const request = requests[new URL(url).protocol](url, { ...options, agent: false }, (answer) => {
      const pieces = [];
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('error', reject);
      answer.on('end', () => {
        resolve({ status: answer.statusCode, type: answer.headers['content-type'] ?? '', content: Buffer.concat(pieces) });
      });
    });
    const late = setTimeout(() => request.destroy(lateness(`no answer within ${timeoutMs / 1000} s; the server may still be processing it`)), timeoutMs);
    request.on('close', () => clearTimeout(late));
    request.on('error', reject);
    request.end(body);
  });
}

function lateness(message) {
  return Object.assign(new Error(message), { name: 'TimeoutError' });
}

/** Returns the problem document of a rejection; anything else, such as a gateway's page, as its detail. */
function problemOf(text) {
  try {
    const problem = JSON.parse(text);
    if (typeof problem.detail === 'string') return problem;
  } catch {
    // It is no document.
  }
  return { detail: text };
}

class Cluster {
  /** Connects to a control plane, such as that of `understudy serve`: `Cluster.connect('http://127.0.0.1:9099')`. */
  static async connect(control, token) {
    const cluster = new Cluster(control.replace(/\/+$/, ''), token);
    const { brokers } = await cluster.ask('GET', '/v1/cluster');
    cluster.brokers = brokers.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`));
    return cluster;
  }

  constructor(control, token, server) {
    this.control = control;
    this.token = token;
    this.server = server;
    this.brokers = server?.brokers ?? [];
    this.timeoutMs = 30_000;
  }

  /** HOST:PORT of each broker, joined by commas, for clients that take a single string. */
  get bootstrapServers() {
    return this.brokers.join(',');
  }

  /**
   * Sends any verb of the control plane, such as ask('POST', '/v1/clock/advance', { ms: 900_000 }). Resolves to the object
   * of a JSON response, to a text, or to a Buffer, such as of /v1/journal.pcap.
   */
  async ask(method, path, body, { timeoutMs = this.timeoutMs, signal } = {}) {
    const headers = { ...(this.token && { Authorization: `Bearer ${this.token}` }) };
    const content = body && JSON.stringify(body);
    if (content) headers['Content-Length'] = Buffer.byteLength(content);
    const options = { method, headers, timeoutMs, ...(signal && { signal }) };
    const answer = await answerOf(this.control + path, options, content).catch((error) => {
      if (error.name === 'AbortError') throw error;
      const message = `${method} ${path}: the control plane at ${this.control} does not answer: ${error.message}`;
      throw Object.assign(new Error(message, { cause: error }), { name: error.name, code: error.code });
    });
    const text = () => answer.content.toString('utf8');
    if (answer.status >= 300) throw new ControlError(answer.status, problemOf(text()), `${method} ${path}`);
    if (/json/.test(answer.type)) return JSON.parse(text());
    return /^text|xml/.test(answer.type) ? text() : answer.content;
  }

  /** Resets the cluster. Disconnects all clients and moves to other ports unless `disconnect` is false. */
  async reset({ keep, disconnect = true } = {}) {
    const done = await this.ask('POST', '/v1/reset', { ...(keep && { keep }), ...(disconnect && { disconnect }) });
    if (done.bootstrap_servers && !this.server?.token) this.brokers = done.bootstrap_servers;
  }

  /** The report for a failed test. */
  report({ since, limit } = {}) {
    return this.ask('GET', `/v1/report${query({ since, limit })}`);
  }

  /** Moves the clock; resolves after all timers that became due have run. */
  advance({ ms = 0, seconds = 0, minutes = 0, hours = 0, days = 0 }) {
    const total = ms + 1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days)));
    return this.ask('POST', '/v1/clock/advance', { ms: Math.round(total) }); // 1.001 s would be 1000.9999999999999 ms
  }

  freeze() { return this.ask('POST', '/v1/clock/freeze', {}); }

  thaw() { return this.ask('POST', '/v1/clock/thaw', {}); }

  /** Injects a fault: addFault({ match: { api: 'EndTxn' }, do: { drop: true } }). */
  addFault(fault) { return this.ask('POST', '/v1/faults', fault); }

  /** Waits until that many requests have matched a fault, and resolves to it; rejects after the time limit. */
  async waitHits(fault, hits = 1, timeoutMs = 10_000) {
    const path = `/v1/faults/${part(fault.id ?? fault)}${query({ wait_hits: hits, timeout_ms: timeoutMs })}`;
    const state = await this.ask('GET', path, undefined, { timeoutMs: this.timeoutMs + timeoutMs });
    if (state.hits >= hits) return state;
    throw lateness(`${state.hits} of ${hits} requests met fault ${state.id} within ${timeoutMs} ms`);
  }

  async unmetFaults() { return (await this.ask('GET', '/v1/faults?unmet=true')).faults; }

  clearFaults() { return this.ask('DELETE', '/v1/faults'); }

  createTopic(name, { partitions, ...others } = {}) {
    return this.ask('POST', '/v1/topics', { name, ...(partitions && { partitions }), ...others });
  }

  topic(name) { return this.ask('GET', `/v1/topics/${part(name)}`); }

  /** Writes values, or objects with key, value, headers, partition, timestamp_ms. */
  async write(topic, ...records) {
    const rows = records.map((record) => (typeof record === 'string' ? { value: record } : record));
    return (await this.ask('POST', `/v1/topics/${part(topic)}/records`, { records: rows })).written;
  }

  async records(topic, partition = 0, { offset, limit, isolation } = {}) {
    const where = `/v1/topics/${part(topic)}/partitions/${partition}/records`;
    return (await this.ask('GET', `${where}${query({ offset, limit, isolation })}`)).records;
  }

  killBroker(id) { return this.ask('POST', `/v1/brokers/${id}/kill`, {}); }

  stopBroker(id) { return this.ask('POST', `/v1/brokers/${id}/stop`, {}); }

  startBroker(id) { return this.ask('POST', `/v1/brokers/${id}/start`, {}); }

  pauseBroker(id) { return this.ask('POST', `/v1/brokers/${id}/pause`, {}); }

  resumeBroker(id) { return this.ask('POST', `/v1/brokers/${id}/resume`, {}); }

  group(id) { return this.ask('GET', `/v1/groups/${part(id)}`); }

  whyGroup(id) { return this.ask('GET', `/v1/groups/${part(id)}/why`); }

  transaction(id) { return this.ask('GET', `/v1/transactions/${part(id)}`); }

  whyTransaction(id) { return this.ask('GET', `/v1/transactions/${part(id)}/why`); }

  /** Requests with their responses, oldest first. */
  async journal(conditions = {}) { return (await this.ask('GET', `/v1/journal${query(conditions)}`)).entries; }

  /** The last lines of the server's log; empty if this process did not start it. */
  log() { return this.server?.log() ?? ''; }

  /** Ends the server, if this process started it. */
  async stop() { await this.server?.stop(); }
}

/** Starts a cluster in a separate process, on free ports. */
async function start(options) {
  const server = await Server.start(options);
  return new Cluster(server.control, server.token, server);
}

module.exports = { Cluster, ControlError, start };
