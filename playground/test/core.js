// The core that `cargo page` wrote, as the page's thread has it.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { provide } from "../src/rules";

const folder = resolve(process.env.DRAGSTRIP_CORE ?? "../target/play");

export async function provideCore() {
  const { core } = await import(/* @vite-ignore */ pathToFileURL(`${folder}/core.js`).href);
  provide(core(new WebAssembly.Module(readFileSync(`${folder}/core.wasm`))));
}
