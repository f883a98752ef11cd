import { afterEach, expect, test, vi } from "vitest";
import { ask, expand, inHeader, list, slotsOf } from "./mcp";

afterEach(() => vi.unstubAllGlobals());

function answer(body: string, type = "application/json", status = 200) {
  const asked: { headers: Record<string, string>; body: { method: string; params: Record<string, unknown> } }[] = [];
  vi.stubGlobal("fetch", async (_: string, given: RequestInit) => {
    asked.push({ headers: given.headers as Record<string, string>, body: JSON.parse(given.body as string) });
    return new Response(body, { status, headers: { "content-type": type } });
  });
  return asked;
}

test("a request repeats its method and what it names in headers", async () => {
  const asked = answer('{"jsonrpc": "2.0", "id": 1, "result": {"contents": []}}');
  expect(await ask("resources/read", { uri: "notes://tåg" })).toEqual({ contents: [] });
  expect(asked[0]?.headers).toMatchObject({ "mcp-method": "resources/read", "mcp-name": "=?base64?bm90ZXM6Ly90w6Vn?=" });
  expect(asked[0]?.body.params._meta).toHaveProperty(["io.modelcontextprotocol/protocolVersion"], asked[0]?.headers["mcp-protocol-version"]);
});

test("an error is raised in the words of the server, also one that comes as a stream", async () => {
  const error = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "there is no prompt x"}}';
  answer(error, "application/json", 400);
  await expect(ask("prompts/get", { name: "x" })).rejects.toThrow("there is no prompt x");
  answer(`event: message\ndata: ${error}\n\n`, "text/event-stream");
  await expect(ask("prompts/get", { name: "x" })).rejects.toThrow("there is no prompt x");
});

test("a list is read page by page, and one without an end ends", async () => {
  const asked = answer('{"result": {"prompts": [{"name": "a"}], "nextCursor": "7"}}');
  expect((await list("prompts/list", "prompts")).length).toBe(asked.length);
  expect(asked.map((one) => one.body.params.cursor).slice(0, 3)).toEqual([undefined, "7", "7"]);
  expect(asked.length).toBeLessThan(100);
});

test("slots of an address are found and filled in, those behind a question mark only if they are given", () => {
  const template = "crib://results/{handle}{?offset}";
  expect(slotsOf(template)).toEqual([{ name: "handle", isQuery: false }, { name: "offset", isQuery: true }]);
  expect(expand(template, { handle: "a/b" })).toBe("crib://results/a%2Fb");
  expect(expand(template, { handle: "ab", offset: "5" })).toBe("crib://results/ab?offset=5");
});

test("plain text stands in a header as it is", () => {
  expect(["essay", " x", "=?x", "line\nbreak"].map(inHeader)).toEqual(["essay", "=?base64?IHg=?=", "=?base64?PT94?=", "=?base64?bGluZQpicmVhaw==?="]);
});
