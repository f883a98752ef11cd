"""The least that an MCP client does: start `crib mcp`, say hello, list the tools, call one."""

import json
import subprocess
import sys
from typing import Any

name, arguments = sys.argv[1], json.loads(sys.argv[2])
command = [sys.executable, "-m", "toolcrib", "mcp"]

with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
    assert server.stdin and server.stdout

    def ask(number: int, method: str, **params: object) -> Any:
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        print(json.dumps(request), file=server.stdin, flush=True)
        for line in server.stdout or ():
            message = json.loads(line)
            if message.get("id") == number:
                return message["result"]

    client = {"name": "tutorial", "version": "1.0"}
    ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    print("offered:", ", ".join(sorted(tool["name"] for tool in ask(2, "tools/list")["tools"])))
    print("answer:", ask(3, "tools/call", name=name, arguments=arguments)["content"][0]["text"])
    server.stdin.close()
