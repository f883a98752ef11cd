const path = require('path');
const fs = require('fs');

// settings of the kiosk, read from the folder of this script
const FILE = path.join(__dirname, 'data', 'kiosk.json');

async function run(args) {
  const { key, fallback = null } = args;
  const settings = JSON.parse(await fs.promises.readFile(FILE, 'utf8'));
  if (process.env.KIOSK_MODE === 'locked') {
    throw new Error('kiosk is locked');
  }
  if (key === undefined) {
    throw new Error('key is required');
  }
  return key in settings ? settings[key] : fallback;
}

module.exports = { run };

if (require.main === module) {
  run({ key: process.argv[2] }).then(console.log);
}
