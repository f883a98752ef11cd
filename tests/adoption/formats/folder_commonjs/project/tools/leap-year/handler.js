async function execute({ args }) {
  const y = args.year;
  return { ok: true, data: { leap: (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0 } };
}

module.exports = { execute };
