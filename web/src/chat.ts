// A chat page with the palette in it; its model is a script, so it works offline.
import "./chat.css";
import { load } from "./language";
import "./palette";
import { type PaletteText, textsWith } from "./palette-messages";

const palette = document.querySelector("toolcrib-palette");
let t = textsWith();

void load().then((texts) => {
  t = textsWith(texts);
  palette?.setAttribute("texts", JSON.stringify(texts));
  for (const part of document.querySelectorAll<HTMLElement>("[data-text]")) part.textContent = t(part.dataset.text as PaletteText);
  for (const part of document.querySelectorAll<HTMLElement>("[data-label]")) part.setAttribute("aria-label", t(part.dataset.label as PaletteText));
  document.title = t("chat.title");
});

const talk = document.getElementById("talk") as HTMLElement;
const message = document.getElementById("message") as HTMLTextAreaElement;

function say(who: string, text: string): void {
  const line = document.createElement("p");
  const name = document.createElement("strong");
  name.textContent = `${who}: `;
  line.append(name, text);
  talk.append(line);
  line.scrollIntoView({ block: "nearest" });
}

palette?.addEventListener("toolcrib-insert", (event) => {
  const { tool, text } = (event as CustomEvent<{ tool: string; text: string }>).detail;
  message.value += (message.value ? "\n" : "") + t("chat.inserted", { tool, text });
  message.focus();
});

document.getElementById("say")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = message.value.trim();
  if (!text) return;
  say(t("chat.you"), text);
  say(t("chat.model"), `${t("chat.said", { count: text.length })} ${t(/\[([^\]]+)\]/.test(text) ? "chat.read" : "chat.hint")}`);
  message.value = "";
});
