// Load the code of a tool folder by its own syntax, independent of the surrounding package.json.
"use strict";

const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const url = require("node:url");
const vm = require("node:vm");

const WRAPPED = ["exports", "require", "module", "__filename", "__dirname"];
const COMMONJS_WORDS = /\brequire\s*\(|\bmodule\.exports\b|\bexports\s*[.[]/;

let root; // files below it are loaded by their syntax

// What the file at `file` exports; `folders` are those that belong to it, with their packages.
async function loadHandler(file, { under, folders }) {
  root = under;
  if (syntaxOf(fs.readFileSync(file, "utf8"), file) === "commonjs") {
    if (typeOf(path.dirname(file)) === "module") compileAsCommonJs();
    return require(file);
  }
  loadAsModules(folders);
  return import(url.pathToFileURL(file).href);
}

// Source that does not compile as a function is a module; the rest is decided by its keywords, then by its package.
function syntaxOf(source, file) {
  try {
    vm.compileFunction(source.replace(/^\uFEFF?#!.*/, ""), WRAPPED, { filename: file });
  } catch {
    return "module";
  }
  if (COMMONJS_WORDS.test(source)) return "commonjs";
  return typeOf(path.dirname(file)) === "module" ? "module" : "commonjs";
}

// The type in the nearest readable package.json.
function typeOf(folder) {
  for (;;) {
    try {
      return JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).type;
    } catch (problem) {
      if (problem instanceof SyntaxError) return undefined;
    }
    const above = path.dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
}

function isOurs(file) {
  return file.startsWith(root + path.sep) && file.endsWith(".js") && !file.includes("/node_modules/");
}

function compileAsCommonJs() {
  const compile = Module._extensions[".js"];
  Module._extensions[".js"] = (module, file) => {
    const source = isOurs(file) ? fs.readFileSync(file, "utf8") : "";
    if (!isOurs(file) || syntaxOf(source, file) !== "commonjs") return compile(module, file);
    return module._compile(source.replace(/^\uFEFF/, ""), file, "commonjs");
  };
}

function loadAsModules(folders) {
  if (Module.registerHooks !== undefined) {
    Module.registerHooks({ load });
  } else if (folders.some((folder) => typeOf(folder) === "commonjs")) {
    // These run in a thread of their own, which takes as long to start as all the rest.
    Module.register(url.pathToFileURL(__filename), { data: root });
  }
}

function load(address, context, next) {
  const file = address.startsWith("file:") ? url.fileURLToPath(address) : "";
  if (!isOurs(file)) return next(address, context);
  const source = fs.readFileSync(file, "utf8");
  if (syntaxOf(source, file) !== "module") return next(address, context);
  return { format: "module", source, shortCircuit: true };
}

exports.loadHandler = loadHandler;
// The names under which a hooks thread looks for them.
exports.initialize = (under) => {
  root = under;
};
exports.load = load;
