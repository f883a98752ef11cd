// Runs a file as the CommonJS program that it is, whatever the package around it says about its files.
"use strict";

const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");

const file = process.argv[2];
process.argv.splice(1, 2, file);

const program = new Module(file, null);
program.id = ".";
program.filename = file;
program.paths = Module._nodeModulePaths(path.dirname(file));
process.mainModule = program;
Module._cache[file] = program;
program._compile(fs.readFileSync(file, "utf8").replace(/^\uFEFF/, ""), file);
program.loaded = true;
