// Events of a server, cut out of the text that comes.
import { Refusal } from "./client";
import { t } from "../messages";

const MAX_EVENT = 64_000_000;

// Cuts text into events, however it comes; comments and events without data are none.
export class EventCutter {
  #rest = "";

  feed(text: string): { name: string; data: string }[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    if (this.#rest.length > MAX_EVENT) throw new Refusal({ detail: t("tool.brokeOff") });
    return blocks.flatMap((block) => {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
      const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim() ?? "message";
      return data.length ? [{ name, data: data.join("\n") }] : [];
    });
  }
}
