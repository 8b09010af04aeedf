import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, csv, error, number, share, step, token } from "../../../src/regard/web/page/format.js";

test("a share has three digits, and says when it is small, masked or not there", () => {
  assert.deepEqual([0.83123, 0.0001, 0, 1, NaN, null].map(share), ["0.831", "<0.001", "0.000", "1.000", "masked", "–"]);
});

test("numbers are short, with a true minus", () => {
  assert.deepEqual([-7.6094, 102.84, 1e-6, 0, -Infinity, 123456].map(number), ["−7.609", "102.8", "1.0e−6", "0.000", "−∞", "1.2e+5"]);
});

test("an error bound", () => {
  assert.deepEqual([2.4e-7, 0, null].map(error), ["2.4e−7", "0", "–"]);
});

test("sizes", () => {
  assert.deepEqual([12, 344_000, 51_200_000].map(bytes), ["1 kB", "344 kB", "51.2 MB"]);
});

test("tokens of white space are seen, long ones cut by characters, markup stays text", () => {
  assert.equal(token(" Hund"), "Hund");
  assert.equal(token("  "), "␣␣");
  assert.equal(token("\n"), "⏎");
  assert.equal(token(""), "∅");
  assert.equal(token("<img src=x onerror=alert(1)>", 60), "<img src=x onerror=alert(1)>");
  assert.equal(token("👩‍👩‍👧".repeat(30), 5).length < 20, true);
  assert.equal(token("abcdefgh", 4), "abc…");
});

test("a row of a decoder is told by what it reads and what it writes", () => {
  assert.equal(step(" der", " Hund"), "reads der, writes Hund");
  assert.equal(step(" der", ""), "der");
});

test("CSV quotes what needs it", () => {
  assert.equal(csv([["a,b", 'c"d', "e\nf"], [1, "x", ""]]), '"a,b","c""d","e\nf"\r\n1,x,\r\n');
});
