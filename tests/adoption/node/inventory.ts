import { parseArgs } from 'node:util';

type Item = { sku: string; pieces: number };

const ITEMS: readonly Item[] = [
  { sku: 'L-1', pieces: 4 },
  { sku: 'C-2', pieces: 0 },
];

function find(sku: string): Item | undefined {
  return ITEMS.find((i) => i.sku === sku);
}

const { values } = parseArgs({
  options: {
    sku: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

const item: Item | undefined = find(values.sku ?? '');
if (!item) {
  console.error(`no item ${values.sku ?? '(none given)'}`);
  process.exit(1);
}
console.log(values.json ? JSON.stringify(item) : `${item.sku}: ${item.pieces}`);
