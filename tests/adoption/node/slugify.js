'use strict';

/**
 * Make a slug of a title.
 * @param {string} title - The title.
 * @param {object} [options] - How to.
 * @param {string} [options.separator='-'] - What stands between words.
 * @param {number} [options.max=20] - At most so many letters.
 * @returns {string}
 */
function slugify(title, options = {}) {
  const { separator = '-', max = 20 } = options;
  return title.toLowerCase().split(/\s+/).join(separator).slice(0, max);
}

module.exports = slugify;
