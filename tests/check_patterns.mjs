// Has recheck judge the patterns that `pattern_load.py javascript` prints, and prints those that it finds slow.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, file] = process.argv.slice(2);
const { checkSync } = createRequire(join(folder, "x.js"))("recheck");
const counts = {};
for (const { place, source, flags } of JSON.parse(readFileSync(file, "utf8"))) {
  const { status, complexity, attack } = checkSync(source, flags, { timeout: 5000 });
  counts[status] = (counts[status] ?? 0) + 1;
  if (status === "vulnerable") console.log(`${place}: ${source}\n  ${complexity.summary}: ${attack.pattern}`);
}
console.log(JSON.stringify(counts));
process.exit(counts.vulnerable ? 1 : 0);
