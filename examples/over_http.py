"""Start a server, find a tool over HTTP, call it, and be refused."""

import json
import subprocess
import sys
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

SERVER = [sys.executable, "-m", "toolcrib", "serve", "--port", "0", "-C", "examples/server"]


def ask(url: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, {"Content-Type": "application/json"})) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refusal:
        return refusal.code, json.load(refusal)


server = subprocess.Popen(SERVER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    assert server.stdout
    url = server.stdout.readline().split()[-1]
    _, found = ask(f"{url}/tools/search?q=count")
    tool = found["tools"][0]
    print(tool["slug"], tool["match"], tool["source"])
    status, answer = ask(f"{url}/call/{tool['slug']}", {"text": "the cat and the hat", "top": 1})
    print(status, answer["ok"], answer["value"])
    place = f"{url}/tools/bundles/{tool['bundleID']}/tools/{tool['slug']}/version/{tool['version']}/invoke"
    status, answer = ask(place, {"args": {"top": 1}})
    print(status, answer["ok"], answer["detail"])
finally:
    server.terminate()
    server.communicate()
