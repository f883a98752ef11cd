/**
 * Stock of an item, asked of two shelves at once.
 * @param {object} query
 * @param {string} query.item
 * @param {number} [query.shelves=2]
 */
export default async ({ item, shelves = 2 }) => {
  const ask = async (n) => {
    await new Promise((done) => setTimeout(done, n));
    if (item === 'ghost' && n === 2) throw new Error(`shelf ${n} has no ${item}`);
    return n * item.length;
  };
  const found = await Promise.all(Array.from({ length: shelves }, (_, i) => ask(i + 1)));
  return found.reduce((a, b) => a + b, 0);
};
