// Whether a schema is too large for a form that a person, or a browser, could use.
const MAX_PARTS = 400;
const MAX_DEPTH = 24;

export function isTooLarge(schema: unknown): boolean {
  let parts = 0;
  const waiting: [unknown, number][] = [[schema, 0]];
  while (waiting.length > 0) {
    const [value, depth] = waiting.pop() as [unknown, number];
    if (typeof value !== "object" || value === null) continue;
    parts += 1;
    if (parts > MAX_PARTS || depth > MAX_DEPTH) return true;
    for (const member of Object.values(value)) waiting.push([member, depth + 1]);
  }
  return false;
}
