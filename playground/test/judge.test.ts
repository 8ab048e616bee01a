import { beforeAll, describe, expect, it } from "vitest";
import { pythonOf } from "../src/copies";
import { FIRST, fromOptions } from "../src/form";
import { answerOf, answersOf, figureOf, isRight, lessons } from "../src/judge";
import type { Summary } from "../src/protocol";
import { provideCore } from "./core";

beforeAll(provideCore);

const summary = {
  flows: [{ goodput_bps: 4e6, share: 0.4 }, { goodput_bps: 6e6, share: 0.6 }],
  probes: [{ rtt_ms: { p50: 41 } }],
  queues: [{ dropped: 1000 }],
} as unknown as Summary;

describe("the judge", () => {
  it("has ten lessons", () => expect(lessons.length).toBe(10));
  it("asks the core for figures", () => expect(["goodput_bps", "ping_ms", "flows.9.share"].map((it) => figureOf(summary, it))).toEqual([1e7, 41, null]));
  it("asks the core for verdicts", () => {
    expect([901, 899].map((it) => isRight(lessons[1]!, summary, it))).toEqual([true, false]);
    expect([0.4, 0.39].map((share) => isRight(lessons[5]!, { ...summary, flows: [summary.flows[0]!, { ...summary.flows[1]!, share }] }, 0))).toEqual([true, false]);
  });
  it("has quizzes that the core reads", () => {
    for (const lesson of lessons) expect(typeof isRight(lesson, summary, 0)).toBe("boolean");
  });
  it("takes what is free from the form, and nothing else", () => {
    const start = fromOptions({ ...lessons[5]!.start, queue: "codel" });
    expect(answerOf(lessons[5]!, start, 0)).toEqual({ queue: "codel" });
    expect(answerOf(lessons[5]!, { ...start, rtt: "1ms" }, 0)).toBe(null);
  });
  it("writes a line for each lesson", () => {
    expect(answersOf("1", { 2: { answer: 3, recording: "00" } })).toBe('Dragstrip 1\n{"lesson":2,"answer":3,"recording":"00"}');
  });
});

describe("copies", () => {
  it("keep the digits of a seed", () => {
    expect(pythonOf({ ...FIRST, seed: "9007199254740991" })).toContain("seed=9007199254740991,");
  });
  it("write Python's words", () => {
    expect(pythonOf({ ...FIRST, more: { ecn: true, sysctl: { a: "1" } } })).toContain('    ecn=True,\n    sysctl={"a": "1"},\n');
  });
});
