#!/usr/bin/env node
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  strict: true,
  options: {
    format: { type: 'string', short: 'f', default: 'text' },
    'with-total': { type: 'boolean' },
    tag: { type: 'string', multiple: true, default: [] },
  },
});

if (positionals.length === 0) {
  console.error('Usage: report.mjs [options] <number...>');
  process.exit(1);
}
const numbers = positionals.map(Number);
const total = numbers.reduce((a, b) => a + b, 0);
const answer = { numbers, tags: values.tag, ...(values['with-total'] && { total }) };
if (values.format === 'json') console.log(JSON.stringify(answer));
else console.log(numbers.join(' '), total);
