import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'ignore-case': { type: 'boolean', short: 'i', default: false },
    max: { type: 'string', short: 'm', default: '10' },
    word: { type: 'string', multiple: true },
  },
});
const [text] = positionals;
const found = (values.word ?? []).filter((w) =>
  values['ignore-case'] ? text.toLowerCase().includes(w.toLowerCase()) : text.includes(w));
console.log(found.slice(0, Number(values.max)).join(','));
