// The steps as a graph, the equal of the ordered list: everything can be done by mouse, by touch and by keyboard alone.
//
// Each step is one tab stop; arrow keys go through its slots and outputs. Pressing an output begins a connection, and then only
// the slots that take its value can be reached; Enter connects, Escape gives up. Pressing a slot edits it, Delete frees it.
import { Button, Group, Text, useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import "@xyflow/react/dist/base.css";
import {
  Background, BaseEdge, type Connection, Controls, type Edge, EdgeLabelRenderer, type EdgeProps, getBezierPath, Handle, type Node, type NodeProps, Position,
  ReactFlow, ReactFlowProvider, useNodesState, useReactFlow, useStore, useUpdateNodeInternals,
} from "@xyflow/react";
import { createContext, type FocusEvent, type KeyboardEvent, useContext, useEffect, useId, useMemo, useRef, useState } from "react";
import { t } from "../messages";
import { placeName } from "./http";
import { assign, openParts, type Part, type Recipe, type Step } from "./model";
import { acceptsOf, type Output, outputsOf } from "./offers";
import { nameOf, PartEditor, shown, shownPart } from "./part-editor";
import { StepEditor } from "./step-editor";
import { describe, fits } from "./value-types";

interface Given {
  recipe: Recipe;
  onChange: (recipe: Recipe) => void;
}

// What the steps on the canvas share.
interface Shared extends Given {
  pending: Output | null;
  selected: string | null;
  begin: (output: Output) => void;
  // Whether a press on a slot ended a connection; if not, it opens the editor of the slot.
  finish: (place: number, part: Part) => boolean;
  free: (place: number, part: Part) => void;
  select: (id: string) => void;
}

const SharedContext = createContext<Shared | null>(null);
const useShared = () => useContext(SharedContext) as Shared;

const NARROW = "(max-width: 48em)";
const SHOWN_OUTPUTS = 12;
const WIDTH = 256;
const GAP = 72;
const ROW = 30;

export default function Canvas(given: Given) {
  return <ReactFlowProvider><Graph {...given} /></ReactFlowProvider>;
}

function Graph({ recipe, onChange }: Given) {
  const scheme = useComputedColorScheme("light");
  const isNarrow = useMediaQuery(NARROW, window.matchMedia(NARROW).matches, { getInitialValueInEffect: false });
  const flow = useReactFlow();
  const measureAgain = useUpdateNodeInternals();
  const help = useId();
  const frame = useRef<HTMLDivElement>(null);
  const [begun, setPending] = useState<Output | null>(null);
  const [chosen, choose] = useState<string | null>(null);
  const [said, say] = useState("");
  // The step that a connection begins at, and the one that is edited, may be removed meanwhile.
  const pending = recipe.steps.some((step) => step.id === begun?.step) ? begun : null;
  const selected = recipe.steps.some((step) => step.id === chosen) ? chosen : null;
  const [nodes, setNodes, onNodesChange] = useNodesState<Node>([]);

  // The steps themselves come by the context; a node is only where one stands, and how large it is.
  const order = recipe.steps.map((step) => step.id).join(" ");
  useEffect(() => {
    setNodes((before) => order.split(" ").filter(Boolean).map((id) => before.find((node) => node.id === id) ?? { id, type: "step", position: { x: 0, y: 0 }, data: {} }));
  }, [order, setNodes]);
  const placed = useMemo(() => place(nodes, recipe, isNarrow), [nodes, recipe, isNarrow]);
  const size = { height: isNarrow ? bottom(placed, recipe) + GAP : Math.min(Math.max(bottom(placed, recipe) + GAP, 280), 640) };
  useEffect(() => measureAgain(order.split(" ")), [recipe, order, measureAgain]);
  // The editor beside it takes some of its width.
  const width = useStore((state) => state.width);
  const isMeasured = nodes.length > 0 && nodes.every((node) => node.measured?.height);
  useEffect(() => {
    if (!isMeasured) return;
    if (isNarrow) void flow.setViewport({ x: 16, y: 16, zoom: 1 });
    else void flow.fitView({ maxZoom: 1, minZoom: 0.7, padding: 0.1 });
  }, [isMeasured, order, isNarrow, width, flow]);
  // What was focused in a step that is gone leaves the focus with the first one.
  useEffect(() => {
    if (!chosen || selected) return;
    choose(null);
    frame.current?.querySelector<HTMLElement>("[data-stop]")?.focus();
  }, [chosen, selected]);

  const shared: Shared = {
    recipe, onChange, pending, selected, select: choose,
    begin(output) {
      const slots = slotsFor(recipe, output);
      const from = outputName(recipe, output);
      if (slots.length === 0) return say(t("recipe.canvas.noSlot", { from }));
      setPending(output);
      say(t("recipe.canvas.connecting", { from, count: slots.length }));
      stopOf(frame.current, slots[0] as string)?.focus();
    },
    finish(at, part) {
      if (!pending) return false;
      const step = recipe.steps[at] as Step;
      const slot = slotName(step, part);
      if (!slotsFor(recipe, pending).includes(slotKey(step, part))) {
        say(t("recipe.canvas.refused", { from: outputName(recipe, pending), slot, what: describe(acceptsOf(recipe, step, part)) }));
        return true;
      }
      onChange(assign(recipe, at, part.id, { kind: "step", step: pending.step, path: pending.path }));
      say(t("recipe.canvas.connected", { from: outputName(recipe, pending), slot }));
      setPending(null);
      return true;
    },
    free(at, part) {
      const step = recipe.steps[at] as Step;
      onChange(assign(recipe, at, part.id, { kind: "fixed" }));
      say(t("recipe.canvas.freed", { slot: slotName(step, part) }));
      stopOf(frame.current, slotKey(step, part))?.focus();
    },
  };

  function connect({ source, sourceHandle, target, targetHandle }: Connection) {
    const at = recipe.steps.findIndex((step) => step.id === target);
    const output = outputAt(recipe, source, sourceHandle);
    if (output && targetHandle) onChange(assign(recipe, at, targetHandle, { kind: "step", step: source, path: output.path }));
  }

  function isValid({ source, sourceHandle, target, targetHandle }: Connection | Edge): boolean {
    const output = outputAt(recipe, source, sourceHandle);
    return output !== undefined && slotsFor(recipe, output).includes(`${target} ${targetHandle}`);
  }

  function press(event: KeyboardEvent<HTMLDivElement>) {
    // Keys that are pressed in the editor of a slot, which lies outside the frame, are not ours.
    if (!frame.current?.contains(event.target as HTMLElement)) return;
    if (event.key === "Escape" && pending) {
      setPending(null);
      say(t("recipe.canvas.cancelled"));
      return;
    }
    const next = neighbour(frame.current, event.target as HTMLElement, event.key, pending !== null);
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  // What has the focus is brought into view; the browser would scroll the frame, and not the graph in it.
  function reveal(event: FocusEvent<HTMLDivElement>) {
    const around = frame.current?.getBoundingClientRect();
    if (!around || isNarrow || !frame.current?.contains(event.target)) return;
    const box = event.target.getBoundingClientRect();
    const by = (low: number, high: number, from: number, to: number) => (low < from ? from - low + 16 : high > to ? to - high - 16 : 0);
    const x = by(box.left, box.right, around.left, around.right);
    const y = by(box.top, box.bottom, around.top, around.bottom);
    if (x === 0 && y === 0) return;
    const view = flow.getViewport();
    void flow.setViewport({ ...view, x: view.x + x, y: view.y + y });
  }

  const editor = recipe.steps.findIndex((step) => step.id === selected);
  return (
    <SharedContext value={shared}>
      <Text size="sm" id={help}>{t("recipe.canvas.help")}</Text>
      <Text size="sm" role="status" fw={600}>{said}</Text>
      <div className="canvas" data-editing={selected !== null}>
        <div ref={frame} className="canvas-frame" style={size} onKeyDown={press} onFocus={reveal}>
          <ReactFlow
            aria-label={t("recipe.canvas")}
            aria-describedby={help}
            nodes={placed}
            edges={toEdges(recipe)}
            nodeTypes={NODES}
            edgeTypes={EDGES}
            onNodesChange={onNodesChange}
            onConnect={connect}
            isValidConnection={isValid}
            colorMode={scheme}
            nodesDraggable={false}
            nodesFocusable={false}
            edgesFocusable={false}
            elementsSelectable={false}
            disableKeyboardA11y
            deleteKeyCode={null}
            panOnDrag={!isNarrow}
            preventScrolling={false}
            zoomOnScroll={false}
            zoomOnDoubleClick={false}
            zoomOnPinch={!isNarrow}
            minZoom={0.3}
            ariaLabelConfig={{ "controls.ariaLabel": t("recipe.canvas.view"), "controls.zoomIn.ariaLabel": t("recipe.canvas.zoomIn"), "controls.zoomOut.ariaLabel": t("recipe.canvas.zoomOut"), "controls.fitView.ariaLabel": t("recipe.canvas.fit") }}
          >
            <Background />
            {!isNarrow && <Controls showInteractive={false} fitViewOptions={{ maxZoom: 1 }} />}
          </ReactFlow>
        </div>
        {editor >= 0 && <Beside recipe={recipe} place={editor} onChange={onChange} close={() => { stopOf(frame.current, selected as string)?.focus(); choose(null); }} />}
      </div>
    </SharedContext>
  );
}

// The editor of the step that was chosen, beside the graph.
function Beside({ recipe, place, onChange, close }: Given & { place: number; close: () => void }) {
  const box = useRef<HTMLElement>(null);
  const step = recipe.steps[place] as Step;
  useEffect(() => box.current?.focus(), [step.id]);
  return (
    <section ref={box} tabIndex={-1} id="step-editor" className="canvas-editor" aria-label={t("recipe.canvas.editing", { name: step.name })}>
      <StepEditor key={step.id} recipe={recipe} place={place} onChange={onChange} />
      <Group mt="xs"><Button size="compact-sm" variant="default" onClick={close}>{t("recipe.canvas.close")}</Button></Group>
    </section>
  );
}

// The step of a node.
function StepNode({ id }: NodeProps) {
  const { recipe, onChange, pending, selected, begin, finish, free, select } = useShared();
  const place = recipe.steps.findIndex((step) => step.id === id);
  const step = recipe.steps[place];
  if (!step) return null;
  const open = pending ? new Set(slotsFor(recipe, pending)) : null;
  const { outputs, more } = shownOutputs(recipe, step);
  return (
    <div className="step-node nopan" role="group" aria-label={t("recipe.canvas.step", { place: place + 1, count: recipe.steps.length, name: step.name })}>
      <Button
        fullWidth size="compact-sm" variant={selected === id ? "filled" : "default"} data-stop={id}
        aria-label={t("recipe.canvas.edit", { place: place + 1, name: step.name })} aria-expanded={selected === id} aria-controls={selected === id ? "step-editor" : undefined}
        onClick={() => select(id)}
      >
        {place + 1}. {step.name}
      </Button>
      {openParts(step).map((part) => {
        const slot = slotKey(step, part);
        const canTake = open?.has(slot) ?? true;
        const isTaken = part.source.kind === "step";
        return (
          <div key={part.id} className="step-port">
            <Handle id={part.id} type="target" position={Position.Left} aria-hidden />
            <PartEditor
              recipe={recipe} place={place} part={part} onChange={onChange} onPress={() => finish(place, part)}
              button={{
                fullWidth: true, size: "compact-sm", justify: "start", "data-stop": slot, tabIndex: -1,
                ...(open && (canTake ? { "data-fits": true, variant: "outline" } : { "aria-disabled": true, opacity: 0.6 })),
                "aria-label": t(isTaken ? "recipe.canvas.slot.taken" : "recipe.canvas.slot", { slot: slotName(step, part), value: shownPart(recipe, part) }),
                onKeyDown: (event) => {
                  if (isTaken && (event.key === "Delete" || event.key === "Backspace")) free(place, part);
                },
              }}
            />
          </div>
        );
      })}
      {outputs.length > 0 && <Text size="xs" mt={4}>{t("recipe.canvas.gives")}</Text>}
      {outputs.map((output) => {
        const key = JSON.stringify(output.path);
        const name = output.path.join(".") || t("recipe.output.whole");
        return (
          <div key={key} className="step-port step-output">
            <Button
              fullWidth size="compact-sm" justify="end" variant={isSame(output, pending) ? "filled" : "default"} tabIndex={-1} data-stop={`${id} ${key}`}
              aria-pressed={isSame(output, pending)} aria-label={t("recipe.canvas.output", { step: step.name, name, value: shown(output.value) })} onClick={() => begin(output)}
            >
              <Text span truncate="end">{name}</Text>
            </Button>
            <Handle id={key} type="source" position={Position.Right} aria-hidden />
          </div>
        );
      })}
      {more > 0 && <Text size="xs">{t("recipe.canvas.more", { count: more })}</Text>}
    </div>
  );
}

// A connection, with a button that removes it.
function StepEdge({ source, target, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, targetHandleId, sourceHandleId }: EdgeProps) {
  const { recipe, free } = useShared();
  const [path, middleX, middleY] = getBezierPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition });
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const place = recipe.steps.findIndex((one) => one.id === target);
  const step = recipe.steps[place];
  const part = step?.parts.find((one) => one.id === targetHandleId);
  if (!step || !part) return null;
  const from = [nameOf(recipe, source), ...(JSON.parse(sourceHandleId ?? "[]") as string[])].join(".");
  // Where steps stand below one another, the middle of the line lies behind them.
  const [x, y] = isNarrow ? [targetX + WIDTH - 36, targetY] : [middleX, middleY];
  return (
    <>
      <BaseEdge path={path} />
      <EdgeLabelRenderer>
        <button
          type="button" className="edge-remove nopan" style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
          aria-label={t("recipe.canvas.remove", { from, slot: slotName(step, part) })} onClick={() => free(place, part)}
        >
          ✕
        </button>
      </EdgeLabelRenderer>
    </>
  );
}

const NODES = { step: StepNode };
const EDGES = { step: StepEdge };

// Beside one another where there is room, and one below the other on a narrow screen.
function place(nodes: Node[], recipe: Recipe, isNarrow: boolean): Node[] {
  let y = 0;
  return nodes.map((node, at) => {
    const position = isNarrow ? { x: 16, y } : { x: at * (WIDTH + GAP), y: 0 };
    y += heightOf(node, recipe) + GAP / 2;
    return { ...node, position };
  });
}

function bottom(nodes: Node[], recipe: Recipe): number {
  return nodes.reduce((lowest, node) => Math.max(lowest, node.position.y + heightOf(node, recipe)), 0);
}

// Before it was measured, about as high as its rows.
function heightOf(node: Node, recipe: Recipe): number {
  const step = recipe.steps.find((one) => one.id === node.id);
  return node.measured?.height ?? ROW * (2 + (step ? openParts(step).length + shownOutputs(recipe, step).outputs.length : 0));
}

// The single values first, then lists and objects; what is connected is always there.
function shownOutputs(recipe: Recipe, step: Step): { outputs: Output[]; more: number } {
  const all = outputsOf(step).sort((one, other) => Number(typeof one.value === "object") - Number(typeof other.value === "object"));
  const used = new Set(recipe.steps.flatMap((one) => one.parts.flatMap(({ source }) => (source.kind === "step" && source.step === step.id ? [JSON.stringify(source.path)] : []))));
  const outputs = all.filter((one, at) => at < SHOWN_OUTPUTS || used.has(JSON.stringify(one.path)));
  return { outputs, more: all.length - outputs.length };
}

function toEdges(recipe: Recipe): Edge[] {
  return recipe.steps.flatMap((step) =>
    openParts(step).flatMap(({ id, source }) =>
      source.kind === "step"
        ? [{ id: `${source.step} ${step.id} ${id}`, type: "step", source: source.step, sourceHandle: JSON.stringify(source.path), target: step.id, targetHandle: id }]
        : [],
    ),
  );
}

// The slots of later steps that take a value.
function slotsFor(recipe: Recipe, output: Output): string[] {
  const from = recipe.steps.findIndex((step) => step.id === output.step);
  return recipe.steps.slice(from + 1).flatMap((step) =>
    openParts(step).filter((part) => fits(acceptsOf(recipe, step, part), output.value)).map((part) => slotKey(step, part)),
  );
}

function outputAt(recipe: Recipe, id: string, handle: string | null | undefined): Output | undefined {
  const step = recipe.steps.find((one) => one.id === id);
  return step && handle ? outputsOf(step).find((one) => JSON.stringify(one.path) === handle) : undefined;
}

function outputName(recipe: Recipe, output: Output): string {
  return [nameOf(recipe, output.step), ...output.path].join(".");
}

function slotKey(step: Step, part: Part): string {
  return `${step.id} ${part.id}`;
}

// A part of an address has no name of its own, only a place.
function slotName(step: Step, part: Part): string {
  return t("recipe.canvas.slotName", { step: step.name, slot: part.place === "path" ? `${placeName(part.place)} ${part.label}` : part.label });
}

function isSame(one: Output, other: Output | null): boolean {
  return other !== null && one.step === other.step && JSON.stringify(one.path) === JSON.stringify(other.path);
}

function stopOf(frame: HTMLElement | null, key: string): HTMLElement | null {
  return [...(frame?.querySelectorAll<HTMLElement>("[data-stop]") ?? [])].find((one) => one.dataset.stop === key) ?? null;
}

// Where an arrow key leads: up and down within a step, left and right to the step before and behind. While a connection is made,
// all arrows go through the slots that take the value.
function neighbour(frame: HTMLElement, from: HTMLElement, key: string, isConnecting: boolean): HTMLElement | null {
  const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
  const stop = from.closest<HTMLElement>("[data-stop]");
  const node = from.closest<HTMLElement>(".react-flow__node");
  if (!by || !stop || !node) return null;
  const isAcross = key === "ArrowLeft" || key === "ArrowRight";
  const nodes = [...frame.querySelectorAll<HTMLElement>(".react-flow__node")];
  const stops = isConnecting ? [...frame.querySelectorAll<HTMLElement>("[data-fits]")] : [...node.querySelectorAll<HTMLElement>("[data-stop]")];
  if (isAcross && !isConnecting) return nodes[nodes.indexOf(node) + by]?.querySelector<HTMLElement>("[data-stop]") ?? null;
  return stops[(stops.indexOf(stop) + by + stops.length) % stops.length] ?? null;
}
