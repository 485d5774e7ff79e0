import { expect, test } from "vitest";
import { seconds } from "../src/run/labels";

test.each([
  [0, "0 ms"],
  [0.0004, "< 1 ms"],
  [0.9994, "999 ms"],
  [0.9996, "1.00 s"],
  [9.996, "10.0 s"],
  [59.96, "1 min 0 s"],
  [119.7, "2 min 0 s"],
  [150.2, "2 min 30 s"],
])("%f seconds are %s", (value, text) => {
  expect(seconds(value)).toBe(text);
});
