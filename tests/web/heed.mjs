// A server with tiny models of every kind, for the tests here.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const golden = join(dirname(fileURLToPath(import.meta.url)), "../golden/models");
const words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "dog", "run", "##s", "fast", "she", "lives", "in", "new", "york", ".", "a", "is"];
while (words.length < 100) words.push(`w${words.length}`); // the models have 100 ids

// Returns {url, stop}; stop() resolves to the exit status.
export async function startServer(...flags) {
  const folder = mkdtempSync(join(tmpdir(), "heed-web-"));
  const models = { "en-de": "marian", gpt: "gpt2", mlm: "bert-mlm", labels: "bert-classify", tags: "bert-tag" };
  const args = ["serve", "--port", "0", "--threads", "1", ...flags];
  for (const [name, source] of Object.entries(models)) {
    mkdirSync(join(folder, name));
    for (const file of ["config.json", "model.safetensors"]) cpSync(join(golden, source, file), join(folder, name, file));
    writeFileSync(join(folder, name, "vocab.txt"), words.join("\n") + "\n");
    args.push("--model", `${name}=${join(folder, name)}`);
  }
  const server = spawn(process.env.HEED, args, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  server.stderr.on("data", (data) => (log += data));
  const ended = new Promise((resolve) => server.on("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    let out = "";
    server.stdout.on("data", (data) => {
      const found = (out += data).match(/http:\S+/);
      if (found) resolve(found[0]);
    });
    ended.then((code) => reject(new Error(`heed serve ended with ${code}: ${log}`)));
  });
  return {
    url,
    async stop() {
      server.kill("SIGTERM");
      const code = await ended;
      rmSync(folder, { recursive: true });
      return code;
    },
  };
}
