import { expect, it } from "vitest";
import { Reader } from "../src/api/sse";

const TEXT = ': hello\n\nid: 1.0\nevent: step\ndata: {"a":1}\n\nretry: 2000\n\nid: 1.3\nevent: delta\ndata: {"text":"a: b"}\n\n';
const WANTED = [
  { id: "1.0", event: "step", data: '{"a":1}' },
  { id: "1.3", event: "delta", data: '{"text":"a: b"}' },
];

it("reads the same messages however the text is cut", () => {
  for (let size = 1; size <= TEXT.length; size++) {
    const reader = new Reader();
    const pieces = TEXT.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
    expect(pieces.flatMap((piece) => reader.feed(piece))).toEqual(WANTED);
  }
});

it("holds back what is not whole", () => {
  const reader = new Reader();
  expect(reader.feed("id: 1.0\nevent: step\ndata: {}\n")).toEqual([]);
  expect(reader.feed("\n")).toHaveLength(1);
});
