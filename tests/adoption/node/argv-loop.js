#!/usr/bin/env node
const args = process.argv.slice(2);
const [name, greeting = 'Hello'] = args;
if (!name) {
  console.error('usage: argv-loop.js NAME [GREETING]');
  process.exit(2);
}
console.log(`${greeting}, ${name}!`);
