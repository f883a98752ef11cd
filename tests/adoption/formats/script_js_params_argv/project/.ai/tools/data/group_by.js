/**
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id rye/core/runtimes/node_runtime
 * @category data
 * @description Count rows by the value of a field
 * @parameters [{name: rows, type: array, required: true}, {name: field, type: string, required: true}]
 */

const args = process.argv.slice(2);
const params = JSON.parse(args[args.indexOf('--params') + 1]);

const counts = {};
for (const row of params.rows) {
  const key = String(row[params.field]);
  counts[key] = (counts[key] ?? 0) + 1;
}
console.log(JSON.stringify({ counts }));
