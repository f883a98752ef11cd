export async function execute({ args }) {
  const part = args.hour < 12 ? 'morning' : args.hour < 18 ? 'afternoon' : 'evening';
  return { ok: true, data: { part } };
}
