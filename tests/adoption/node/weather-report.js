const { program, Option } = require('commander');

program
  .name('weather-report')
  .description('Report the weather')
  .argument('<city>', 'where')
  .argument('[days]', 'how many days', (v) => parseInt(v, 10), 3)
  .option('-u, --units <units>', 'units', 'metric')
  .option('--no-color', 'plain text')
  .addOption(new Option('-s, --size <size>', 'size').choices(['small', 'large']))
  .requiredOption('-k, --key <key>', 'API key')
  .action((city, days, options) => {
    console.log(JSON.stringify({ city, days, ...options }));
  });

program.parse();
