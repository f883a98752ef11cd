export async function execute({ args }) {
  const { text, times = 2 } = args;
  return { ok: true, data: { text: text.repeat(times) } };
}
