import { describe, expect, it } from "vitest";
import { FIRST } from "../src/form";
import { FRAGMENT_MAX, fragmentOf, linkOf } from "../src/link";
import { EXAMPLES, isMarked, markOf, offsetOf, programsOf, withProgram, withoutProgram } from "../src/program";

const text = 'on ack { cwnd = cwn } # größer 😀\n"%&+=,\ton loss { ssthresh = 2 }';
const one = { ...FIRST, ...withProgram(FIRST, "mine", text) };

describe("a program", () => {
  it("comes with four examples", () => expect(Object.keys(EXAMPLES).sort()).toEqual(["my-bbr", "my-exp", "my-reno", "my-vegas"]));
  it("gets a flow, once", () => {
    expect(one.algorithms).toEqual(["cubic", "vegas", "mine"]);
    expect(withProgram({ ...one, algorithms: ["mine:keep=0.5*2@80ms"] }, "mine", "x").algorithms).toEqual(["mine:keep=0.5*2@80ms"]);
  });
  it("goes with its flows", () => {
    expect({ ...one, ...withoutProgram(one, "mine") }).toEqual(FIRST);
    const two = { ...one, ...withProgram(one, "my", "y"), algorithms: ["mine:a=1*2", "my"] };
    expect(withoutProgram(two, "mine")).toEqual({ more: { programs: { my: "y" } }, algorithms: ["my"] });
    expect(withoutProgram({ ...one, algorithms: ["mine"] }, "mine").algorithms).toEqual(["reno"]);
  });
  it("is in the link, to the letter", () => expect(linkOf(fragmentOf(one, "", ""))?.form).toEqual(one));
  it("fits into a link when it is as long as it may be", () => {
    const long = { ...FIRST, ...withProgram(FIRST, "mine", "on ack { }\n".repeat(1489)) };
    expect(fragmentOf(long, "0.1.0", "eec5f4c5").length).toBeLessThan(FRAGMENT_MAX);
  });
  it.each([3, null, [1], { a: 1 }, "x"])("of a hostile link is no text: %j", (programs) => expect(programsOf({ ...FIRST, more: { programs } })).toEqual({}));
});

describe("what the core says of it", () => {
  const problem = { field: "programs.mine:1:17", value: '"cwn"', expected: "a name" };
  it("marks line and column", () => expect(markOf("mine", [problem])).toEqual({ line: 1, column: 17, text: 'got "cwn", expected a name' }));
  it("is another program's otherwise", () => expect(markOf("min", [problem, { ...problem, field: "programs" }])).toBeNull());
  it("is said once", () => expect([isMarked(one, problem), isMarked(FIRST, problem), isMarked(one, { ...problem, field: "rate" })]).toEqual([true, false, false]));
  it("is where the text has it", () => {
    expect(text.slice(offsetOf(text, 1, 17)).startsWith("cwn }")).toBe(true);
    expect(text.slice(offsetOf(text, 2, 1)).startsWith('"%&')).toBe(true);
    expect(offsetOf("😀😀x\ny", 1, 3)).toBe(4);
    expect([offsetOf("a", 9, 9), offsetOf("", 1, 1)]).toEqual([1, 0]);
  });
});
