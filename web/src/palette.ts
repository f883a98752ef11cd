// <toolcrib-palette>: type +name in any chat page to find a tool, fill in its arguments, call it, and insert the result.
//
//   <script type="module" src="https://your-server/ui/palette.js"></script>
//   <toolcrib-palette server="https://your-server" token="…"></toolcrib-palette>
//
// It sends the event "toolcrib-insert" with { tool, arguments, result, text }. Every text is shown as text.
import { fieldsOf, readFields, type Field } from "./palette-fields";

interface Found {
  slug: string;
  version: string;
  bundleID: string;
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
[role=listbox] { list-style: none; margin: .25rem 0; padding: 0; max-height: 16rem; overflow: auto; border: 1px solid #767676; border-radius: .3rem; }
[role=listbox]:empty { display: none; }
[role=option] { padding: .4rem .6rem; cursor: pointer; }
[role=option][aria-selected=true] { background: Highlight; color: HighlightText; }
label { display: block; margin: .5rem 0; }
.row { display: flex; gap: .5rem; align-items: center; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 16rem; overflow: auto; }
`;

const TEXTS = {
  label: "Type + and the name of a tool",
  call: "Call",
  insert: "Insert the result",
  cancel: "Close",
  enable: "Enabled",
  failed: "This did not work: ",
};

export class ToolcribPalette extends HTMLElement {
  static observedAttributes = ["server", "token"];

  private readonly root = this.attachShadow({ mode: "open" });
  private readonly input = element("input", { type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", "aria-label": TEXTS.label, placeholder: "+" });
  private readonly list = element("ul", { id: "found", role: "listbox", "aria-label": TEXTS.label });
  private readonly panel = element("div", {});
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
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
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
        option.textContent = `${tool.slug} – ${tool.effectiveEnabled ? (tool.description ?? "") : tool.disabledReason}`;
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
    const title = element("strong", {});
    title.textContent = tool.displayName || tool.slug;
    const about = element("p", {});
    about.textContent = tool.description ?? "";
    const fields = fieldsOf(tool.argSchema ?? {});
    const form = element("form", {});
    const toggle = element("input", { type: "checkbox" });
    toggle.checked = tool.isEnabled;
    toggle.addEventListener("change", () => void this.turn(tool, toggle));
    const toggled = element("label", { class: "row" });
    toggled.append(toggle, TEXTS.enable);
    toggle.style.width = "auto";
    const said = element("div", { class: "said", role: "status" });
    const buttons = element("div", { class: "row" });
    const call = button(TEXTS.call, "submit");
    const close = button(TEXTS.cancel, "button");
    close.addEventListener("click", () => this.close());
    buttons.append(call, close);
    form.append(...fields.map((field) => field.label), buttons);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.call(tool, fields, said, call);
    });
    this.panel.replaceChildren(title, about, toggled, form, said);
    (fields[0]?.control ?? call).focus();
  }

  private async turn(tool: Found, toggle: HTMLInputElement): Promise<void> {
    const answer = await this.ask("PATCH", pathOf(tool), { isEnabled: toggle.checked });
    if (answer.ok) return;
    toggle.checked = !toggle.checked;
    this.complain(answer.detail);
  }

  private async call(tool: Found, fields: Field[], said: HTMLElement, button_: HTMLButtonElement): Promise<void> {
    const read = readFields(fields);
    if ("problem" in read) {
      said.textContent = read.problem;
      return;
    }
    button_.disabled = true;
    // A later result replaces an earlier one.
    said.nextElementSibling?.remove();
    const answer = await this.ask("POST", `${pathOf(tool)}/invoke`, { args: read.values });
    button_.disabled = false;
    const result = answer.body as { ok?: boolean; value?: unknown; error?: { message: string } };
    if (!answer.ok || !result.ok) {
      said.textContent = TEXTS.failed + (result?.error?.message ?? answer.detail);
      return;
    }
    const text = typeof result.value === "string" ? result.value : JSON.stringify(result.value, null, 2);
    said.textContent = text;
    const insert = button(TEXTS.insert, "button");
    insert.addEventListener("click", () => {
      this.dispatchEvent(new CustomEvent("toolcrib-insert", { bubbles: true, composed: true, detail: { tool: tool.slug, arguments: read.values, result: result.value, text } }));
      this.close();
    });
    said.after(insert);
    insert.focus();
  }

  private close(): void {
    this.show([]);
    this.panel.replaceChildren();
    this.input.value = "";
    this.input.focus();
  }

  private complain(reason: string): void {
    const said = element("p", { role: "alert", class: "said" });
    said.textContent = TEXTS.failed + reason;
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
      return { ok: false, body: null, detail: "the server cannot be reached" };
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

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, attributes: Record<string, string>): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function button(text: string, type: "submit" | "button"): HTMLButtonElement {
  const made = element("button", { type });
  made.textContent = text;
  return made;
}

if (!customElements.get("toolcrib-palette")) customElements.define("toolcrib-palette", ToolcribPalette);
