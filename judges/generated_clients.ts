// A client of the generated types: what it takes and what it is told is checked by tsc before it runs.
import createClient from "openapi-fetch";
import type { paths } from "./schema";

declare const process: { argv: string[]; exitCode?: number };

const [, , baseUrl = "", token = ""] = process.argv;
const client = createClient<paths, "application/json" | "application/problem+json">({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function check(what: string, holds: boolean): void {
  console.log(`typescript: ${what}: ${holds ? "fine" : "WRONG"}`);
  if (!holds) process.exitCode = 1;
}

const called = await client.POST("/call/{name}", { params: { path: { name: "add" } }, body: { first: 2, second: 40 } });
check("a tool is called by its name", called.data?.ok === true && called.data.value === 42);

const found = await client.GET("/crib/tools", { params: { query: { offered: true, mode: "text", names: ["add"] } } });
check("tools are listed", found.data?.tools[0]?.name === "add");

const session = await client.POST("/crib/sessions", { body: { maxCalls: 1 } });
const header = { "Toolcrib-Session": session.data?.id ?? "" };
const counted = [];
for (const first of [1, 2]) {
  counted.push(await client.POST("/call/{name}", { params: { path: { name: "add" }, header }, body: { first, second: 1 } }));
}
check("a session counts calls", counted[0]?.data?.ok === true && counted[1]?.error?.kind === "BUDGET_EXCEEDED");

const refused = await client.POST("/call/{name}", { params: { path: { name: "nobody" } } });
check("a refusal has a kind", refused.response.status === 404 && refused.error?.kind === "NOT_FOUND");
