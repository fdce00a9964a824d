'use strict';
// Jest: const kafka = useKafka({ topics: ['orders'] }) at the top of a file, or within a describe.

const { hooks } = require('./hooks');

/** Returns whether the last test failed, which jest-circus stores in the global object of the tests. */
function failed() {
  const symbol = Object.getOwnPropertySymbols(globalThis).find((each) => each.description === 'JEST_STATE_SYMBOL');
  return (globalThis[symbol]?.currentlyRunningTest?.errors.length ?? 0) > 0;
}

/** Returns Jest's functions, which are no globals with `injectGlobals: false`. */
function functions() {
  if (globalThis.beforeAll) return globalThis;
  try {
    return require('@jest/globals'); // only Jest has it
  } catch {
    throw new Error('useKafka is for test files that Jest runs; call it in one');
  }
}

/** Starting a server, or killing one, may take longer than Jest's time limit for hooks. */
const START_LIMIT_MS = 130_000;

module.exports = {
  useKafka(options) {
    const { afterAll, afterEach, beforeAll, beforeEach } = functions();
    return hooks({
      before: (run) => beforeAll(run, START_LIMIT_MS),
      beforeEach: (run) => beforeEach(run),
      afterEach: (run) => afterEach(() => run()),
      after: (run) => afterAll(run, START_LIMIT_MS),
      failed,
      print: (text) => console.error(text),
    })(options);
  },
};
