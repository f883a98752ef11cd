// The texts of the palette and of the sample chat, by id: the part of the catalogue that pages of others load. A page replaces some
// or all of them with the attribute `texts` of the element, which is JSON by these ids.
export const paletteTexts = {
  "palette.label": "Type + and the name of a tool",
  "palette.option": "{name} – {about}",
  "palette.call": "Call",
  "palette.insert": "Insert the result",
  "palette.close": "Close",
  "palette.enabled": "Enabled",
  "palette.failed": "This did not work: {reason}",
  "palette.unreachable": "the server cannot be reached",
  "palette.confirm.title": "This call needs your confirmation",
  "palette.confirm.text": "Exactly this will run:",
  "palette.confirm.tool": "Tool: {name}",
  "palette.confirm.arguments": "Arguments:",
  "palette.confirm.yes": "Run it once",
  "palette.confirm.no": "Do not run it",
  "palette.confirm.refused": "It was not run.",
  "palette.needed": "{name} is needed",
  "palette.notJson": "{name} is not valid JSON",
  "palette.notNumber": "{name} is not a number",
  "palette.twice": "{name} is there twice",
  "palette.json": "{name} (JSON)",
  "palette.json.help": "Anything is allowed here; write it as JSON.",
  "palette.tooMany": "This tool has too many arguments for a form. Write them as JSON.",
  "palette.arguments": "Arguments",
  "palette.add": "Add {name}",
  "palette.addItem": "Add an item to {name}",
  "palette.item": "{name} {number}",
  "palette.remove": "Remove {name}",
  "palette.key": "Name",
  "palette.union": "{name}: which kind?",
  "palette.nothing": "Nothing",
  "palette.yes": "Yes",
  "palette.no": "No",
  "palette.kind.string": "Text",
  "palette.kind.number": "Number",
  "palette.kind.integer": "Whole number",
  "palette.kind.boolean": "Yes or no",
  "palette.kind.array": "List",
  "palette.kind.object": "Object",
  "palette.kind.any": "Anything",
  "chat.title": "A chat with tools",
  "chat.about": "A sample of the palette in a page of your own. The model is scripted: it repeats what it is told.",
  "chat.messages": "Messages",
  "chat.message": "Message",
  "chat.send": "Send",
  "chat.you": "You",
  "chat.model": "Model",
  "chat.inserted": "[{tool}] {text}",
  "chat.said": "You said {count} characters.",
  "chat.read": "I have read the result of the tool.",
  "chat.hint": "Type + above to give me the result of a tool.",
} as const;

export type PaletteText = keyof typeof paletteTexts;
export type Texts = (id: PaletteText, values?: Record<string, string | number>) => string;

// The texts with those of a page instead of ours; what the page leaves out stays.
export function textsWith(own: Partial<Record<string, unknown>> = {}): Texts {
  return (id, values = {}) => {
    const text = typeof own[id] === "string" ? (own[id] as string) : paletteTexts[id];
    return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
  };
}
