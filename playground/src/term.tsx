// Terms of the glossary (python/dragstrip/display/glossary.toml): a word that opens its explanation, on a hosted page with a link.
import type { ComponentChildren } from "preact";
import entries from "virtual:glossary";

/** The glossary of the site (.ci/site.py); empty where the page stands alone. */
const site = (): string => document.querySelector<HTMLMetaElement>('meta[name="dragstrip-glossary"]')?.content ?? "";

/** The anchor of a term, as tools/glossary.py writes it. */
const anchorOf = (name: string) => `term-${name.toLowerCase().replaceAll(" ", "-")}`;

/** A word of the page as a term of the glossary; `name` is the term's. `id` tells several places of a term apart. */
export function Term({ name, id = "", children }: { name: string; id?: string; children?: ComponentChildren }) {
  const entry = entries[name];
  if (!entry) return <>{children ?? name}</>;
  const box = `${anchorOf(name)}${id && `-${id}`}`;
  return (
    <>
      <button type="button" class="term" popovertarget={box} title={entry.text}>{children ?? name}</button>
      <span class="explanation" id={box} popover="auto" role="note">
        <b>{entry.title}</b> {entry.text}
        {site() && <>{" "}<a href={`${site()}#${anchorOf(name)}`}>Glossary</a></>}
      </span>
    </>
  );
}
