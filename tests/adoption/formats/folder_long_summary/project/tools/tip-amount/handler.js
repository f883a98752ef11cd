export async function execute({ args }) {
  return { ok: true, data: { tip: Math.round(args.bill * 10) / 100 } };
}
