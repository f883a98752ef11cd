const DEFAULTS = { depth: 2 };
export const tools = [];
export async function crawl(start, depth = DEFAULTS.depth, ...rest) {
  return { start, depth, rest };
}
export { crawl as walk };
export default crawl;
