import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bytesOf, unpack } from "../src/unpack";

/** What pack.py makes of bytes, as the page's text. */
function packed(bytes) {
  const folder = mkdtempSync(join(tmpdir(), "pack-"));
  writeFileSync(join(folder, "in"), bytes);
  execFileSync(process.env.PYTHON ?? "python3", [join(import.meta.dirname, "../pack.py"), join(folder, "in"), join(folder, "out")]);
  return readFileSync(join(folder, "out"), "utf8");
}

let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647);
const noise = Uint8Array.from({ length: 3000 }, () => random() & 255);
const far = new Uint8Array(300_000);
for (let at = 0; at < far.length; at += 1 + (random() % 400)) far[at] = random();
far.set(noise, 0);
far.set(noise, 290_000);

test.each([
  ["nothing", new Uint8Array()],
  ["a byte that HTML reads otherwise", Uint8Array.of(0)],
  ["all of them", Uint8Array.from({ length: 999 }, (_, at) => [0, 10, 13, 60][at % 4])],
  ["noise", noise],
  ["repetitions near and far", far],
])("%s comes back", (_name, bytes) => {
  const text = packed(bytes);
  expect(text).not.toMatch(/[\0\n\r<]/);
  expect(Buffer.compare(unpack(bytesOf(text)), bytes)).toBe(0);
}, 60_000);

test("what is damaged is no core", () => {
  const bytes = bytesOf(packed(noise));
  const whole = Buffer.from(unpack(bytes));
  bytes[200] ^= 8;
  let found = null;
  try {
    found = Buffer.from(unpack(bytes));
  } catch (error) {
    expect(String(error)).toMatch("damaged");
  }
  expect(found === null || Buffer.compare(found, whole) !== 0).toBe(true);
}, 60_000);
