import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';

const argv = yargs(hideBin(process.argv))
  .option('width', { type: 'number', demandOption: true, describe: 'width in pixels' })
  .option('height', { type: 'number', describe: 'height in pixels' })
  .option('mode', { choices: ['fit', 'fill'], default: 'fit' })
  .strict()
  .parse();

const height = argv.height ?? Math.round((argv.width * 9) / 16);
console.log(JSON.stringify({ width: argv.width, height, mode: argv.mode }));
