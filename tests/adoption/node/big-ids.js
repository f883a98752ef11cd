// Ids of our message queue are 64 bit; JavaScript numbers are not enough.

/**
 * Time and worker of a message id.
 * @param {string} id the id in decimal
 * @returns {{ms: bigint, worker: number}}
 */
function decode(id) {
  if (!/^\d+$/.test(id)) throw new SyntaxError(`not an id: ${id}`);
  const n = BigInt(id);
  return { ms: n >> 22n, worker: Number((n >> 12n) & 1023n) };
}

module.exports = { decode };
