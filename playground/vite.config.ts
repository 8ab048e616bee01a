// Builds the page into one file: script, worker and styles inline, the core packed in a data block, a policy with hashes.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse } from "smol-toml";
import { type Plugin, defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// What `cargo page` writes, core.js, and pack.py, core.txt.
const core = resolve(process.env.DRAGSTRIP_CORE ?? "../target/play");
const out = resolve(process.env.DRAGSTRIP_PAGE ?? "../python/dragstrip/playground");

const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** As text of seven bits a byte, by pack.py. */
function packed(id: string, data: Uint8Array | string): string {
  const [from, to] = [`${core}/${id}.raw`, `${core}/${id}.txt`];
  writeFileSync(from, data);
  execFileSync(process.env.PYTHON ?? "python3", [resolve(import.meta.dirname, "pack.py"), from, to]);
  return readFileSync(to, "utf8");
}

/** Of an experiment's file what makes its scenarios. */
const RUN = ["title", "duration", "repeat", "idle", "path", "nodes", "links", "media", "hosts", "flows", "flow_tables", "probes", "record", "vary", "alternatives"];

/** Every experiment of experiments/, with the claims that docs/reference/catalogue.md has of it. */
function catalogue() {
  const root = resolve(import.meta.dirname, "..");
  const made: Record<string, { title: string; source: string; content: string; claims: string[][] }> = {};
  const page = readFileSync(`${root}/docs/reference/catalogue.md`, "utf8").split(/^## /m).slice(1);
  for (const part of page) {
    const name = part.slice(0, part.indexOf("\n"));
    const told = parse(readFileSync(`${root}/experiments/${name}.toml`, "utf8"));
    const claims = part.split("\n").filter((it) => it.startsWith("| ")).slice(1).map((it) => it.slice(2, -2).split(" | "));
    // Further columns are other engines'.
    for (const claim of claims) if (claim.length < 5) throw new Error(`docs/reference/catalogue.md: ${name}: ${claim.join(" | ")}`);
    const content = JSON.stringify(Object.fromEntries(RUN.filter((key) => key in told).map((key) => [key, told[key]])));
    made[name] = { title: String(told.title), source: String(told.source), content, claims: claims.map((it) => it.slice(0, 5)) };
  }
  return made;
}

function whole(): Plugin {
  return {
    name: "dragstrip-whole",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
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
          for (const [id, data] of [["core", readFileSync(`${core}/core.wasm`)], ["catalogue", JSON.stringify(catalogue())]] as const)
            html = html.replace(`<!--${id}-->`, () => `<script type="application/octet-stream" id="dragstrip-${id}">${packed(id, data)}</script>`);
          file.source = html;
          file.fileName = "page.html";
        }
      },
    },
  };
}

/** A module `virtual:NAME` whose default export is content that is read at build time. */
function virtual(name: string, content: () => unknown): Plugin {
  const id = `\0virtual:${name}`;
  return {
    name: `dragstrip-${name}`,
    resolveId: (module) => (module === `virtual:${name}` ? id : null),
    load: (module) => (module === id ? `export default ${JSON.stringify(content())};` : null),
  };
}

/** The lessons of python/dragstrip/playground/lessons as a module. */
export function lessons(): Plugin {
  const folder = resolve(import.meta.dirname, "../python/dragstrip/playground/lessons");
  return virtual("lessons", () => [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((number) => parse(readFileSync(`${folder}/${number}.toml`, "utf8"))));
}

/** The terms that the page explains, from the glossary, as a module. */
const TERMS = ["RTT", "goodput", "buffer", "loss", "jitter", "congestion control", "ssthresh", "FCT"];

export function glossary(): Plugin {
  const file = resolve(import.meta.dirname, "../python/dragstrip/display/glossary.toml");
  return virtual("glossary", () => {
    const entries = parse(readFileSync(file, "utf8")) as Record<string, { title: string; text: string }>;
    for (const term of TERMS) if (!entries[term]) throw new Error(`${file}: no entry ${term}`);
    return Object.fromEntries(TERMS.map((term) => [term, { title: entries[term]!.title, text: entries[term]!.text }]));
  });
}

/** The colours of text and grid, as report/page.py puts them into its style sheet. */
function look(): Plugin {
  const { colours } = JSON.parse(readFileSync(resolve(import.meta.dirname, "../python/dragstrip/display/look.json"), "utf8"));
  const own = (at: number) => `--ink: ${colours.ink[at]}; --muted: ${colours.muted[at]}; --line: ${colours.grid[at]};`;
  return {
    name: "dragstrip-look",
    enforce: "pre",
    transform: (code, id) => (id.endsWith("/src/style.css") ? code.replace("/*light*/", own(0)).replace("/*dark*/", own(1)) : null),
  };
}

export default defineConfig({
  base: "./",
  resolve: { alias: { "dragstrip-core": `${core}/core.js` } },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "iife" },
  build: { outDir: out, emptyOutDir: false, target: "es2022", modulePreload: false },
  plugins: [lessons(), glossary(), look(), viteSingleFile({ removeViteModuleLoader: true }), whole()],
});
