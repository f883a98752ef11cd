// Call tools with an npm client of MCP: `node mcp_clients.mjs FOLDER TASK`, with the folder of its packages and the task as JSON:
// package, mode, url or command, names, arguments. Prints one line of JSON; another one for each line of standard input.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [folder, text] = process.argv.slice(2);
const task = JSON.parse(text);
const require = createRequire(`${folder}/package.json`);
const { Client, StreamableHTTPClientTransport, StdioClientTransport } =
  task.package === 'sdk'
    ? {
        ...require('@modelcontextprotocol/sdk/client/index.js'),
        ...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
        ...require('@modelcontextprotocol/sdk/client/stdio.js'),
      }
    : { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') };

const client = new Client(
  { name: 'judge', version: '1' },
  task.mode ? { versionNegotiation: { mode: task.mode } } : {},
);
const [command, ...args] = task.command;
const transport = task.url
  ? new StreamableHTTPClientTransport(new URL(task.url))
  : new StdioClientTransport({ command, args });

async function callAll() {
  const { tools } = await client.listTools();
  const results = {};
  for (const name of task.names) {
    results[name] = await client.callTool({ name, arguments: task.arguments });
  }
  const version = client.getNegotiatedProtocolVersion?.();
  console.log(JSON.stringify({ version, tools: tools.map((tool) => tool.name), results }));
}

await client.connect(transport);
await callAll();
for await (const _ of createInterface({ input: process.stdin })) {
  await callAll();
}
await client.close();
process.exit(0);
