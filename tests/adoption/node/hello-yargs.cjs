const argv = require('yargs')
  .usage('$0 --city <city>')
  .option('city', { describe: 'City', type: 'string', demandOption: true })
  .option('days', { alias: 'd', type: 'number', default: 1 })
  .argv;
console.log(argv.city, argv.days);
