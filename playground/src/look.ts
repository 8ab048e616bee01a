// What charts look like and what their axes are called: of the file that the report reads too.
import look from "../../python/dragstrip/display/look.json";

type Name = keyof typeof look.colours;

/** A colour by its name. */
export const named = (name: Name, dark: boolean): string => look.colours[name][dark ? 1 : 0]!;

/** The colour of a number, such as a word's. */
export const numbered = (number: number, dark: boolean): string => named(look.palette[number % look.palette.length] as Name, dark);

/** Colour and dash pattern of each flow, as display/colours.py and `Contender` have them: a colour per algorithm, dashes for its further flows. */
export function looksOf(ccs: readonly string[], dark: boolean): { colour: string; dash: number[] }[] {
  const known = look.known as Record<string, string>;
  const names = [...new Set(ccs)];
  const taken = new Set(names.map((name) => known[name]));
  const free = look.palette.filter((name) => !taken.has(name));
  const own = new Map<string, string>();
  for (const name of names) own.set(name, known[name] ?? free.shift() ?? look.palette[own.size % look.palette.length]!);
  const seen = new Map<string, number>();
  return ccs.map((cc) => {
    const name = own.get(cc)!;
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return { colour: named(name as Name, dark), dash: look.dashes[before % look.dashes.length]! };
  });
}

/** Title, unit and upper end of a panel's axis; `most` is its greatest value, in the smallest unit. */
export function axisOf(panel: keyof typeof look.panels, most: number) {
  const [title, kind] = look.panels[panel] as [string, keyof typeof look.units];
  const units = look.units[kind] as [number, string][];
  const [divisor, unit] = units.findLast(([size]) => most >= size * 0.9995) ?? units[0]!;
  const share = kind === "share";
  return { divisor, axis: { title: unit ? `${title} (${unit})` : title, unit, low: 0, high: share ? 1 : (most / divisor || 1) * look.headroom, log: false, share } };
}

/** The instants that an explanation names, as report/timeline.py marks them: seconds, and what happens. */
export function momentsOf(why: readonly { flows: string[]; figures: Record<string, number> }[]): [number, string][] {
  return why.flatMap(({ flows, figures }) => {
    const found = look.moments.find(({ at, where }) => at in figures && (where === undefined || (figures[where] ?? 0) > 0));
    return found && flows.length === 2 ? [[figures[found.at]!, found.text.replace("{}", flows[1]!)] as [number, string]] : [];
  });
}

/** The dash pattern of a number. */
export const dashOf = (number: number): number[] => look.dashes[number % look.dashes.length]!;

export const THRESHOLD = look.threshold;
