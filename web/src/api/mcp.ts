// A client of the Model Context Protocol, by its version without sessions. What the page shows of resources and prompts is
// what every client of the protocol is told.
import { answerOf, Refusal } from "./client";
import { EventCutter } from "./events";
import { t } from "../messages";

const VERSION = "2026-07-28";
const META = { "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {} };
// The parameter that a request repeats in a header.
const NAMED: Record<string, string> = { "resources/read": "uri", "prompts/get": "name" };
const MAX_PAGES = 20;

export interface Resource {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}
export type Template = Omit<Resource, "uri"> & { uriTemplate: string };
export interface Prompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean }[];
}
export interface Content {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}
export interface PromptMessage {
  role: string;
  content: Record<string, unknown>;
}

// Ask for one thing; raises Refusal in the server's words.
export async function ask<T>(method: string, params: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
  const named = params[NAMED[method] ?? ""];
  const answer = await answerOf("/mcp", {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": VERSION,
      "mcp-method": method,
      ...(typeof named === "string" && { "mcp-name": inHeader(named) }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }),
    ...(signal && { signal }),
  });
  const message = await messageOf(answer);
  if (message?.error) throw new Refusal({ detail: message.error.message });
  if (!message || !("result" in message)) throw new Refusal({ detail: t("app.answered", { status: `${answer.status} ${answer.statusText}`.trim() }) });
  return message.result as T;
}

// Every page of a list, as far as a person reads.
export async function list<T>(method: string, key: string, signal?: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await ask<Record<string, unknown>>(method, cursor ? { cursor } : {}, signal);
    found.push(...((answer[key] as T[] | undefined) ?? []));
    cursor = answer.nextCursor as string | undefined;
    if (!cursor) break;
  }
  return found;
}

// The words that an argument or a slot may be, of those that begin so.
export async function complete(ref: Record<string, string>, name: string, value: string, signal?: AbortSignal): Promise<string[]> {
  const answer = await ask<{ completion: { values: string[] } }>("completion/complete", { ref, argument: { name, value } }, signal);
  return answer.completion.values;
}

interface Message {
  result?: unknown;
  error?: { message: string };
}

// The answer is JSON, or the last event of a stream.
async function messageOf(answer: Response): Promise<Message | null> {
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return (await answer.json().catch(() => null)) as Message | null;
  const events = new EventCutter().feed(await answer.text());
  const last = events.at(-1);
  return last ? (JSON.parse(last.data) as Message) : null;
}

// A text as a header can hold it.
export function inHeader(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text) && text === text.trim() && !text.startsWith("=?")) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

// The slots of a template: {word}, and {?word} for what follows a question mark.
export function slotsOf(template: string): { name: string; isQuery: boolean }[] {
  return [...template.matchAll(/\{(\??)([\w,]+)\}/g)].flatMap(([, mark, names]) => (names as string).split(",").map((name) => ({ name, isQuery: mark === "?" })));
}

// The address that a template gives with these words.
export function expand(template: string, words: Record<string, string>): string {
  const value = (name: string) => encodeURIComponent((words[name] ?? "").trim());
  return template
    .replace(/\{(\w+)\}/g, (_, name: string) => value(name))
    .replace(/\{\?([\w,]+)\}/g, (_, names: string) => {
      const given = names.split(",").filter((name) => value(name) !== "");
      return given.length ? `?${given.map((name) => `${name}=${value(name)}`).join("&")}` : "";
    });
}
