#!/usr/bin/env node
const { Command } = require('commander');

const program = new Command();

program
  .name('todo')
  .description('Tell what is to be done')
  .argument('<project>', 'name of the project')
  .option('-l, --limit <n>', 'at most that many', (v) => parseInt(v, 10), 5)
  .option('--done', 'show what is done')
  .action((project, options) => {
    const items = ['plan', 'build', 'test'].slice(0, options.limit);
    console.log(`${project}: ${items.join(', ')}${options.done ? ' (done)' : ''}`);
  });

program.parse();
