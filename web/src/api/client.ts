// The one client of the HTTP API; its types are generated from the OpenAPI document.
import createClient, { type Middleware } from "openapi-fetch";
import { t } from "../messages";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
export type CallResult = Schemas["CallResult"];
export type Finding = Schemas["Finding"];
export type Approval = Schemas["Approval"];

// A row of the list of tools: what GET /ui/tools says.
export interface ToolRow {
  name: string;
  address: string;
  description: string;
  bundle: string;
  bundleID: string;
  slug: string;
  version: string;
  tags: string[];
  kind: string;
  sideEffects: string;
  enabled: boolean;
  reason: string;
  requiresConfirmation: boolean;
  offered: boolean;
  notOffered: string;
  origin: string;
  foundBy: string;
}

// What GET /crib/tools says of a tool; the document leaves these facts open because formats add their own.
export interface Tool {
  name: string;
  address: string;
  description: string;
  bundle: string;
  bundleID: string;
  version: string;
  tags: string[];
  enabled: boolean;
  reason: string;
  cure: string;
  sameName: string[];
  parameters: Record<string, unknown>;
  output: Record<string, unknown> | null;
  requires: string[];
  sideEffects: string;
  requiresConfirmation: boolean;
  limits: string;
  kind: string;
  documentation: string;
  examples: unknown[];
  origin: string;
  contentHash: string;
  warnings: string[];
  models: { offered: boolean; reason: string };
  shadowedBy: string | null;
  // Of a tool that asks a database.
  database?: string;
  statement?: string;
}

// A refusal of the server, with the words that it gave.
export class Refusal extends Error {
  readonly problem: Partial<Problem> & { detail: string };

  constructor(problem: Partial<Problem> & { detail: string }) {
    super(problem.detail);
    this.problem = problem;
  }
}

let csrf = "";

// The server gives this value to the signed-in page; a foreign page cannot read it.
export function setCsrf(value: string): void {
  csrf = value;
}

const guard: Middleware = {
  onRequest({ request }) {
    if (csrf && request.method !== "GET") request.headers.set("x-toolcrib-csrf", csrf);
    return request;
  },
  onResponse({ response }) {
    notice(response);
  },
};

export const api = createClient<paths>({ baseUrl: "/", credentials: "same-origin" });
api.use(guard);

// The data of an answer; raises Refusal with the server's own words.
export async function take<T>(
  answer: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  let found;
  try {
    found = await answer;
  } catch {
    throw new Refusal({ detail: t("app.unreachable"), retryable: true });
  }
  if (found.error !== undefined || found.data === undefined) throw refusalOf(found.error, found.response);
  return found.data;
}

// The tool of an address; raises Refusal where there is none.
export async function readTool(address: string, signal: AbortSignal): Promise<Tool> {
  const page = await take(api.GET("/crib/tools", { params: { query: { name: address, includeDisabled: true } }, signal }));
  const tool = page.tools[0] as unknown as Tool | undefined;
  if (!tool) throw new Refusal({ detail: t("tool.missing", { name: address }) });
  return tool;
}

// Somebody must sign in (again): the page asks for it without forgetting what was typed.
export const SIGN_IN_NEEDED = "toolcrib-sign-in-needed";

function notice(response: Response): void {
  if (response.status === 401) window.dispatchEvent(new Event(SIGN_IN_NEEDED));
}

// Change something by a path that only the page uses.
export async function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const given = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await answerOf(path, { method, ...given });
  return (await answer.json().catch(() => null)) as T;
}

export interface WantedCall {
  name: string;
  args: Record<string, unknown>;
  confirmation?: string;
}

// The path that calls a tool by its name or address.
export function callPath(name: string): string {
  return `/call/${encodeURIComponent(name)}`;
}

// Call a tool, and hear it while it runs where it can be heard; any answer is returned.
export async function call(wanted: WantedCall, signal: AbortSignal): Promise<Response> {
  const headers = {
    accept: "text/event-stream",
    "content-type": "application/json",
    ...(wanted.confirmation && { "toolcrib-confirmation": wanted.confirmation }),
    ...(csrf && { "x-toolcrib-csrf": csrf }),
  };
  let answer: Response;
  try {
    answer = await fetch(callPath(wanted.name), { method: "POST", headers, body: JSON.stringify(wanted.args), credentials: "same-origin", signal });
  } catch (problem) {
    throw signal.aborted ? problem : new Refusal({ detail: t("tool.brokeOff") });
  }
  notice(answer);
  return answer;
}

// The failed result that a refusal of a call is too.
export function asFailure(error: unknown): CallResult | null {
  if (typeof error !== "object" || error === null || !("error" in error) || !("intents" in error)) return null;
  return error as CallResult;
}

// Send a file as it is.
export async function sendFile<T>(path: string, file: Blob): Promise<T> {
  return (await answerOf(path, { method: "POST", headers: { "content-type": file.type }, body: file })).json() as Promise<T>;
}

// Read what is meant to be stored as a file.
export async function readFile(path: string): Promise<Blob> {
  return (await answerOf(path, { method: "GET" })).blob();
}

// The answer to a request; raises Refusal for one that is refused or not answered.
export async function answerOf(path: string, wanted: RequestInit & { method: string; headers?: Record<string, string> }): Promise<Response> {
  let answer: Response;
  try {
    const headers = { ...wanted.headers, ...(csrf && wanted.method !== "GET" && { "x-toolcrib-csrf": csrf }) };
    answer = await fetch(path, { ...wanted, headers, credentials: "same-origin" });
  } catch (problem) {
    if (wanted.signal?.aborted) throw problem;
    throw new Refusal({ detail: t("app.unreachable"), retryable: true });
  }
  notice(answer);
  if (!answer.ok) throw refusalOf(await answer.json().catch(() => null), answer);
  return answer;
}

// What a path says that only the page reads, and that the API's own document leaves out.
export async function read<T>(path: string, query: Record<string, string | number | undefined> = {}, signal?: AbortSignal): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const words = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  let answer: Response;
  try {
    answer = await fetch(words ? `${path}?${words}` : path, { credentials: "same-origin", signal: signal ?? null });
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new Refusal({ detail: t("app.unreachable"), retryable: true });
  }
  notice(answer);
  const body: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw refusalOf(body, answer);
  return body as T;
}

export function refusalOf(error: unknown, response: Response): Refusal {
  if (typeof error === "object" && error !== null && "detail" in error && typeof error.detail === "string") {
    return new Refusal(error as Problem);
  }
  // As the Model Context Protocol writes an error.
  const inner = typeof error === "object" && error !== null && "error" in error ? (error.error as { message?: unknown } | null) : null;
  if (typeof inner?.message === "string") return new Refusal({ detail: inner.message, status: response.status });
  return new Refusal({ detail: t("app.answered", { status: `${response.status} ${response.statusText}`.trim() }), status: response.status });
}
