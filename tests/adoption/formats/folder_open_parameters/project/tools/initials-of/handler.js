export async function execute({ args }) {
  return { ok: true, data: args.name.split(' ').map((w) => w[0]).join('') };
}
