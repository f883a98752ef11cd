export async function execute({ args }) {
  return { ok: true, data: { id: args.id, sources: [] } };
}
