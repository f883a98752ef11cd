// The steps as a graph: an output of one is connected to a part of a later one. The ordered list is its equal for a keyboard.
import { useComputedColorScheme } from "@mantine/core";
import "@xyflow/react/dist/base.css";
import { Background, type Connection, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import { t } from "../messages";
import { assign, outputsBefore, type Path, type Recipe } from "./model";

interface StepData extends Record<string, unknown> {
  title: string;
  parts: { id: string; text: string }[];
  outputs: { id: string; text: string }[];
}

const SHOWN_OUTPUTS = 12;

export default function Canvas({ recipe, onChange }: { recipe: Recipe; onChange: (recipe: Recipe) => void }) {
  const scheme = useComputedColorScheme("light");
  const nodes = useMemo(() => recipe.steps.map((_, place) => toNode(recipe, place)), [recipe]);
  const edges = useMemo(() => toEdges(recipe), [recipe]);

  function connect({ source, sourceHandle, target, targetHandle }: Connection) {
    const from = recipe.steps.findIndex((step) => step.name === source);
    const to = recipe.steps.findIndex((step) => step.name === target);
    if (from < 0 || from >= to || !sourceHandle || !targetHandle) return;
    onChange(assign(recipe, to, targetHandle, { kind: "step", step: source, path: JSON.parse(sourceHandle) as Path }));
  }

  return (
    <div style={{ height: "28rem" }} aria-label={t("recipe.canvas")} role="application">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={types}
        onConnect={connect}
        isValidConnection={(connection) => recipe.steps.findIndex((step) => step.name === connection.source) < recipe.steps.findIndex((step) => step.name === connection.target)}
        onEdgesDelete={(gone) => onChange(gone.reduce((now, edge) => disconnect(now, edge), recipe))}
        colorMode={scheme}
        fitView
      >
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

function disconnect(recipe: Recipe, edge: Edge): Recipe {
  const to = recipe.steps.findIndex((step) => step.name === edge.target);
  return to < 0 || !edge.targetHandle ? recipe : assign(recipe, to, edge.targetHandle, { kind: "fixed" });
}

function toNode(recipe: Recipe, place: number): Node<StepData> {
  const step = recipe.steps[place] as Recipe["steps"][number];
  const after = outputsBefore({ ...recipe, steps: [step] }, 1).slice(0, SHOWN_OUTPUTS);
  return {
    id: step.name,
    type: "step",
    position: { x: place * 320, y: 0 },
    data: {
      title: `${place + 1}. ${step.name}`,
      parts: step.parts.map((part) => ({ id: part.id, text: `${part.place === "path" ? "/" : ""}${part.label}` })),
      outputs: after.map(({ path }) => ({ id: JSON.stringify(path), text: path.join(".") })),
    },
  };
}

function toEdges(recipe: Recipe): Edge[] {
  return recipe.steps.flatMap((step) =>
    step.parts.flatMap(({ id, source }) =>
      source.kind === "step"
        ? [{ id: `${source.step} ${step.name} ${id}`, source: source.step, sourceHandle: JSON.stringify(source.path), target: step.name, targetHandle: id }]
        : [],
    ),
  );
}

function StepNode({ data }: NodeProps<Node<StepData>>) {
  return (
    <div className="step-node">
      <strong>{data.title}</strong>
      {data.parts.map((part) => (
        <div key={part.id} className="step-port">
          <Handle id={part.id} type="target" position={Position.Left} />
          {part.text}
        </div>
      ))}
      {data.outputs.map((output) => (
        <div key={output.id} className="step-port step-output">
          {output.text}
          <Handle id={output.id} type="source" position={Position.Right} />
        </div>
      ))}
    </div>
  );
}

const types = { step: StepNode };
