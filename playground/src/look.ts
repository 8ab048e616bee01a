// Appearance of charts. The core chooses (crates/display), as for the report; colours by name are of the file that it generates.
import look from "../../python/dragstrip/display/look.json";
import { rules } from "./rules";

type Name = keyof typeof look.colours;
export type PanelName = keyof typeof look.panels;

/** A colour by its name. */
export const named = (name: Name, dark: boolean): string => look.colours[name][dark ? 1 : 0]!;

/** The colour of a number, such as a word's. */
export const numbered = (number: number, dark: boolean): string => named(look.palette[number % look.palette.length] as Name, dark);

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

/** The dash pattern of a number. */
export const dashOf = (number: number): number[] => look.dashes[number % look.dashes.length]!;

export const THRESHOLD = look.threshold;
