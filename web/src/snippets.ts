// How to make the same call from elsewhere.
import { callPath, type Tool } from "./api/client";

export interface Snippet {
  title: string;
  text: string;
}

export function snippets(tool: Tool, values: Record<string, unknown>): Snippet[] {
  const args = JSON.stringify(values);
  return [
    { title: "curl", text: `curl ${quoted(`${location.origin}${callPath(tool.address)}`)} -H 'Content-Type: application/json' -d ${quoted(args)}` },
    { title: "CLI", text: `crib call ${quoted(tool.address)} --args ${quoted(args)} --url ${quoted(location.origin)}` },
    { title: "Python", text: `from toolcrib import Crib\n\nwith Crib.connect(${JSON.stringify(location.origin)}) as crib:\n    result = crib.call_sync(${JSON.stringify(tool.address)}, ${python(values)})` },
    { title: "MCP", text: JSON.stringify({ method: "tools/call", params: { name: tool.name, arguments: values } }, null, 2) },
  ];
}

// A word as a POSIX shell reads it back.
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

// A JSON value as a Python literal.
export function python(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}
