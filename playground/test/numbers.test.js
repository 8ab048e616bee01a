// Numbers in the report's viewer have the texts of Python and Rust.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { digits, percent } from "../../python/dragstrip/report/viewer/data.js";

const cases = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../tests/numbers.json"), "utf8"));

describe("numbers in the viewer", () => {
  it.each(cases.digits)("digits of %s are %s", (value, text) => expect(digits(value)).toBe(text));
  it.each(cases.percent)("a share of %s is %s", (value, text) => expect(percent(value)).toBe(text));
});
