// Figures of a run beside its panels: throughput against delay, the legend of strips, completion times.
import { beforeAll, describe, expect, it } from "vitest";
import look from "../../python/dragstrip/display/look.json";
import { stripKeysOf, tradeoffOf } from "../src/draw";
import type { FlowSummary, Picture } from "../src/protocol";
import { answerOf } from "../src/transfers";
import { provideCore } from "./core";

beforeAll(provideCore);

const flow = (label: string, cc: string, goodput_bps: number, p50: number) => ({ label, cc, goodput_bps, rtt_ms: { p5: p50 - 5, p50, p95: p50 + 40 } }) as unknown as FlowSummary;
const outcome = (...flows: FlowSummary[]) => [{ flows, pinned: false }];

describe("throughput against delay", () => {
  it("has a point for each flow, in its colour, with the span of its round trips", () => {
    const figure = tradeoffOf(outcome(flow("cubic", "cubic", 8e6, 138), flow("vegas", "vegas", 1.2e6, 137)), "", false)!;
    expect(figure.clouds.map((it) => [it.label, it.colour, it.note])).toEqual([["cubic", look.colours.vermilion[0], "138 ms, 8 Mbit/s"], ["vegas", look.colours.green[0], "137 ms, 1.20 Mbit/s"]]);
    expect(figure.clouds[0]!.middle).toEqual([138, 8]);
    expect(figure.clouds[0]!.ellipse.xs).toEqual([133, 178]);
    expect(figure.corner).toContain("better");
    expect(figure.x.high).toBeGreaterThan(178);
  });
  it("has a point for each algorithm of many flows", () => {
    const many = Array.from({ length: 10 }, (_, at) => flow(`f${at}`, at % 2 ? "bbr" : "reno", 1e6 * (at + 1), 50));
    expect(tradeoffOf(outcome(...many), "", false)!.clouds.map((it) => [it.label, it.points.xs.length])).toEqual([["reno (5 flows)", 5], ["bbr (5 flows)", 5]]);
  });
  it("is grey for a pinned run, and absent without figures", () => {
    const two = [...outcome(flow("reno", "reno", 1e6, 50)), { flows: [flow("reno", "reno", 2e6, 60)], pinned: true }];
    expect(tradeoffOf(two, "", false)!.clouds.map((it) => it.colour)).toEqual([look.colours.blue[0], look.colours.grey[0]]);
    expect(tradeoffOf(outcome({ label: "udp", cc: "", goodput_bps: 1e6, rtt_ms: null } as FlowSummary), "", false)).toBeNull();
  });
});

describe("the legend of phases and limits", () => {
  it("has the words that occur, in colours of no flow", () => {
    const line = (...words: number[]) => Float64Array.from(words.flatMap((word) => [0, 1, word]));
    const strips = { state: [line(0, 1), line(1)], stateWords: ["startup", "slow_start", "loss"], limit: [line(0)], limitWords: ["cwnd"] };
    const keys = stripKeysOf({ strips } as unknown as Picture, false);
    expect(keys.phase).toEqual([{ colour: look.strips.lime[0], words: "startup, slow_start" }]);
    expect(keys.limit.map((it) => it.words)).toEqual(["cwnd"]);
    const curves = Object.values(look.colours).flat();
    expect(Object.values(look.strips).flat().filter((colour) => curves.includes(colour))).toEqual([]);
  });
});

describe("completion times", () => {
  const transfer = (bytes: number, completion_s: number, finished = true) => ({ transfer: { bytes, finished, completion_s, slowdown: completion_s * 2 } });
  const summary = { flows: [transfer(1e4, 0.1), transfer(1e4, 0.3), transfer(2e6, 9, false), {}] } as unknown as Picture["measures"];
  it("are those of the flows within the bounds", () => {
    expect(answerOf(summary, "fct_s_p50", "", "10kb")).toEqual({ text: "0.20 s (2 flows)", isWrong: false });
    expect(answerOf(summary, "fct_slowdown_max", "10kb", "").text).toBe("18 (1 flow)");
    expect(answerOf(summary, "fct_unfinished", "", "").text).toBe("1 (3 flows)");
  });
  it("are refused in a line", () => {
    expect(answerOf(summary, "fct_p99", "", "")).toMatchObject({ isWrong: true, text: expect.stringContaining("expected a measure of transfers, such as fct_s_p99") });
    expect(answerOf(summary, "fct_s_p99", "", "1kb").text).toBe("size_up_to 1kb: expected bounds between which some flow lies: flows carry 10000 to 2000000 bytes");
    expect(answerOf(summary, "fct_s_p99", "much", "").isWrong).toBe(true);
  });
});
