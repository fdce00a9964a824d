'use strict';
// node:test: const kafka = useKafka({ topics: ['orders'] }) at the top of a file, or within a describe.

const { after, afterEach, before, beforeEach } = require('node:test');
const { hooks } = require('./hooks');

module.exports = {
  useKafka: hooks({
    ...{ after, afterEach, before, beforeEach },
    failed: (context) => context.error !== null && context.error !== undefined,
    print: (text) => console.error(text),
  }),
};
