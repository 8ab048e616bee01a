import { describe, expect, it } from "vitest";
import { queuesOf, ratesOf, titleOf } from "../src/queues";

const links = [
  { link: "r1-r2", rate_bps: 20e6 },
  { link: "r2-x", rate_bps: 15e6 },
  { link: "r2-y", rate_bps: null },
];
const at = (...names: (string | null)[]) => names.map((bottleneck) => ({ bottleneck }));

describe("the links where flows wait", () => {
  it("are those of the recording, each with its flows", () =>
    expect(queuesOf(at("r2-x", "r1-r2", "r2-x"), links)).toEqual([
      { link: "r2-x", rate_bps: 15e6, flows: [0, 2] },
      { link: "r1-r2", rate_bps: 20e6, flows: [1] },
    ]));
  it("may be the faster one alone", () => expect(queuesOf(at("r1-r2", "r1-r2"), links).map((it) => it.link)).toEqual(["r1-r2"]));
  it("without a bottleneck are the first recorded queue", () => expect(queuesOf(at(null), links)).toEqual([{ link: "r1-r2", rate_bps: 20e6, flows: [] }]));
  it("are none where none is recorded", () => expect(queuesOf(at("r1-r2"), [])).toEqual([]));
  it("have the names of their flows", () => {
    expect(titleOf({ link: "r2-x", rate_bps: 1, flows: [0, 2] }, ["a", "b", "c"])).toBe("r2-x: a, c");
    expect(titleOf({ link: "r2-x", rate_bps: 1, flows: [0, 1, 2, 3, 4] }, ["a", "b", "c", "d", "e"])).toBe("r2-x: a, b, c, d and 1 more");
  });
  it("give two flows one rate to share, or each its own", () => {
    expect(ratesOf(queuesOf(at("r1-r2", "r1-r2"), links))).toEqual({ shared: 20e6 });
    expect(ratesOf(queuesOf(at("r2-x", "r1-r2"), links))).toEqual({ each: [15e6, 20e6] });
  });
});
