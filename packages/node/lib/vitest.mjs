// Vitest: const kafka = useKafka({ topics: ['orders'] }) at the top of a file, or within a describe.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { hooks } from './hooks.js';

/** A fresh start, or a server that has to be killed, may take longer than Vitest lets a hook. */
const START_LIMIT_MS = 40_000;

export const useKafka = hooks({
  before: (run) => beforeAll(run, START_LIMIT_MS),
  beforeEach: (run) => beforeEach(() => run()),
  afterEach: (run) => afterEach((context) => run(context)),
  after: (run) => afterAll(run, START_LIMIT_MS),
  failed: (context) => context.task.result?.state === 'fail',
  print: (text) => console.error(text),
});
