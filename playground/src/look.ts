// Appearance of charts. The core chooses (crates/display), as for the report; colours by name are of the file that it generates.
import look from "../../python/dragstrip/display/look.json";
import { rules } from "./rules";

type Name = keyof typeof look.colours;
export type PanelName = keyof typeof look.panels;

/** A colour by its name. */
export const named = (name: Name, dark: boolean): string => look.colours[name][dark ? 1 : 0]!;

/** Colour and dash pattern of each flow: a colour per algorithm, dashes for its further flows. */
export function looksOf(algorithms: readonly string[], dark: boolean): { colour: string; dash: number[] }[] {
  const styles: { colour: Name; dash: number[] }[] = JSON.parse(rules()!.curve_styles(JSON.stringify(algorithms)));
  return styles.map(({ colour, dash }) => ({ colour: named(colour, dark), dash }));
}

/** A panel's axis and its unit's size; `greatest` is the panel's greatest value, in the smallest unit. */
export function axisOf(panel: PanelName, greatest: number) {
  const { divisor, ...axis }: { title: string; unit: string; divisor: number; high: number; share: boolean } = JSON.parse(
    rules()!.panel_axis(panel, greatest),
  );
  return { divisor, axis: { ...axis, low: 0, log: false } };
}

/** The colour of each phase or limit, which no flow has. */
export function stripsOf(words: readonly string[], dark: boolean): string[] {
  const names: (keyof typeof look.strips)[] = JSON.parse(rules()!.strip_colours(JSON.stringify(words)));
  return names.map((name) => look.strips[name][dark ? 1 : 0]!);
}

/** The dash pattern of a number. */
export const dashOf = (number: number): number[] => look.dashes[number % look.dashes.length]!;

export const THRESHOLD = look.threshold;
