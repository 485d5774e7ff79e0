// What "Compare with…" requests: a run searches again what it searched.

import { expect, test } from "vitest";
import type { Trace } from "../src/api/types.gen";
import { again, messagesOf, turnsBefore } from "../src/run/again";

const trace = (given: object) => ({ question: "q", history: [], ...given }) as unknown as Trace;

test.each([
  ["the server's sources", {}, {}],
  ["chosen sources", { only: ["web"] }, { sources: ["web"] }],
  ["a library", { libraries: ["vs_1"], library_state: "abc" }, { libraries: ["vs_1"] }],
  ["a file", { files: ["file-1"], libraries: ["vs_1"], library_state: "abc" }, { files: ["file-1"], libraries: ["vs_1"] }],
  ["libraries and sources", { libraries: ["vs_1"], library_state: "abc and sources" }, { sources: ["all"], libraries: ["vs_1"] }],
  ["a follow-up of a run of a library, over the sources", { libraries: ["vs_1"], follow_up: { text: "q" } }, {}],
  ["an older run, whose trace has no state", { libraries: ["vs_1"] }, { libraries: ["vs_1"] }],
])("%s", (_, given, wanted) => {
  const { sources, libraries, files } = again(trace(given));
  expect({ sources, libraries, files }).toEqual({ sources: undefined, libraries: undefined, files: undefined, ...wanted });
});

test.each([
  ["as they were sent", { history: [["a", "b"]] }, [["a", "b"]]],
  ["not as a follow-up read them", { history: [["a", "b and its claims"]], follow_up: { text: "q", history: [["a", "b"]] } }, [["a", "b"]]],
  ["none, where a follow-up was sent alone", { history: [["a", "b"]], follow_up: { text: "q" } }, []],
])("the turns before a run: %s", (_, given, wanted) => expect(turnsBefore(trace(given))).toEqual(wanted));

test("a question stands behind the turns before it", () => {
  expect(messagesOf([["a", "b"]], "q")).toEqual([
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "user", content: "q" },
  ]);
});
