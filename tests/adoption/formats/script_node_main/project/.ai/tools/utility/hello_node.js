// .ai/tools/utility/hello_node.js
/**
 * Say hello to someone with a personalized greeting message
 * 
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id node_runtime
 * @category utility
 * @description Say hello to someone with a personalized greeting message
 */

const { parseArgs } = require('util');

const { values: argv } = parseArgs({
  options: { name: { type: 'string', short: 'n', default: 'World' } },
});

function main() {
  console.log(`Hello, ${argv.name}!`);
}

if (require.main === module) {
  main();
}

module.exports = { main };
