// validates a plate number; leaves with exit code 3 if it is bad

function validate(plate, country = 'DE') {
  console.error('checking', plate);
  const rules = { DE: /^[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} [1-9]\d{0,3}$/, AT: /^[A-Z]{1,2}-\d{3,5}[A-Z]{1,3}$/ };
  if (!rules[country]) {
    console.error(`no rule for ${country}`);
    process.exit(3);
  }
  return rules[country].test(plate);
}

module.exports = validate;
