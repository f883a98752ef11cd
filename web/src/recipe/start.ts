// Read what a person pasted: a URL, a curl command, or an example answer.
import { t } from "../messages";
import { type Auth, NO_AUTH } from "./auth";
import { type Body, type Method, METHODS, newRequest, type Place, withContentType } from "./http";
import { type Answer, type Json, nameFor, type Part, type Step, valuesIn } from "./model";

export type Start = { kind: "request"; step: Step } | { kind: "answer"; answer: Answer } | { kind: "nothing"; reason: string };

// Headers that belong to the connection or to curl, not to the tool.
const DROPPED = new Set(["host", "content-length", "connection", "accept-encoding", "cookie", "user-agent"]);
const SECRET_NAME = /^(api[-_]?key|key|token|access[-_]?token|appid|secret|password|auth(orization)?|x-.*-?(key|token|secret))$/i;
const MAX_PASTED = 1_000_000;

export function readStart(pasted: string, name: string): Start {
  const text = pasted.trim();
  if (!text) return { kind: "nothing", reason: t("recipe.start.empty") };
  if (text.length > MAX_PASTED) return { kind: "nothing", reason: t("recipe.start.tooLong") };
  if (/^curl\s/i.test(text)) return readCurl(text, name);
  if (/^https?:\/\//i.test(text)) return fromUrl(text, { name, method: "GET", headers: [], body: { kind: "none" }, bodyParts: [], auth: NO_AUTH });
  try {
    return { kind: "answer", answer: { kind: "json", value: JSON.parse(text) } };
  } catch {
    if (text.startsWith("<")) return { kind: "answer", answer: { kind: "text", text } };
    if (/^[\w.-]+\.[a-z]{2,}(\/|\?|$)/i.test(text)) return readStart(`https://${text}`, name);
    return { kind: "nothing", reason: t("recipe.start.unknown") };
  }
}

function readCurl(text: string, name: string): Start {
  const words = shellWords(text);
  if (words === null) return { kind: "nothing", reason: t("recipe.start.quoted") };
  let method = "";
  let url = "";
  let isGet = false;
  let auth = NO_AUTH;
  const headers: [string, string][] = [];
  const data: string[] = [];
  for (let place = 1; place < words.length; place++) {
    const word = words[place] as string;
    const next = () => words[++place] ?? "";
    if (word === "-X" || word === "--request") method = next().toUpperCase();
    else if (word.startsWith("-X") && word.length > 2) method = word.slice(2).toUpperCase();
    else if (word === "-H" || word === "--header") headers.push(headerOf(next()));
    else if (["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode"].includes(word)) data.push(next());
    else if (word === "--json") {
      data.push(next());
      headers.push(["Content-Type", "application/json"], ["Accept", "application/json"]);
    } else if (word === "-u" || word === "--user") auth = userAuth(next());
    else if (word === "-A" || word === "--user-agent") next();
    else if (word === "-G" || word === "--get") isGet = true;
    else if (word === "-I" || word === "--head") method = "HEAD";
    else if (word === "--url") url = next();
    else if (["-o", "--output", "-m", "--max-time", "--connect-timeout", "-b", "--cookie", "-e", "--referer"].includes(word)) next();
    else if (["-F", "--form"].includes(word)) return { kind: "nothing", reason: t("recipe.start.files") };
    else if (!word.startsWith("-") && !url) url = word;
  }
  if (!url) return { kind: "nothing", reason: t("recipe.start.noUrl") };
  if (!/^https?:\/\//i.test(url)) url = `https://${url}`;
  if (isGet && data.length) {
    url += (url.includes("?") ? "&" : "?") + data.join("&");
    data.length = 0;
  }
  const type = headers.find(([key]) => key.toLowerCase() === "content-type")?.[1] ?? "";
  const body = readBody(data.join("&"), type);
  return fromUrl(url, { name, method: method || (data.length ? "POST" : "GET"), headers, body, bodyParts: formParts(data.join("&"), body), auth });
}

// The password of curl's -u becomes a secret by name, so that it is never stored in the recipe.
function userAuth(given: string): Auth {
  return { type: "basic", values: { username: given.split(":")[0] ?? "", password: "PASSWORD" } };
}

function readBody(text: string, type: string): Body {
  if (!text) return { kind: "none" };
  if (!type || type.includes("json")) {
    try {
      const example = JSON.parse(text) as Json;
      if (typeof example === "object" && example !== null) return { kind: "json", example };
    } catch {
      // Not JSON: a form or a text.
    }
  }
  if ((!type || type.includes("urlencoded")) && /^[^=&\s]+=[^&]*(&[^=&\s]+=[^&]*)*$/.test(text)) return { kind: "form" };
  return { kind: "text", text };
}

function formParts(text: string, body: Body): Part[] {
  if (body.kind === "form") return [...new URLSearchParams(text)].map(([label, value], place) => part("body", label, value, `body ${place}`));
  if (body.kind !== "json") return [];
  // The content itself is no part of it.
  return valuesIn(body.example).slice(1).map(({ path, value }) => ({ ...part("body", path.join("."), value, `body ${path.join(".")}`), at: path }));
}

interface Given {
  name: string;
  method: string;
  headers: [string, string][];
  body: Body;
  bodyParts: Part[];
  auth: Auth;
}

function fromUrl(text: string, { name, method, headers, body, bodyParts, auth }: Given): Start {
  if (!(METHODS as readonly string[]).includes(method)) return { kind: "nothing", reason: t("recipe.start.method", { method }) };
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { kind: "nothing", reason: t("recipe.start.notUrl") };
  }
  const segments = url.pathname.split("/").slice(1).map((word, place) => part("path", `${place + 1}`, decoded(word), `path ${place}`));
  const query = [...url.searchParams].map(([label, value], place) => part("query", label, value, `query ${place}`));
  // A user in the address is what -u of curl is; the server takes no address with one.
  const found = url.username ? userAuth(decoded(url.username)) : auth;
  const kept = headers
    .filter(([key]) => !DROPPED.has(key.toLowerCase()) && !(found.type !== "none" && key.toLowerCase() === "authorization"))
    .map(([key, value], place) => part("header", key, value, `header ${place}`));
  const typed = body.kind === "json" ? withContentType(kept, "application/json") : body.kind === "form" ? withContentType(kept, "application/x-www-form-urlencoded") : kept;
  return { kind: "request", step: newRequest(name, { method: method as Method, origin: url.origin, body, auth: found }, [...segments, ...query, ...typed, ...bodyParts]) };
}

function part(place: Place, label: string, value: Part["value"], id: string): Part {
  // What looks like a key becomes a secret by name, so that it is never stored in the recipe.
  const secret = place !== "path" && typeof value === "string" && value !== "" && SECRET_NAME.test(label);
  return { id, place, label, value, source: secret ? { kind: "secret", name: nameFor(label).toUpperCase() } : { kind: "fixed" } };
}

function headerOf(text: string): [string, string] {
  const colon = text.indexOf(":");
  return colon < 0 ? [text.trim(), ""] : [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

// The words of a shell command, with its quotes resolved; null if a quote is not closed. Nothing is expanded.
export function shellWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  const source = text.replace(/\\\r?\n/g, " ");
  for (let place = 0; place < source.length; place++) {
    const letter = source[place] as string;
    if (quote) {
      if (letter === quote) quote = "";
      else if (letter === "\\" && quote === '"' && /["\\$`]/.test(source[place + 1] ?? "")) word = (word ?? "") + source[++place];
      else word = (word ?? "") + letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      word ??= "";
      // $'…' of Bash, as browsers copy it: the dollar sign is not part of the word.
      if (letter === "'" && word.endsWith("$")) word = word.slice(0, -1);
    } else if (letter === "\\") word = (word ?? "") + (source[++place] ?? "");
    else if (/\s/.test(letter)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + letter;
  }
  if (quote) return null;
  if (word !== null) words.push(word);
  return words;
}
