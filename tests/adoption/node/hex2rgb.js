#!/usr/bin/env node
// usage: hex2rgb.js COLOR
const [, , color] = process.argv;

if (!color) {
  console.error('usage: hex2rgb.js COLOR');
  process.exit(1);
}

const m = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color);
if (!m) {
  console.error(`${color} is not a colour such as #ff8800`);
  process.exit(2);
}

console.log(m.slice(1).map((h) => parseInt(h, 16)).join(','));
