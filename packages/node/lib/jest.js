'use strict';
// Jest: const kafka = useKafka({ topics: ['orders'] }) at the top of a file, or within a describe.

const { hooks } = require('./hooks');

/** Whether the test that just ran failed: Jest's runner (jest-circus) keeps that in the global object of the tests. */
function failed() {
  const symbol = Object.getOwnPropertySymbols(globalThis).find((each) => each.description === 'JEST_STATE_SYMBOL');
  return (globalThis[symbol]?.currentlyRunningTest?.errors.length ?? 0) > 0;
}

/** A fresh start, or a server that has to be killed, may take longer than Jest lets a hook. */
const START_LIMIT_MS = 40_000;

module.exports = {
  useKafka(options) {
    const { afterAll, afterEach, beforeAll, beforeEach } = globalThis;
    if (!beforeAll) throw new Error('useKafka is for test files that Jest runs; call it in one');
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
