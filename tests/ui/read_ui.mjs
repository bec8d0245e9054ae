// Reads a file of server-sent events with the official client of its form, and prints what that makes of it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, form, file] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(join(folder, "x.js")).resolve(name)).href);
const text = readFileSync(file, "utf8");
const bad = [];
if (form === "ai_sdk") {
  const ai = await load("ai");
  const parsed = ai.parseJsonEventStream({ stream: new Blob([text]).stream(), schema: ai.uiMessageChunkSchema });
  const stream = parsed.pipeThrough(
    new TransformStream({
      transform(chunk, out) {
        if (chunk.success) out.enqueue(chunk.value);
        else bad.push(String(chunk.error));
      },
    }),
  );
  let last;
  const onError = (error) => {
    if (!String(error).includes("ValueError")) bad.push(String(error));
  };
  for await (const message of ai.readUIMessageStream({ stream, onError })) last = message;
  console.log(JSON.stringify({ bad, parts: last?.parts ?? [] }));
} else {
  const { EventSchemas } = await load("@ag-ui/core/schemas");
  const types = [];
  for (const line of text.split("\n\n").filter(Boolean)) {
    const read = EventSchemas.safeParse(JSON.parse(line.slice(5)));
    if (read.success) types.push(read.data.type);
    else bad.push(line);
  }
  console.log(JSON.stringify({ bad, types }));
}
