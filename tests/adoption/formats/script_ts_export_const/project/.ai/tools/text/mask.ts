export const __version__ = "1.0.0";
export const __tool_type__ = "typescript";
export const __executor_id__ = "node_runtime";
export const __category__ = "text";
export const __tool_description__ = "Mask all but the last characters of a text";

export const config_schema = {
  type: "object",
  properties: {
    text: { type: "string" },
    keep: { type: "integer", minimum: 0, default: 4 },
  },
  required: ["text"],
} as const;

interface Params {
  text: string;
  keep?: number;
}

export default async function execute({ text, keep = 4 }: Params): Promise<string> {
  const hidden = Math.max(0, text.length - keep);
  return "*".repeat(hidden) + text.slice(hidden);
}
