import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  plugins: [react()],
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
