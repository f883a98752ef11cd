// <toolcrib-palette>: type +name in any chat page to find a tool, fill in its arguments, call it, and insert the result.
//
//   <script type="module" src="https://your-server/ui/palette.js"></script>
//   <toolcrib-palette server="https://your-server" token="…" texts='{"palette.call": "Aufrufen"}'></toolcrib-palette>
//
// It sends the event "toolcrib-insert" with { tool, arguments, result, text }. Every text is shown as text. `texts` replaces words of
// the palette by their ids in palette-messages.ts.
import { button, element, type Field, formOf } from "./palette-fields";
import { textsWith } from "./palette-messages";
import { writeOutHidden } from "./visible";

interface Found {
  slug: string;
  version: string;
  bundleID: string;
  bundleSlug?: string;
  displayName?: string;
  description?: string;
  isEnabled: boolean;
  effectiveEnabled: boolean;
  disabledReason: string;
  argSchema?: Record<string, unknown>;
}

const STYLE = `
:host { display: block; font: inherit; color-scheme: light dark; }
* { box-sizing: border-box; font: inherit; }
input, select, textarea, button { width: 100%; padding: .5rem; border: 1px solid #767676; border-radius: .3rem; background: Canvas; color: CanvasText; }
button { width: auto; cursor: pointer; }
strong { font-weight: bold; }
[role=listbox] { list-style: none; margin: .25rem 0; padding: 0; max-height: 16rem; overflow: auto; border: 1px solid #767676; border-radius: .3rem; }
[role=listbox]:empty { display: none; }
[role=option] { padding: .4rem .6rem; cursor: pointer; }
[role=option][aria-selected=true] { background: Highlight; color: HighlightText; }
label { display: block; margin: .5rem 0; }
fieldset { border: 1px solid #767676; border-radius: .3rem; margin: .5rem 0; min-width: 0; }
input[type=checkbox] { width: auto; }
small { display: block; }
.item { margin: .25rem 0; padding-inline-start: .5rem; border-inline-start: 3px solid #767676; }
.question { border: 2px solid; border-radius: .3rem; padding: .5rem; }
.row { display: flex; gap: .5rem; align-items: center; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 16rem; overflow: auto; }
`;

interface Outcome {
  ok?: boolean;
  value?: unknown;
  error?: { type: string; message: string; details?: { confirmation?: unknown; reason?: string } };
}

// A tool whose form is open: its field, where its result is said, what stands below it, and the button that calls it.
interface Asked {
  tool: Found;
  field: Field;
  said: HTMLElement;
  after: HTMLElement;
  call: HTMLButtonElement;
}

export class ToolcribPalette extends HTMLElement {
  static observedAttributes = ["texts"];

  private readonly root = this.attachShadow({ mode: "open" });
  private readonly input = element("input", { type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", placeholder: "+" });
  private readonly list = element("ul", { id: "found", role: "listbox" });
  private readonly panel = element("div");
  private t = textsWith();
  private found: Found[] = [];
  private chosen = -1;
  private asked = 0;
  private timer = 0;
  private csrf: string | null = null;

  connectedCallback(): void {
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    this.root.adoptedStyleSheets = [style];
    this.root.replaceChildren(this.input, this.list, this.panel);
    writeOutHidden(this.root);
    this.name();
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
  }

  // The words of the page instead of ours.
  attributeChangedCallback(_: string, __: string | null, texts: string | null): void {
    try {
      const own: unknown = texts === null ? {} : JSON.parse(texts);
      this.t = textsWith(typeof own === "object" && own !== null ? (own as Record<string, unknown>) : {});
    } catch {
      this.t = textsWith();
    }
    this.name();
  }

  private name(): void {
    for (const part of [this.input, this.list]) part.setAttribute("aria-label", this.t("palette.label"));
  }

  private typed(): void {
    window.clearTimeout(this.timer);
    const slug = /(?:^|\s)\+([\p{L}\p{Nd}_-]*)$/u.exec(this.input.value)?.[1];
    if (slug === undefined) return this.show([]);
    this.timer = window.setTimeout(() => void this.search(slug), 120);
  }

  private async search(slug: string): Promise<void> {
    const number = ++this.asked;
    const query = slug ? `/tools/search?q=${encodeURIComponent(slug)}&includeDisabled=true&pageSize=20` : "/tools?includeDisabled=true&recommendedPageSize=20";
    const answer = await this.ask("GET", query);
    // A later search overtakes an earlier one.
    if (number !== this.asked) return;
    if (!answer.ok) return this.complain(answer.detail);
    const tools = ((answer.body as { tools?: unknown[] }).tools ?? []) as (Found | { tool: Found })[];
    this.show(tools.map((one) => ("tool" in one ? one.tool : one)));
  }

  private show(found: Found[]): void {
    this.found = found;
    this.chosen = found.length ? 0 : -1;
    this.list.replaceChildren(
      ...found.map((tool, place) => {
        const option = element("li", { role: "option", id: `option-${place}` });
        option.textContent = this.t("palette.option", { name: tool.slug, about: tool.effectiveEnabled ? (tool.description ?? "") : tool.disabledReason });
        option.addEventListener("click", () => this.open(tool));
        return option;
      }),
    );
    this.mark();
  }

  private mark(): void {
    this.input.setAttribute("aria-expanded", String(this.found.length > 0));
    [...this.list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === this.chosen)));
    if (this.chosen >= 0) {
      this.input.setAttribute("aria-activedescendant", `option-${this.chosen}`);
      this.list.children[this.chosen]?.scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  private pressed(event: KeyboardEvent): void {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by && this.found.length) {
      event.preventDefault();
      this.chosen = (this.chosen + by + this.found.length) % this.found.length;
      this.mark();
    } else if (event.key === "Enter") {
      const tool = this.found[this.chosen];
      // An unknown name calls nothing.
      if (!tool) return;
      event.preventDefault();
      this.open(tool);
    } else if (event.key === "Escape") this.close();
  }

  private open(tool: Found): void {
    this.show([]);
    const title = element("strong");
    title.textContent = tool.displayName || tool.slug;
    const about = element("p");
    about.textContent = tool.description ?? "";
    const field = formOf(tool.argSchema ?? {}, this.t);
    const form = element("form");
    form.noValidate = true;
    const toggle = element("input", { type: "checkbox" });
    toggle.checked = tool.isEnabled;
    toggle.addEventListener("change", () => void this.turn(tool, toggle));
    const toggled = element("label", { class: "row" });
    toggled.append(toggle, this.t("palette.enabled"));
    // A long result is scrolled, with the keyboard too.
    const said = element("div", { class: "said", role: "status", tabindex: "0" });
    const after = element("div");
    const buttons = element("div", { class: "row" });
    const call = button(this.t("palette.call"), "submit");
    const close = button(this.t("palette.close"));
    close.addEventListener("click", () => this.close());
    buttons.append(call, close);
    form.append(field.element, buttons);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.call({ tool, field, said, after, call });
    });
    this.panel.replaceChildren(title, about, toggled, form, said, after);
    (field.control.matches("input, select, textarea, button") ? field.control : call).focus();
  }

  private async turn(tool: Found, toggle: HTMLInputElement): Promise<void> {
    const answer = await this.ask("PATCH", pathOf(tool), { isEnabled: toggle.checked });
    if (answer.ok) return;
    toggle.checked = !toggle.checked;
    this.complain(answer.detail);
  }

  private async call(asked: Asked): Promise<void> {
    const { field, said, after } = asked;
    const read = field.read();
    for (const wrong of this.panel.querySelectorAll("[aria-invalid]")) wrong.removeAttribute("aria-invalid");
    after.replaceChildren();
    if ("problem" in read) {
      said.textContent = read.problem;
      read.at.setAttribute("aria-invalid", "true");
      return read.at.focus();
    }
    await this.send(asked, ("value" in read ? read.value : {}) as Record<string, unknown>);
  }

  private async send(asked: Asked, args: Record<string, unknown>, confirmation?: string): Promise<void> {
    const { tool, said, after, call } = asked;
    call.disabled = true;
    const answer = await this.ask("POST", `${pathOf(tool)}/invoke`, { args, ...(confirmation && { confirmation }) });
    call.disabled = false;
    // A later result replaces an earlier one.
    after.replaceChildren();
    const result = (answer.body ?? {}) as Outcome;
    if (!answer.ok || !result.ok) {
      const token = result.error?.type === "CONFIRMATION_REQUIRED" ? result.error.details?.confirmation : undefined;
      if (typeof token === "string") return this.question(asked, args, token, result.error?.details?.reason ?? "");
      said.textContent = this.t("palette.failed", { reason: result.error?.message ?? answer.detail });
      return;
    }
    const text = typeof result.value === "string" ? result.value : JSON.stringify(result.value, null, 2);
    said.textContent = text;
    const insert = button(this.t("palette.insert"));
    insert.addEventListener("click", () => {
      this.dispatchEvent(new CustomEvent("toolcrib-insert", { bubbles: true, composed: true, detail: { tool: tool.slug, arguments: args, result: result.value, text } }));
      this.close();
    });
    after.append(insert);
    insert.focus();
  }

  // Show exactly what would run; the token that confirms it is good for this call with these arguments, once.
  private question(asked: Asked, args: Record<string, unknown>, token: string, reason: string): void {
    const { tool, said, after } = asked;
    const box = element("div", { class: "question", role: "alertdialog", "aria-labelledby": "question-title", "aria-describedby": "question-text" });
    const title = element("strong", { id: "question-title" });
    title.textContent = this.t("palette.confirm.title");
    const text = element("div", { id: "question-text", class: "said", tabindex: "0" });
    const name = `${tool.bundleSlug ? `${tool.bundleSlug}/` : ""}${tool.slug}@${tool.version}`;
    text.textContent = [reason, this.t("palette.confirm.text"), this.t("palette.confirm.tool", { name }), this.t("palette.confirm.arguments"), JSON.stringify(args, null, 2)].filter(Boolean).join("\n");
    const [yes, no] = [button(this.t("palette.confirm.yes")), button(this.t("palette.confirm.no"))];
    const refuse = () => {
      after.replaceChildren();
      said.textContent = this.t("palette.confirm.refused");
      asked.call.focus();
    };
    yes.addEventListener("click", () => {
      after.replaceChildren();
      void this.send(asked, args, token);
    });
    no.addEventListener("click", refuse);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") refuse();
    });
    const buttons = element("div", { class: "row" });
    buttons.append(yes, no);
    box.append(title, text, buttons);
    said.textContent = "";
    after.append(box);
    no.focus();
  }

  private close(): void {
    this.show([]);
    this.panel.replaceChildren();
    this.input.value = "";
    this.input.focus();
  }

  private complain(reason: string): void {
    const said = element("p", { role: "alert", class: "said" });
    said.textContent = this.t("palette.failed", { reason });
    this.panel.replaceChildren(said);
  }

  private async ask(method: string, path: string, body?: unknown): Promise<{ ok: boolean; body: unknown; detail: string }> {
    const token = this.getAttribute("token");
    const headers: Record<string, string> = {};
    if (token) headers.authorization = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    if (method !== "GET" && !token) headers["x-toolcrib-csrf"] = await this.pageValue();
    try {
      const answer = await fetch(new URL(path, this.getAttribute("server") ?? location.origin), { method, headers, credentials: "same-origin", ...(body !== undefined && { body: JSON.stringify(body) }) });
      const read: unknown = await answer.json().catch(() => null);
      const detail = typeof read === "object" && read !== null && "detail" in read ? String(read.detail) : `${answer.status} ${answer.statusText}`;
      return { ok: answer.ok, body: read, detail };
    } catch {
      return { ok: false, body: null, detail: this.t("palette.unreachable") };
    }
  }

  // On a page of the server itself, changes carry the value of the signed-in session.
  private async pageValue(): Promise<string> {
    if (this.csrf === null) {
      const answer = await this.ask("GET", "/ui/session");
      this.csrf = answer.ok ? String((answer.body as { csrf?: string }).csrf ?? "") : "";
    }
    return this.csrf;
  }
}

function pathOf(tool: Found): string {
  return `/tools/bundles/${encodeURIComponent(tool.bundleID)}/tools/${encodeURIComponent(tool.slug)}/version/${encodeURIComponent(tool.version)}`;
}

if (!customElements.get("toolcrib-palette")) customElements.define("toolcrib-palette", ToolcribPalette);
