export async function main({ fail }) {
  if (fail === 'string') throw 'plain text';
  if (fail === 'custom') throw Object.assign(new Error('boom'), { code: 'E_BOOM' });
  if (fail === 'reject') return Promise.reject(new TypeError('rejected'));
  if (fail === 'exit') process.exit(0);
  if (fail === 'cycle') { const a = {}; a.a = a; return a; }
  if (fail === 'fn') return () => 1;
  if (fail === 'nan') return { x: NaN };
  return new Set([1, 2]);
}
