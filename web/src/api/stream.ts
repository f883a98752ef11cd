// A call that is heard while it runs: events of the server, read off the body as it comes.
import { asFailure, type CallResult, call, Refusal, refusalOf, type WantedCall } from "./client";
import { EventCutter } from "./events";
import { t } from "../messages";

export interface Progress {
  progress: number;
  total: number | null;
  message: string;
}

export type Told = { name: "progress"; data: Progress } | { name: "chunk"; data: { number: number; value: unknown } };

// Make a call; `hear` is told what comes before the result. A call that is refused has its result at once.
export async function streamCall(wanted: WantedCall, signal: AbortSignal, hear: (told: Told) => void): Promise<CallResult> {
  const answer = await call(wanted, signal);
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
    const document: unknown = await answer.json().catch(() => null);
    const result = answer.ok ? (document as CallResult) : asFailure(document);
    if (!result) throw refusalOf(document, answer);
    return result;
  }
  try {
    return await listen(answer, hear);
  } catch (problem) {
    throw signal.aborted ? problem : new Refusal({ detail: t("tool.brokeOff") });
  }
}

async function listen(answer: Response, hear: (told: Told) => void): Promise<CallResult> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const cutter = new EventCutter();
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) throw new Error("the stream ended without a result");
    for (const { name, data } of cutter.feed(value)) {
      if (name === "result") return JSON.parse(data) as CallResult;
      if (name === "progress" || name === "chunk") hear({ name, data: JSON.parse(data) } as Told);
    }
  }
}
