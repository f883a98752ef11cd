export const __version__ = "1.0.0";
export const __tool_type__ = "javascript";
export const __executor_id__ = "rye/core/runtimes/node_runtime";
export const __category__ = "text";
export const __tool_description__ = "Put an English noun into the plural";

export const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    noun: { type: "string", minLength: 1 },
    count: { type: "integer", default: 2 },
  },
  required: ["noun"],
};

const IRREGULAR = { mouse: "mice", child: "children" };

export async function execute(params) {
  const { noun, count = 2 } = params;
  if (count === 1) return { count, text: `1 ${noun}` };
  const plural = IRREGULAR[noun] ?? (/(s|x|ch)$/.test(noun) ? `${noun}es` : `${noun}s`);
  return { count, text: `${count} ${plural}` };
}
