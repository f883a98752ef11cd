#!/usr/bin/env node
// stdin:  {"orders": [{"id": "A", "items": {"lamp": 1}}, ...]}
// stdout: {"total": {"lamp": 3}, "orders": 2}
let raw = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => { raw += chunk; });
process.stdin.on('end', () => {
  let input;
  try {
    input = JSON.parse(raw);
  } catch (e) {
    process.stderr.write('input is not JSON\n');
    process.exitCode = 2;
    return;
  }
  if (!Array.isArray(input.orders)) {
    process.stderr.write('orders must be a list\n');
    process.exitCode = 1;
    return;
  }
  const total = {};
  for (const order of input.orders) {
    for (const [item, n] of Object.entries(order.items)) total[item] = (total[item] || 0) + n;
  }
  process.stdout.write(JSON.stringify({ total, orders: input.orders.length }) + '\n');
});
