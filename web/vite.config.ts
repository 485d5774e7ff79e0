// Builds the page into server/static, from where the Python package serves it under /static.
import { writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { sumOfSources } from "./tools/sources.mjs";

const OUT = "../server/static";

/** Writes down of which sources this was built; a test compares, without Node. */
function seal(): Plugin {
  return { name: "seal", closeBundle: () => writeFileSync(`${OUT}/sources.sha256`, `${sumOfSources(".")}\n`) };
}

export default defineConfig({
  base: "/static/",
  plugins: [seal()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsDir: ".",
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8000", "/v1": "http://127.0.0.1:8000", "/version": "http://127.0.0.1:8000" } },
});
