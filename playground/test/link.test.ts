import { beforeAll, describe, expect, it } from "vitest";
import { FIRST, flowOf, fromOptions, withMedium, withPath, limitOf, movedTo, place, rough, spoken, textOf, toJson, valueAt, withLimit, words } from "../src/form";
import { sharesOf } from "../src/draw";
import { FRAGMENT_MAX, fragmentOf, linkOf } from "../src/link";
import { tomlOf } from "../src/copies";
import { columns, greatestOf } from "../../python/dragstrip/report/viewer/columns.js";
import { key } from "../../python/dragstrip/report/viewer/cursor.js";
import { pinched, zoomed } from "../../python/dragstrip/report/viewer/zoom.js";
import { axisOf, looksOf } from "../src/look";
import { provideCore } from "./core";
import looks from "../../tests/viewer/looks.json";
import { parse } from "smol-toml";

describe("links", () => {
  it("come back as they went", () => {
    const form = { ...FIRST, algorithms: ["cubic:beta=717,c=3*4@80ms", "bbr"], loss: "0.1%", queue: "bfifo limit 200kb", more: { ecn: true } };
    expect(linkOf(fragmentOf(form, "0.1.0", "eec5f4c5365c"))).toEqual({ form, version: "0.1.0", hash: "eec5f4c5" });
  });
  it("are typed by hand", () => expect(linkOf("#1&rate=5mbit&cc=cubic,bbr&queue=pfifo+limit+50")?.form).toMatchObject({ rate: "5mbit", algorithms: ["cubic", "bbr"], queue: "pfifo limit 50" }));
  it.each(["#2&rate=1mbit", "#1&rat=1mbit", "#1&rate=1mbit&rate=2mbit", "#1&rate=%ff", "#1&h=zz", "#1&more=[1]", "#1&together=2", `#1&rate=${"9".repeat(FRAGMENT_MAX)}`])(
    "refuses %.40s in one line", (bad) => expect(() => linkOf(bad)).toThrow(/^link: [^\n]*expected [^\n]*$/));
  it("of a path by name leave its figures alone", () => {
    const dsl = { ...FIRST, ...withPath("home DSL"), algorithms: ["cubic"], workload: "tcp_upload" };
    expect([dsl.rate, dsl.rtt, dsl.queue]).toEqual(["", "", ""]);
    expect(linkOf(fragmentOf(dsl, "", ""))?.form).toEqual(dsl);
    expect(linkOf("#1&path=home+DSL&rate=2mbit")?.form).toMatchObject({ path: "home DSL", rate: "2mbit", rtt: "", queue: "" });
    expect(withPath("")).toMatchObject({ path: "", rate: "10mbit", rtt: "40ms", queue: "pfifo limit 100" });
    const wifi = { ...FIRST, ...withMedium(FIRST, "wifi-n") };
    expect([wifi.medium, wifi.rate, wifi.rtt]).toEqual(["wifi-n", "", "40ms"]);
    expect(linkOf(fragmentOf(wifi, "", ""))?.form).toEqual(wifi);
    expect(fromOptions({ algorithms: ["cubic"], path: "LTE" })).toMatchObject({ path: "LTE", rate: "", rtt: "" });
  });
  it("keep a field that was emptied", () => expect(linkOf(fragmentOf({ ...FIRST, rate: "" }, "", ""))?.form.rate).toBe(""));
  it("names the nearest key", () => expect(() => linkOf("#1&rat=1")).toThrow("did you mean rate?"));
});

describe("the form", () => {
  it("leaves all fields to the core as text", () => expect(JSON.parse(toJson({ ...FIRST, seed: '1,"x":2' })).seed).toBe('1,"x":2'));
  it("asks the core what a word says", async () => {
    expect(flowOf("bbr@80ms*2")).toEqual({ name: "bbr@80ms*2", count: 1, rtt: "", start: "" });
    await provideCore();
    expect(textOf(flowOf("bbr@80ms*2"))).toBe("bbr*2@80ms");
    expect(flowOf("bbr*").name).toBe("bbr*");
  });
  it("changes a limit in packets only", () => expect([withLimit("pfifo limit 100", 7), limitOf("bfifo limit 200kb")]).toEqual(["pfifo limit 7", null]));
  it("moves a slider and back", () => {
    for (const at of [0, 137, 500, 1000]) expect(Math.abs(place(valueAt(at, 1e5, 1e9), 1e5, 1e9) - at)).toBeLessThan(6);
  });
  it.each([[4e7, 4.1e7, 3.9e7], [1e8, 1.1e8, 9.9e7], [9.9e7, 1e8, 9.8e7], [1e9, 1e9, 9.9e8], [1e5, 1.1e5, 1e5]])("goes a digit further with each key: %d", (value, up, down) => {
    const at = place(value, 1e5, 1e9);
    expect([movedTo(at + 1, value, 1e5, 1e9), movedTo(at - 1, value, 1e5, 1e9)]).toEqual([up, down]);
  });
  it("writes and reads words", () => expect([words("rate", 1.2e7), rough("time", "40ms"), rough("rate", "x"), spoken("10mbit")]).toEqual(["12mbit", 4e7, null, "10 megabits per second"]));
});

describe("an experiment copied as TOML", () => {
  it("is read back as it was", () => {
    const content = {
      name: "compare", title: 'a "b" \x7f\n', seed: 1, cold_arp: true, hosts: { "*": { sysctl: { "net.ipv4.tcp_ecn": "1" }, gso: "auto" } },
      flows: [{ sender: "s*", cc: "cubic+5s", count: 1, cc_options: {} }, { cc: "bbr" }], vary: { "flows.cc": ["cubic", "bbr"] }, path: { rate: "10mbit" }, changes: [],
    };
    expect(parse(tomlOf(content))).toEqual(content);
  });
});

describe("two fingers", () => {
  const view = { low: 4, high: 8 }, whole = { low: 0, high: 30 };
  it("keep what is under them", () => {
    const now = pinched(view, [0.25, 0.5], [0.2, 0.7], whole);
    for (const [share, time] of [[0.2, 5], [0.7, 6]] as const) expect(now.low + share * (now.high - now.low)).toBeCloseTo(time, 9);
  });
  it("stay within the run, and do nothing where one is on the other", () => {
    expect(pinched(view, [0.1, 0.9], [0.45, 0.5], whole)).toEqual(whole);
    expect(pinched(view, [0.1, 0.9], [0.5, 0.5], whole)).toBe(view);
    const least = pinched(view, [0.4, 0.401], [0, 1], whole);
    expect(least.high - least.low).toBeGreaterThan(0);
  });
});

describe("keys", () => {
  const whole = { low: 0, high: 30 };
  const at = (name: string, value: number | undefined, more = {}) => key({ key: name, ...more }, value, whole, [3, 12, 20]);
  it("move by a hundredth of what is shown, and to marks", () => {
    expect([at("ArrowRight", 12), at("ArrowLeft", 12, { shiftKey: true }), at("]", 12), at("[", 12), at("]", undefined)]).toEqual([12.3, 9, 20, 3, 3]);
    expect([at("]", 20), at("a", 1), at("ArrowLeft", 1, { ctrlKey: true }), at("Escape", 1)]).toEqual([null, null, null, undefined]);
  });
  it("zoom around the cursor, within the whole", () => {
    expect(zoomed(whole, 0.5, 5, whole)).toEqual({ low: 0, high: 15 });
    expect(zoomed({ low: 5, high: 10 }, 0.5, 8, whole)).toEqual({ low: 6.75, high: 9.25 });
    expect([zoomed({ low: 5, high: 10 }, 0, 8, whole), zoomed({ low: 5, high: 25 }, 2, 8, whole)]).toEqual([whole, whole]);
  });
});

describe("the look", () => {
  beforeAll(provideCore);
  it.each(looks)("of $algorithms is that of the report", ({ algorithms, colours, dashes }) =>
    expect(looksOf(algorithms, false)).toEqual(colours.map((colour, at) => ({ colour, dash: dashes[at] }))));
  it("takes the largest unit of which there is one", () =>
    expect([axisOf("cwnd", 160e3), axisOf("cwnd", 999), axisOf("share", 0.4)].map(({ divisor, axis }) => [divisor, axis.title, axis.high])).toEqual([
      [1e3, "Window (kB)", 160 * 1.05], [1, "Window (B)", 999 * 1.05], [1, "Share of the goodput", 1],
    ]));
});

describe("drawing", () => {
  it("keeps a spike within a pixel", () => {
    const line = Float64Array.from([5, 5, 5, 5, 5, 1, 9, 5, NaN, NaN, NaN, NaN]);
    expect([...columns(line, 10, 100)]).toEqual([50, 50, 10, 90, -1, -1]);
    expect(greatestOf([line])).toBe(9);
  });
});

describe("shares", () => {
  it("end where the run has come to", () => {
    const of = (value: number) => Float64Array.from([...Array<number>(4).fill(value), ...Array<number>(4).fill(NaN)]);
    expect(sharesOf([of(3), of(1)]).map((line) => [...line.slice(3, 5)])).toEqual([[0.75, NaN], [0.25, NaN]]);
  });
});
