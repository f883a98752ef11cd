#!/usr/bin/env node
// Table of contents of a Markdown text.
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    depth: { type: 'string', short: 'd', default: '3' },
    numbered: { type: 'boolean', short: 'n', default: false },
    skip: { type: 'string', multiple: true, default: [] },
  },
});

const [markdown] = positionals;
if (markdown === undefined) {
  console.error('usage: table-of-contents [--depth N] [--numbered] [--skip TITLE]... MARKDOWN');
  process.exit(64);
}
const depth = Number(values.depth);
if (!Number.isInteger(depth)) throw new Error(`depth must be a whole number, not ${values.depth}`);

let n = 0;
for (const line of markdown.split('\n')) {
  const m = /^(#+) (.*)$/.exec(line);
  if (!m || m[1].length > depth || values.skip.includes(m[2])) continue;
  n += 1;
  console.log('  '.repeat(m[1].length - 1) + (values.numbered ? `${n}. ` : '- ') + m[2]);
}
