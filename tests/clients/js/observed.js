// What a client observes: with OBSERVE in the environment, each call prints what came back or was thrown, as a line of JSON.
// tests/differential/clients.py holds those of two clusters against each other, and says what is left out of them.
'use strict';

const observing = Boolean(process.env.OBSERVE);
const UNTOLD = ['assigned', 'then', 'on'];

function plain(value) {
  if (value === undefined || value === null) return null;
  if (Buffer.isBuffer(value)) return value.toString();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'bigint') return `${value}`;
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, plain(each)]));
}

function tell(call, what) {
  if (observing) process.stdout.write(`${JSON.stringify({ call, ...what })}\n`);
}

function raised(call, error) {
  tell(call, { raised: error.type || error.code || error.name, message: String(error.message || error).slice(0, 300) });
}

// The object with its calls told; what the calls in `made` give is observed as well, under the name that stands there.
function observed(object, name, made = {}) {
  if (!observing || object === null || typeof object !== 'object') return object;
  const passed = (call, result) => {
    if (call in made) {
      tell(`${name}.${call}`, { returned: made[call] });
      return observed(result, made[call], made);
    }
    tell(`${name}.${call}`, { returned: plain(result) });
    return result;
  };
  const called = (found, call) => (...words) => {
    if (call === 'close' && object.records) tell(`${name}.read`, { first: firstOf(object.records) });
    try {
      const result = found.apply(object, words);
      if (!(result instanceof Promise)) return passed(call, result);
      return result.then((value) => passed(call, value), (error) => {
        raised(`${name}.${call}`, error);
        throw error;
      });
    } catch (error) {
      raised(`${name}.${call}`, error);
      throw error;
    }
  };
  return new Proxy(object, {
    get(target, call) {
      const found = target[call];
      return typeof found === 'function' && !UNTOLD.includes(call) ? called(found, call) : bound(found, target);
    },
  });
}

function bound(found, target) { return typeof found === 'function' ? found.bind(target) : found; }

function firstOf(records) {
  const first = {};
  for (const { partition, offset } of records) first[partition] = Math.min(first[partition] ?? Infinity, offset);
  return first;
}

module.exports = { observed, tell };
