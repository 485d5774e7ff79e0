// Makes src/api/types.gen.ts of schema.json. The sum in its first line is what a test without Node compares.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const schema = readFileSync("schema.json", "utf8");
const sum = createHash("sha256").update(schema).digest("hex");
const bannerComment = `// Made of schema.json by tools/types.mjs; sha256 of it: ${sum}`;
const text = await compile(JSON.parse(schema), "Api", { bannerComment, additionalProperties: false, format: false, ignoreMinAndMaxItems: true });
writeFileSync("src/api/types.gen.ts", text);
