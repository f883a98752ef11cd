// several functions; helpers are not exported

const sorted = (xs) => [...xs].sort((a, b) => a - b);

/** @param {number[]} xs */
export function median(xs) {
  if (xs.length === 0) throw new Error('no numbers');
  const s = sorted(xs);
  const mid = s.length >> 1;
  return s.length % 2 ? s[mid] : (s[mid - 1] + s[mid]) / 2;
}

/**
 * @param {number[]} xs
 * @param {number} p from 0 to 100
 */
export const percentile = (xs, p = 95) => {
  if (p < 0 || p > 100) throw new RangeError('p is from 0 to 100');
  const s = sorted(xs);
  return s[Math.max(Math.ceil((p / 100) * s.length) - 1, 0)];
};

export function mean(xs) {
  return xs.reduce((a, b) => a + b, 0) / xs.length;
}
