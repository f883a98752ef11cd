import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { english } from "./src/messages.ts";
import { paletteTexts } from "./src/palette-messages.ts";

// What a translator begins with: every text by its id.
const texts: Plugin = {
  name: "texts",
  apply: "build",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "messages.json", source: `${JSON.stringify({ ...english, ...paletteTexts }, null, 2)}\n` });
  },
};

const at = (path: string) => new URL(path, import.meta.url).pathname;

export default defineConfig({
  base: "./",
  plugins: [react(), texts],
  resolve: {
    alias: [
      { find: /^react\/jsx-(dev-)?runtime$/, replacement: at("./src/jsx-runtime.ts") },
      { find: "jsx-of-react", replacement: at("./node_modules/react/jsx-runtime.js") },
    ],
  },
  build: {
    outDir: "../src/toolcrib/interfaces/web/assets",
    emptyOutDir: true,
    // Files that change get another name, so a browser may keep them for ever; a flat folder is served by one route.
    assetsDir: ".",
    assetsInlineLimit: 0,
    sourcemap: false,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: "index.html", chat: "chat.html", palette: "src/palette.ts" },
      // Other people's pages name the palette, so its name stays.
      output: { entryFileNames: (chunk) => (chunk.name === "palette" ? "palette.js" : "[name]-[hash].js") },
      preserveEntrySignatures: "allow-extension",
      // Named only by a helper of rjsf for its own tests, which is left out; ajv compiles to code, which our policy forbids.
      external: ["@rjsf/validator-ajv8"],
    },
  },
  test: { environment: "jsdom", globals: true, setupFiles: ["src/test-setup.ts"] },
});
