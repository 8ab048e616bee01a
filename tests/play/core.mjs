// The core in Node: a line of JSON on standard input, {"form": {...}} or {"scenario": "..."}, a line of JSON with the runs' hashes for each;
// {"experiment": "...", "pick": 0}: the names of its runs and one's scenario; {"plan": {...}}: the scenarios of a form.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [script, binary] = process.argv.slice(2);
const { core } = await import(pathToFileURL(script));
const module = new WebAssembly.Module(readFileSync(binary));

/** Runs a scenario in slices of a simulated tenth of a second. */
function ran(scenario) {
    const run = new (core(module).Run)(scenario, 0);
    for (let until = 1e8; !run.done; until += 1e8) {
        if (JSON.parse(run.advance(until, Number.MAX_SAFE_INTEGER)).stalled) throw new Error("stalled");
    }
    return { scenario, sha256: run.sha256() };
}

for await (const line of createInterface({ input: process.stdin })) {
    const { form, scenario, experiment, pick, plan } = JSON.parse(line);
    try {
        if (plan) {
            console.log(core(module).runs_of(JSON.stringify(plan)));
            continue;
        }
        if (experiment) {
            console.log(core(module).runs_of_experiment(experiment, pick));
            continue;
        }
        const runs = form ? JSON.parse(core(module).runs_of(JSON.stringify(form))).runs.map((run) => run.scenario) : [scenario];
        console.log(JSON.stringify({ runs: runs.map(ran) }));
    } catch (refused) {
        if (typeof refused !== "string") throw refused;
        console.log(JSON.stringify({ refused: JSON.parse(refused) }));
    }
}
