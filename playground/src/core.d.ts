/** What `cargo page` writes; its own core.d.ts has the whole interface. */
declare module "dragstrip-core" {
  export interface Run {
    free(): void;
    advance(until_ns: number, events_max: number): string;
    events(from_ns: number, to_ns: number, most: number): string;
    flows(): string;
    links(): string;
    lines(series: string, subject: number, from_ns: number, to_ns: number, pixels: number, window_ns: number): Float64Array<ArrayBuffer>;
    measures(): string;
    sha256(): string;
    strip(series: string, flow: number, from_ns: number, to_ns: number): Float64Array<ArrayBuffer>;
    words(series: string): string;
    readonly now_ns: number;
    readonly duration_ns: number;
  }
  export interface Lens {
    free(): void;
    advance(until_ns: number, events_max: number): boolean;
    links(): string;
    packets(from_ns: number, to_ns: number): Float64Array<ArrayBuffer>;
    readonly full: boolean;
  }
  export interface Core {
    Lens: new (scenario: string, from_ns: number) => Lens;
    Run: new (scenario: string, interval_ns: number) => Run;
    cost(scenario: string): string;
    curve_styles(algorithms: string): string;
    flow_word(word: string): string;
    names(): string;
    panel_axis(panel: string, greatest: number): string;
    parse(kind: string, text: string): number;
    picture_interval(duration_ns: number): number;
    quiz_verdict(quiz: string, summary: string, number: number): string;
    runs_of(form: string): string;
    runs_of_experiment(content: string, pick: number): string;
    strip_colours(words: string): string;
    transfers_figure(summary: string, measure: string, size_above: string, size_up_to: string): string;
    summary_figure(summary: string, measure: string): number | undefined;
    version(): string;
    written(kind: string, value: number): string;
  }
  export function core(module: WebAssembly.Module): Core;
}
