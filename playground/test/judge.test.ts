import { beforeAll, describe, expect, it } from "vitest";
import { pythonOf } from "../src/copies";
import { FIRST, fromOptions } from "../src/form";
import { answerOf, answersOf, figureOf, lessons, shortfallOf, verdictOf } from "../src/judge";
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
    expect([901, 899].map((it) => verdictOf(lessons[1]!, summary, it).right)).toEqual([true, false]);
    expect([0.4, 0.39].map((share) => verdictOf(lessons[5]!, { ...summary, flows: [summary.flows[0]!, { ...summary.flows[1]!, share }] }, 0).right)).toEqual([true, false]);
  });
  it("has quizzes that the core reads", () => {
    for (const lesson of lessons) expect(typeof verdictOf(lesson, summary, 0).right).toBe("boolean");
  });
  it("names the measured figure of a wrong answer and the wanted one", () => {
    const text = (number: number, answer: number) => shortfallOf(lessons[number - 1]!, verdictOf(lessons[number - 1]!, summary, answer), answer);
    expect(text(1, 0)).toBe("Not yet: goodput 10 Mbit/s, wanted at least 9.30 Mbit/s (reached); ping 41 ms, wanted at most 42 ms (reached).");
    expect(text(2, 400)).toBe("Not yet: your answer 400 packets, measured 1000 packets, wanted within 10 % of it (900 to 1100).");
    expect(text(5, 0)).toBe("Not yet: far flow 60 %, wanted at least 60 % (reached); RTT of flow 1, p5 not measured, wanted at most 75 ms; RTT of flow 2, p5 not measured, wanted at least 80 ms.");
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
