import { describe, expect, it } from "vitest";
import { FIRST, flowOf, limitOf, place, rough, seedProblem, spoken, textOf, toJson, valueAt, withLimit, words } from "../src/form";
import { apart, columns, greatestOf, rounded, sharesOf } from "../src/draw";
import { FRAGMENT_MAX, fragmentOf, linkOf } from "../src/link";
import { tomlOf } from "../src/copies";
import { pinched } from "../src/pinch";
import { parse } from "smol-toml";

describe("links", () => {
  it("come back as they went", () => {
    const form = { ...FIRST, algorithms: ["cubic:beta=717,c=3*4@80ms", "bbr"], loss: "0.1%", queue: "bfifo limit 200kb", more: { ecn: true } };
    expect(linkOf(fragmentOf(form, "0.1.0", "eec5f4c5365c"))).toEqual({ form, version: "0.1.0", hash: "eec5f4c5" });
  });
  it("are typed by hand", () => expect(linkOf("#1&rate=5mbit&cc=cubic,bbr&queue=pfifo+limit+50")?.form).toMatchObject({ rate: "5mbit", algorithms: ["cubic", "bbr"], queue: "pfifo limit 50" }));
  it.each(["#2&rate=1mbit", "#1&rat=1mbit", "#1&rate=1mbit&rate=2mbit", "#1&rate=%ff", "#1&seed=1,\"x\":2", "#1&h=zz", "#1&more=[1]", "#1&together=2", `#1&rate=${"9".repeat(FRAGMENT_MAX)}`])(
    "refuses %.40s in one line", (bad) => expect(() => linkOf(bad)).toThrow(/^link: [^\n]*expected [^\n]*$/));
  it("names the nearest key", () => expect(() => linkOf("#1&rat=1")).toThrow("did you mean rate?"));
});

describe("the form", () => {
  it("keeps a seed's digits", () => expect(toJson({ ...FIRST, seed: "9223372036854775807" })).toContain('"seed":9223372036854775807}'));
  it("refuses other seeds", () => expect(["9223372036854775808", "-1", "1e3", "", "01"].map(seedProblem)).not.toContain(null));
  it.each(["bbr*4@80ms", "cubic+5s", "cubic:beta=1e+2*2@1ms+10s", "cubic:beta=1e+2"])("takes %s apart", (word) => expect(textOf(flowOf(word))).toBe(word));
  it("finds a flow's start", () => expect([flowOf("cubic+5s"), flowOf("cubic:beta=1e+2")]).toMatchObject([{ name: "cubic", start: "5s" }, { name: "cubic:beta=1e+2", start: "" }]));
  it("changes a limit in packets only", () => expect([withLimit("pfifo limit 100", 7), limitOf("bfifo limit 200kb")]).toEqual(["pfifo limit 7", null]));
  it("moves a slider and back", () => {
    for (const at of [0, 137, 500, 1000]) expect(Math.abs(place(valueAt(at, 1e5, 1e9), 1e5, 1e9) - at)).toBeLessThan(6);
  });
  it("writes and reads words", () => expect([words("rate", 1.2e7), rough("time", "40ms"), rough("rate", "x"), spoken("10mbit")]).toEqual(["12mbit", 4e7, null, "10 megabits per second"]));
});

describe("an experiment copied as TOML", () => {
  it("is read back as it was, with all digits of its seed", () => {
    const content = {
      name: "compare", title: 'a "b" \x7f\n', seed: 1, cold_arp: true, hosts: { "*": { sysctl: { "net.ipv4.tcp_ecn": "1" }, gso: "auto" } },
      flows: [{ sender: "s*", cc: "cubic+5s", count: 1, cc_options: {} }, { cc: "bbr" }], vary: { "flows.cc": ["cubic", "bbr"] }, path: { rate: "10mbit" }, changes: [],
    };
    expect(parse(tomlOf(content, "9223372036854775807"), { integersAsBigInt: true }).seed).toBe(9223372036854775807n);
    expect(parse(tomlOf(content, "1"))).toEqual(content);
  });
});

describe("two fingers", () => {
  const view = { from: 4e9, to: 8e9 };
  it("keep what is under them", () => {
    const now = pinched(view, [0.25, 0.5], [0.2, 0.7], 30e9);
    for (const [share, time] of [[0.2, 5e9], [0.7, 6e9]] as const) expect(now.from + share * (now.to - now.from)).toBeCloseTo(time, -3);
  });
  it("stay within the run, and do nothing where one is on the other", () => {
    expect(pinched(view, [0.1, 0.9], [0.45, 0.5], 30e9)).toEqual({ from: 0, to: 30e9 });
    expect(pinched(view, [0.1, 0.9], [0.5, 0.5], 30e9)).toBe(view);
    const least = pinched(view, [0.4, 0.401], [0, 1], 30e9);
    expect(least.to - least.from).toBeGreaterThanOrEqual(1e6);
  });
});

describe("drawing", () => {
  it("keeps a spike within a pixel", () => {
    const line = Float64Array.from([5, 5, 5, 5, 5, 1, 9, 5, NaN, NaN, NaN, NaN]);
    expect([...columns(line, 10, 100)]).toEqual([50, 50, 10, 90, -1, -1]);
    expect(greatestOf([line])).toBe(9);
  });
  it("rounds axes up", () => expect([rounded(9.6), rounded(160), rounded(0)]).toEqual([{ top: 10, step: 5 }, { top: 200, step: 50 }, { top: 1, step: 1 }]));
  it("moves labels apart", () => expect(apart([50, 51, 100], 15, 100)).toEqual([50, 65, 100]));
});

describe("shares", () => {
  it("end where the run has come to", () => {
    const of = (value: number) => Float64Array.from([...Array<number>(4).fill(value), ...Array<number>(4).fill(NaN)]);
    expect(sharesOf([of(3), of(1)]).map((line) => [...line.slice(3, 5)])).toEqual([[75, NaN], [25, NaN]]);
  });
});
