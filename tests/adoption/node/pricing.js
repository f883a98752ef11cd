'use strict';

/**
 * Price of an order.
 *
 * @param {object} order
 * @param {number} order.pieces how many pieces
 * @param {number} order.unitPrice price of one, in euros
 * @param {"none"|"silver"|"gold"} [order.level="none"] level of the customer
 * @returns {{net: number, discount: number}}
 */
function main({ pieces, unitPrice, level = 'none' }) {
  const rates = { none: 0, silver: 0.05, gold: 0.1 };
  if (!(level in rates)) throw new RangeError(`no level ${level}`);
  if (!Number.isInteger(pieces) || pieces < 1) throw new RangeError('pieces must be a whole number from 1');
  const gross = pieces * unitPrice;
  const discount = Math.round(gross * rates[level] * 100) / 100;
  return { net: Math.round((gross - discount) * 100) / 100, discount };
}

exports.main = main;
