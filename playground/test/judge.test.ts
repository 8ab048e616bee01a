import { describe, expect, it } from "vitest";
import { pythonOf } from "../src/copies";
import { FIRST, fromOptions } from "../src/form";
import { answerOf, answersOf, lessons, measured, right } from "../src/judge";
import type { Summary } from "../src/protocol";

const summary = {
  flows: [{ goodput_bps: 4e6, share: 0.4 }, { goodput_bps: 6e6, share: 0.6 }],
  probes: [{ rtt_ms: { p50: 41 } }],
  queues: [{ dropped: 1000 }],
} as unknown as Summary;

describe("the judge", () => {
  it("has ten lessons", () => expect(lessons.length).toBe(10));
  it.each([["goodput_bps", 1e7], ["ping_ms", 41], ["flows.1.share", 0.6], ["queues.0.dropped", 1000], ["flows.9.share", null], ["flows.0.rtt_ms.p50", null]])(
    "reads %s", (measure, value) => expect(measured(summary, measure)).toBe(value),
  );
  it("takes a number within its bounds alone", () => {
    expect(right(lessons[1]!, summary, 901)).toBe(true);
    expect(right(lessons[1]!, summary, 899)).toBe(false);
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
