// The kinds of steps. HTTP requests are the first; another kind is another entry here and another member of Run.
import { HTTP, type HttpRun } from "./http";
import type { Accepts } from "./value-types";
import type { Part, Step } from "./model";

export type Run = HttpRun;

export interface StepKind {
  // The places of its parts, in the order that they are shown.
  places: readonly string[];
  // Where and how it runs, in a line.
  summary: (step: Step) => string;
  // What a part takes from elsewhere.
  accepts: (step: Step, part: Part) => Accepts;
  // What it gives in its example; undefined without one.
  outcome: (step: Step) => unknown;
  // As its document says it; `slot` writes a value with its source.
  write: (step: Step, slot: (part: Part) => string) => Record<string, unknown>;
  // It without a part; null for a part that must stay.
  remove: (step: Step, part: Part) => Step | null;
  // What is missing before it can run.
  problems: (step: Step) => string[];
}

export const KINDS: Record<Run["kind"], StepKind> = { http: HTTP };
