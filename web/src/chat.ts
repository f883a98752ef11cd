// A chat page with the palette in it; its model is a script, so it works offline.
import "./chat.css";
import "./palette";

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

document.querySelector("toolcrib-palette")?.addEventListener("toolcrib-insert", (event) => {
  const { tool, text } = (event as CustomEvent<{ tool: string; text: string }>).detail;
  message.value += `${message.value ? "\n" : ""}[${tool}] ${text}`;
  message.focus();
});

document.getElementById("say")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = message.value.trim();
  if (!text) return;
  say("You", text);
  say("Model", `You said ${text.length} characters. ${/\[([^\]]+)\]/.exec(text) ? "I have read the result of the tool." : "Type + above to give me the result of a tool."}`);
  message.value = "";
});
