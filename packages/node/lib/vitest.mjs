// Vitest: const kafka = useKafka({ topics: ['orders'] }) at the top of a file, or within a describe.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { hooks } from './hooks.js';

/** Starting a server, or killing one, may take longer than Vitest's time limit for hooks. */
const START_LIMIT_MS = 130_000;

export const useKafka = hooks({
  before: (run) => beforeAll(run, START_LIMIT_MS),
  beforeEach: (run) => beforeEach(() => run()),
  afterEach: (run) => afterEach((context) => run(context)),
  after: (run) => afterAll(run, START_LIMIT_MS),
  failed: (context) => context.task.result?.state === 'fail',
  print: (text) => console.error(text),
});
