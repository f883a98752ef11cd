#!/usr/bin/env node
'use strict';
// sum-argv.js [--round] NUMBER...

const args = process.argv.slice(2);
let round = false;
const numbers = [];
for (let i = 0; i < args.length; i++) {
  if (args[i] === '--round') round = true;
  else if (args[i] === '--times') numbers.push(...Array(Number(args[++i]) - 1).fill(numbers.at(-1)));
  else numbers.push(Number(args[i]));
}
if (numbers.some(Number.isNaN)) {
  console.error('all arguments must be numbers');
  process.exit(1);
}
const total = numbers.reduce((a, b) => a + b, 0);
console.log(round ? Math.round(total) : total);
