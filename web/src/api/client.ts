// The one client of the HTTP API; its types are generated from the OpenAPI document.
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];
export type CallResult = Schemas["CallResult"];
export type Finding = Schemas["Finding"];
export type Approval = Schemas["Approval"];

// What GET /crib/tools says of a tool; the document leaves these facts open because formats add their own.
export interface Tool {
  name: string;
  address: string;
  description: string;
  bundle: string;
  version: string;
  tags: string[];
  enabled: boolean;
  reason: string;
  cure: string;
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
    throw new Refusal({ detail: "The server cannot be reached. Is it still running?", retryable: true });
  }
  if (found.error !== undefined || found.data === undefined) throw refusalOf(found.error, found.response);
  return found.data;
}

export function refusalOf(error: unknown, response: Response): Refusal {
  if (typeof error === "object" && error !== null && "detail" in error && typeof error.detail === "string") {
    return new Refusal(error as Problem);
  }
  return new Refusal({ detail: `The server answered ${response.status} ${response.statusText}`, status: response.status });
}
