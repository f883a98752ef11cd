// looks up the city of an area code, for the call log

const CODES = { '030': 'Berlin', '040': 'Hamburg', '089': 'München' };

module.exports = function areaCode(number, fallback = 'unknown') {
  const digits = String(number).replace(/[^0-9]/g, '');
  if (digits.length < 3) {
    throw new Error(`too short: ${number}`);
  }
  return CODES[digits.slice(0, 3)] || fallback;
};
