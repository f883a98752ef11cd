// Texts as they are drawn: everything that cannot be seen is written out, so that nothing looks like something else.
import { HIDDEN } from "./hidden";

const PLAIN = /^[\n\t\x20-\x7e]*$/;
const DRAWN = ["children", "title", "alt", "placeholder", "label", "aria-label", "aria-description"] as const;

export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  // A line may end with a carriage return; any other one would hide what stands before it.
  return text.replace(/\r(?!\n)/g, "\\x0d").replace(HIDDEN, (found, hidden?: string) => (hidden === undefined ? found : escape(hidden)));
}

// As Python and the terminal write it.
function escape(letter: string): string {
  const number = letter.codePointAt(0) ?? 0;
  const digits = number.toString(16);
  if (number < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return number < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

function drawn(value: unknown): unknown {
  if (typeof value === "string") return visible(value);
  if (!Array.isArray(value)) return value;
  const shown = value.map(drawn);
  return shown.every((one, place) => one === value[place]) ? value : shown;
}

// The properties of an element of the document with its texts written out; what is typed into a field stays as it is.
export function withVisibleTexts<Given extends object>(type: unknown, given: Given): Given {
  if (typeof type !== "string") return given;
  const changes = DRAWN.flatMap((name) => {
    const value = (given as Record<string, unknown>)[name];
    const shown = drawn(value);
    return shown === value ? [] : [[name, shown]];
  });
  return changes.length > 0 ? { ...given, ...Object.fromEntries(changes) } : given;
}

// The same for what is drawn without React: before the browser shows a text that was added to the place, it is written out.
export function writeOutHidden(place: Node): void {
  new MutationObserver(() => {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode as Text;
      const shown = visible(text.data);
      if (shown !== text.data) text.data = shown;
    }
  }).observe(place, { childList: true, characterData: true, subtree: true });
}
