// What is dropped on the page: folders searched through, and what may not be read.

import { expect, test } from "vitest";
import { droppedFiles, nameOf, plainFiles } from "../src/app/dropped";

const file = (name: string) => ({ name: name.split("/").at(-1), isFile: true, fullPath: name, file: (take: (file: File) => void) => take(new File(["x"], name)) });
const locked = (name: string) => ({ name, isFile: true, fullPath: name, file: (_: unknown, fail: (error: Error) => void) => fail(new Error(`${name} may not be read`)) });
const folder = (name: string, inside: object[]) => ({
  name,
  isFile: false,
  createReader: () => ({ readEntries: (take: (some: object[]) => void) => take(inside.splice(0, 1)) }),
});
const dropped = (...entries: object[]) => entries.map((entry) => ({ webkitGetAsEntry: () => entry, getAsFile: () => null })) as unknown as DataTransferItemList;

test("a file that may not be read is said, and costs no other file", async () => {
  const failures: unknown[] = [];
  const items = dropped(folder("a", [file("/a/one.md"), locked("two.md"), folder("b", [file("/a/b/three.md")]), file("/a/.hidden")]), locked("four.md"), file("/five.md"));
  const found = await droppedFiles(items, (error) => failures.push((error as Error).message));
  expect(found.map(nameOf)).toEqual(["a/one.md", "a/b/three.md", "five.md"]);
  expect(failures).toEqual(["two.md may not be read", "four.md may not be read"]);
});

test("of a folder that was chosen, what is hidden stays where it is, as of one that was dropped", () => {
  const chosen = ["p/x.md", "p/.env", "p/.git/config", "p/a/.ssh/key", ".p/y.md"].map((path) => ({ name: path.split("/").at(-1), webkitRelativePath: path }));
  expect(plainFiles([...chosen, { name: "z.md", webkitRelativePath: "" }] as File[]).map(nameOf)).toEqual(["p/x.md", "z.md"]);
});
