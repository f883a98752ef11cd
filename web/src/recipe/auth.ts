// How a request proves who sends it, as a form: the fields of each type, and the declaration that they become.
import { type MessageId, t } from "../messages";
import { isName } from "./model";

export interface Pair {
  name: string;
  value: string;
}

export type AuthValue = string | boolean | Pair[];
export type AuthType = "none" | keyof typeof AUTH_FIELDS;

export interface Auth {
  type: AuthType;
  values: Record<string, AuthValue>;
}

// "secret" is the name of a secret, "words" are separated by spaces, "signed" is a text with slots of the request.
export interface AuthField {
  key: string;
  kind: "secret" | "text" | "choice" | "switch" | "number" | "words" | "pairs" | "signed";
  isNeeded?: boolean;
  choices?: readonly string[];
  start?: AuthValue;
  // Shown and written only where another field has this value.
  when?: readonly [key: string, value: string];
}

const needed = (key: string, kind: AuthField["kind"] = "text", start: AuthValue = ""): AuthField => ({ key, kind, isNeeded: true, start });
const optional = (key: string, kind: AuthField["kind"] = "text"): AuthField => ({ key, kind });
const choice = (key: string, ...choices: string[]): AuthField => ({ key, kind: "choice", choices, start: choices[0] ?? "" });
const CLIENT = [needed("token_url"), needed("client_id")];
const AT_TOKEN_SERVER = [choice("client_auth", "basic", "body"), optional("scopes", "words"), optional("parameters", "pairs")];

export const AUTH_FIELDS = {
  bearer: [needed("token", "secret")],
  basic: [needed("username"), needed("password", "secret")],
  api_key: [
    needed("key", "secret"),
    choice("where", "header", "query"),
    { ...needed("header", "text", "X-Api-Key"), when: ["where", "header"] },
    { ...optional("prefix"), when: ["where", "header"] },
    { ...needed("query", "text", "key"), when: ["where", "query"] },
  ],
  hmac: [
    needed("key", "secret"),
    needed("string", "signed", "${timestamp}.${body}"),
    needed("headers", "pairs", [{ name: "X-Timestamp", value: "${timestamp}" }, { name: "X-Signature", value: "${signature}" }]),
    choice("algorithm", "sha256", "sha384", "sha512", "sha1"),
    choice("encoding", "hex", "base64", "base64url"),
    choice("key_encoding", "text", "hex", "base64"),
    choice("timestamp", "unix", "unix_ms", "iso8601", "http"),
    optional("key_id"),
  ],
  http_signature: [
    needed("key", "secret"),
    needed("key_id"),
    { ...choice("algorithm", "ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512", "rsa-v1_5-sha256", "hmac-sha256"), isNeeded: true },
    optional("components", "words"),
    optional("expires_seconds", "number"),
    optional("nonce", "switch"),
    optional("label"),
    optional("tag"),
  ],
  aws_sigv4: [
    needed("access_key_id", "secret"),
    needed("secret_access_key", "secret"),
    optional("session_token", "secret"),
    needed("region"),
    needed("service"),
    choice("payload", "signed", "unsigned"),
  ],
  oauth2_client: [...CLIENT, needed("client_secret", "secret"), ...AT_TOKEN_SERVER],
  oauth2_refresh: [...CLIENT, needed("refresh_token", "secret"), optional("client_secret", "secret"), ...AT_TOKEN_SERVER],
  oauth2_login: [needed("login"), needed("authorization_url"), ...CLIENT, optional("client_secret", "secret"), ...AT_TOKEN_SERVER, optional("issuer"), optional("redirect_url")],
} satisfies Record<string, AuthField[]>;

export const AUTH_TYPES = ["none", ...Object.keys(AUTH_FIELDS)] as AuthType[];
export const NO_AUTH: Auth = { type: "none", values: {} };
// What the string of a signature may name of the request.
export const SIGNED_SLOTS = ["timestamp", "body", "method", "path", "query", "sorted_query", "target", "host", "nonce", "body_sha256", "key_id"] as const;

// Types of the form that are one type of the declaration.
const OAUTH2: Partial<Record<AuthType, string>> = { oauth2_client: "client_credentials", oauth2_refresh: "refresh_token", oauth2_login: "authorization_code" };

export function fieldsOf(auth: Auth): AuthField[] {
  if (auth.type === "none") return [];
  const fields: AuthField[] = AUTH_FIELDS[auth.type];
  return fields.filter(({ when }) => !when || valueOf(auth, when[0]) === when[1]);
}

// What a field holds: what was typed, or what it begins with.
export function valueOf(auth: Auth, key: string): AuthValue {
  const fields: AuthField[] = auth.type === "none" ? [] : AUTH_FIELDS[auth.type];
  const field = fields.find((one) => one.key === key);
  return auth.values[key] ?? field?.start ?? (field?.kind === "switch" ? false : field?.kind === "pairs" ? [] : "");
}

export function labelOf(auth: Auth, key: string): string {
  return t(`recipe.auth.${auth.type}.${key}` as MessageId);
}

// The declaration `auth` of a request; null for a request without.
export function toDeclaration(auth: Auth): Record<string, unknown> | null {
  if (auth.type === "none") return null;
  const grant = OAUTH2[auth.type];
  const written: Record<string, unknown> = grant ? { type: "oauth2", grant } : { type: auth.type };
  for (const field of fieldsOf(auth)) {
    const value = toValue(field, valueOf(auth, field.key));
    if (field.key !== "where" && value !== undefined) written[field.key] = value;
  }
  return written;
}

function toValue({ kind, choices, isNeeded }: AuthField, value: AuthValue): unknown {
  if (typeof value === "boolean") return value || undefined;
  if (Array.isArray(value)) {
    const named = value.filter((pair) => pair.name.trim());
    return named.length > 0 ? Object.fromEntries(named.map((pair) => [pair.name.trim(), pair.value])) : undefined;
  }
  // A prefix such as "Token " ends with a space that counts.
  if (value.trim() === "") return undefined;
  if (kind === "secret") return `\${secret:${value.trim()}}`;
  if (kind === "words") return value.trim().split(/\s+/);
  if (kind === "number") return Number(value);
  // The first choice is what is meant where nothing is said.
  if (kind === "choice" && choices?.[0] === value && !isNeeded) return undefined;
  return value;
}

export function problemsOfAuth(auth: Auth): string[] {
  return fieldsOf(auth).flatMap(({ key, kind, isNeeded }) => {
    const value = valueOf(auth, key);
    const label = labelOf(auth, key);
    if (isNeeded && (value === "" || (Array.isArray(value) && value.every((pair) => !pair.name.trim())))) return [t("recipe.auth.missing", { label })];
    if (kind === "secret" && value !== "" && !isName(String(value).trim())) return [t("recipe.auth.secret", { label })];
    if (kind === "number" && value !== "" && !/^\d+$/.test(String(value))) return [t("recipe.auth.number", { label })];
    return [];
  });
}

// The headers that it writes, in small letters: a request must not have them besides.
export function headersOf(auth: Auth): string[] {
  if (auth.type === "none") return [];
  if (auth.type === "api_key") return valueOf(auth, "where") === "header" ? [String(valueOf(auth, "header")).toLowerCase()] : [];
  if (auth.type === "hmac") return (valueOf(auth, "headers") as Pair[]).map((pair) => pair.name.trim().toLowerCase());
  if (auth.type === "http_signature") return ["signature", "signature-input"];
  if (auth.type === "aws_sigv4") return ["authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"];
  return ["authorization"];
}
