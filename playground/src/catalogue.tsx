// The catalogue in the page: each published experiment from its own file, its claims beside ours (docs/reference/catalogue.md).
import { bytesOf, unpack } from "./unpack";

interface Entry {
  title: string;
  source: string;
  /** The experiment without its claims, as JSON for the core. */
  content: string;
  /** Claim, published, ours, unit, grade. */
  claims: string[][];
}

type Catalogue = Record<string, Entry>;

let unpacked: Catalogue | null = null;

export function catalogue(): Catalogue {
  unpacked ??= JSON.parse(new TextDecoder().decode(unpack(bytesOf(document.getElementById("dragstrip-catalogue")!.textContent!)))) as Catalogue;
  return unpacked;
}

/** The experiment of a name for the core, as JSON; null if the catalogue has no such name. */
export function contentOf(name: string): string | null {
  return Object.hasOwn(catalogue(), name) ? catalogue()[name]!.content : null;
}

/** `#1&run=caia-110729a/adsl1&n=3`: an experiment and the number of its run, from 1; null if it is no such link. Throws text. */
export function experimentOf(fragment: string): { name: string; pick: number } | null {
  if (!fragment.startsWith("#1&run=")) return null;
  const found = /^#1&run=([a-z0-9./-]{1,80})(?:&n=([1-9]\d{0,2}))?$/.exec(fragment);
  if (!found || contentOf(found[1]!) === null)
    throw `link: run ${JSON.stringify(fragment.slice(7, 67))}: expected an experiment of the catalogue, as in #1&run=caia-110729a/adsl1&n=3`;
  return { name: found[1]!, pick: Number(found[2] ?? 1) - 1 };
}

export const fragmentOfExperiment = (name: string, pick: number) => `#1&run=${name}&n=${pick + 1}`;

export function CatalogueChoice({ opened, load }: { opened: string; load: (name: string) => void }) {
  const names = Object.keys(catalogue());
  const publications = [...new Set(names.map((it) => it.split("/")[0]!))];
  return (
    <label class="row">Catalogue
      <select id="catalogue" value={opened} onChange={(event) => load(event.currentTarget.value)}>
        <option value="">none</option>
        {publications.map((it) => (
          <optgroup key={it} label={it}>
            {names.filter((name) => name.startsWith(`${it}/`)).map((name) => <option key={name} value={name}>{name.slice(it.length + 1)}</option>)}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

export function CataloguePanel({ opened }: { opened: string }) {
  const entry = opened && catalogue()[opened];
  if (!entry) return null;
  const grades = new Map<string, number>();
  for (const claim of entry.claims) grades.set(claim[4]!.split(":")[0]!, (grades.get(claim[4]!.split(":")[0]!) ?? 0) + 1);
  return (
    <section class="lesson" aria-label="Experiment of the catalogue">
      <h2>{entry.title}</h2>
      <p>{entry.source}</p>
      <p>{[...grades].map(([grade, count]) => `${count} ${grade}`).join(", ")}. The charts show its own runs, of each set-up the first repeat. Ours is what
        <code> dragstrip run {opened}</code> measured over all of them.</p>
      <div class="table claims" tabIndex={0} role="region" aria-label="Claims beside ours">
        <table>
          <thead><tr><th scope="col">Claim</th><th scope="col">Published</th><th scope="col">Ours</th><th scope="col">Unit</th><th scope="col">Grade</th><th scope="col">Why</th></tr></thead>
          <tbody>
            {entry.claims.map(([claim, published, ours, unit, grade]) => (
              <tr key={claim}>
                <th scope="row">{claim}</th><td>{published}</td><td>{ours}</td><td>{unit}</td>
                <td>{grade!.split(": ")[0]}</td><td>{grade!.split(": ").slice(1).join(": ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
