// Builds the page into server/static, from where the Python package serves it under /static; with `--mode shared` the
// view of one trace into agent/trace/view, from where it is embedded into HTML files.
import { writeFileSync } from "node:fs";
import { defineConfig, type BuildOptions, type Plugin } from "vite";
import { sumOfSources } from "./tools/sources.mjs";

const PAGE = "../server/static";
const SHARED = "../agent/trace/view";

/** Writes down of which sources this was built; a test compares, without Node. */
function seal(out: string): Plugin {
  return { name: "seal", closeBundle: () => writeFileSync(`${out}/sources.sha256`, `${sumOfSources(".")}\n`) };
}

/** The script as text that may stand inside of a script element. */
function inlined(): Plugin {
  const safe = (code: string) => code.replaceAll("<!--", "\\x3c!--").replaceAll("</script", "\\x3c/script");
  return { name: "inlined", generateBundle: (_, bundle) => Object.values(bundle).forEach((part) => part.type === "chunk" && (part.code = safe(part.code))) };
}

const common: BuildOptions = { emptyOutDir: true, target: "es2022", modulePreload: { polyfill: false }, assetsInlineLimit: 0, reportCompressedSize: true };

export default defineConfig(({ mode }) =>
  mode === "shared"
    ? {
        plugins: [inlined(), seal(SHARED)],
        publicDir: false,
        define: { "process.env.NODE_ENV": '"production"' },
        build: { ...common, outDir: SHARED, lib: { entry: "src/shared.tsx", formats: ["iife"], name: "cairn", fileName: () => "view.js", cssFileName: "view" } },
      }
    : {
        base: "/static/",
        plugins: [seal(PAGE)],
        build: { ...common, outDir: PAGE, assetsDir: "." },
        server: { proxy: { "/api": "http://127.0.0.1:8000", "/v1": "http://127.0.0.1:8000", "/version": "http://127.0.0.1:8000" } },
      },
);
