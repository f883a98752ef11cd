/**
 * ISO calendar week of a date.
 * @param {string} isoDate date as YYYY-MM-DD
 * @param {boolean} [withYear=false] give the year as well
 * @returns {number|string}
 */
export function main(isoDate, withYear = false) {
  const day = new Date(`${isoDate}T00:00:00Z`);
  if (Number.isNaN(day.getTime())) {
    throw new Error(`not a date: ${isoDate}`);
  }
  const thursday = new Date(day);
  thursday.setUTCDate(day.getUTCDate() + 4 - (day.getUTCDay() || 7));
  const year = thursday.getUTCFullYear();
  const week = Math.ceil(((thursday - Date.UTC(year, 0, 1)) / 86400000 + 1) / 7);
  return withYear ? `${year}-W${String(week).padStart(2, '0')}` : week;
}
