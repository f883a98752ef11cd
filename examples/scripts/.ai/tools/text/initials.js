/**
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id node_runtime
 * @category text
 * @description Give the initials of a name
 * @parameters [{name: name, type: string, required: true, description: The full name.}]
 */

const name = process.argv[process.argv.indexOf('--name') + 1];

console.log(name.split(/\s+/).map((word) => word[0].toUpperCase()).join(''));
