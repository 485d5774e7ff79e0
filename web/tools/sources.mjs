// One sum over everything that the built page depends on. server/ui's tests make the same one in Python.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FILES = ["index.html", "package-lock.json", "tsconfig.json", "vite.config.ts"];
const FOLDERS = ["public", "src"];

/** @param {string} root of web/ */
export function sumOfSources(root) {
  const listed = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root === "." ? 0 : root.length + 1)),
  );
  const sum = createHash("sha256");
  for (const path of [...FILES, ...listed].map((path) => path.replaceAll("\\", "/")).sort()) {
    sum.update(`${path}\0`).update(readFileSync(join(root, path))).update("\0");
  }
  return sum.digest("hex");
}
