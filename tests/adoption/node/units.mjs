/**
 * Celsius to Fahrenheit.
 * @param {number} celsius degrees
 * @returns {number}
 */
export function toFahrenheit(celsius) {
  return celsius * 9 / 5 + 32;
}

/**
 * Kilometres to miles.
 * @param {number} km distance
 * @param {number} [digits=2] digits
 */
export const toMiles = (km, digits = 2) => Number((km * 0.621371).toFixed(digits));

export const VERSION = '1.0';
