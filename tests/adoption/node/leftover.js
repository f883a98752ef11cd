import { readFileSync } from 'fs';
const yaml = require('js-yaml');

export function main({ file }) {
  return yaml.load(readFileSync(file, 'utf8'));
}
