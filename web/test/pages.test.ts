import { describe, expect, it } from "vitest";
import type { DocumentPassage } from "../src/api/types.gen";
import { lastPage, pagesOf } from "../src/run/pages";

const text = "🎬 The film.\n\nLina Orr directed it.";
const passage: DocumentPassage = { id: "file-1#1", title: "Falls", text, start: 0, end: 34, page: 4, page_breaks: [13] };

describe("a passage on two pages", () => {
  it("has the quoted words on the page that they stand on", () => {
    expect(pagesOf(passage, 13, 21)).toEqual([
      { page: 4, text: ["🎬 The film.", "", ""] },
      { page: 5, text: ["", "Lina Orr", " directed it."] },
    ]);
    expect(lastPage(passage)).toBe(5);
  });
  it("marks words on both pages that they stand on", () => {
    expect(pagesOf(passage, 6, 21).map(({ text }) => text[1])).toEqual(["film.", "Lina Orr"]);
  });
  it("leaves out a page in between that is empty, and counts it", () => {
    expect(pagesOf({ ...passage, page_breaks: [11, 13] }, 0, 0).map(({ page }) => page)).toEqual([4, 6]);
  });
});

it("a document without pages is one part", () => {
  expect(pagesOf({ ...passage, page: 0, page_breaks: [] }, 6, 10)).toEqual([
    { page: 0, text: ["🎬 The ", "film", ".\n\nLina Orr directed it."] },
  ]);
});
