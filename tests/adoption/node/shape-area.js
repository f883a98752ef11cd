/**
 * Areas for the tile shop.
 * @typedef {Object} Shape
 * @property {"circle"|"rect"} kind
 * @property {number} [radius]
 * @property {number} [width]
 * @property {number} [height]
 */

/**
 * Area of shapes, with waste added.
 * @param {Shape[]} shapes
 * @param {number} [waste=10] percent
 * @returns {number}
 */
exports.shapeArea = (shapes, waste = 10) => {
  let area = 0;
  for (const s of shapes) {
    if (s.kind === 'circle') area += Math.PI * s.radius ** 2;
    else if (s.kind === 'rect') area += s.width * s.height;
    else throw new Error('kind is circle or rect');
  }
  console.log('shapes:', shapes.length);
  return Number((area * (1 + waste / 100)).toFixed(3));
};
