// Builds the page into one file: script, worker and styles inline, the core packed in a data block, a policy with hashes.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse } from "smol-toml";
import { type Plugin, defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// What `cargo xtask play` writes, core.js, and pack.py, core.txt.
const core = resolve(process.env.DRAGSTRIP_CORE ?? "../target/play");
const out = resolve(process.env.DRAGSTRIP_PAGE ?? "../python/dragstrip/play");

const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

function whole(): Plugin {
  return {
    name: "dragstrip-whole",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const wasm = readFileSync(`${core}/core.txt`, "utf8");
          let html = String(file.source);
          const found = (tag: string) =>
            [...html.matchAll(new RegExp(`<${tag}([^>]*)>([\\s\\S]*?)</${tag}>`, "g"))]
              .filter((it) => !it[1].includes("application/"))
              .map((it) => hash(it[2]))
              .join(" ");
          const policy = [
            "default-src 'none'",
            `script-src ${found("script")} 'wasm-unsafe-eval'`,
            "worker-src blob:",
            `style-src ${found("style")}`,
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
          ].join("; ");
          html = html.replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`);
          html = html.replace("<!--core-->", () => `<script type="application/octet-stream" id="dragstrip-core">${wasm}</script>`);
          file.source = html;
          file.fileName = "page.html";
        }
      },
    },
  };
}

/** The lessons of python/dragstrip/lessons as a module. */
export function lessons(): Plugin {
  const folder = resolve(import.meta.dirname, "../python/dragstrip/lessons");
  return {
    name: "dragstrip-lessons",
    resolveId: (id) => (id === "virtual:lessons" ? `\0${id}` : null),
    load(id) {
      if (id !== "\0virtual:lessons") return null;
      const files = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => parse(readFileSync(`${folder}/${number}.toml`, "utf8")));
      return `export default ${JSON.stringify(files)};`;
    },
  };
}

export default defineConfig({
  base: "./",
  resolve: { alias: { "dragstrip-core": `${core}/core.js` } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "iife" },
  build: { outDir: out, emptyOutDir: false, target: "es2022", modulePreload: false },
  plugins: [lessons(), viteSingleFile({ removeViteModuleLoader: true }), whole()],
});
