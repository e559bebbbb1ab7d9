// Starts a server with a tiny model of every kind.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const golden = join(process.env.HEED_GOLDEN, "models");
const words = [
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "[MASK]",
  "the",
  "cat",
  "sat",
  "on",
  "mat",
  "dog",
  "run",
  "##s",
  "fast",
  "she",
  "lives",
  "in",
  "new",
  "york",
  ".",
  "a",
  "is",
];
while (words.length < 100) words.push(`w${words.length}`); // the models have 100 ids

// A running training and a finished sweep.
function writeRuns(folder) {
  const lines = [{ kind: "start", step: 0, steps: 300, parameters: 2_605_056 }];
  for (let step = 10; step <= 200; step += 10) {
    lines.push({
      kind: "train",
      step,
      loss: 1 + 8 * Math.exp(-step / 60),
      learning_rate: Math.min(step, 100) / 1e5,
      gradient_norm: 1,
      seconds: step,
      tokens_per_second: 9000 + step,
    });
    if (step % 50 === 0)
      lines.push({
        kind: "validate",
        step,
        loss: 1.2 + 8 * Math.exp(-step / 60),
        bleu: step / 10,
        samples: [`source: the cat\n  output: step ${step}\n  wanted: die Katze`],
      });
  }
  // A training that has just begun, and one whose values differ little.
  for (const [name, records] of [
    ["one", [{ kind: "train", step: 5, loss: 4.5, tokens_per_second: 12000 }]],
    [
      "level",
      [1, 2, 3].map((i) => ({ kind: "train", step: i, loss: 2 + i / 1000, tokens_per_second: 16000 + 400 * i })),
    ],
  ]) {
    mkdirSync(join(folder, `runs/${name}`), { recursive: true });
    writeFileSync(join(folder, `runs/${name}/log.jsonl`), records.map((r) => JSON.stringify(r) + "\n").join(""));
  }
  mkdirSync(join(folder, "runs/live"), { recursive: true });
  writeFileSync(join(folder, "runs/live/log.jsonl"), lines.map((line) => JSON.stringify(line) + "\n").join(""));
  const row = (name, heads, bleu) => ({
    name,
    folder: `runs/table3/${name}`,
    status: "finished",
    changes: { "model.heads": heads },
    parameters: 2_605_056,
    steps: 300,
    seconds: 60,
    tokens: 600_000,
    validation: { bleu },
  });
  // A second sweep has a row of the same name.
  for (const sweep of ["table3", "table4"]) {
    mkdirSync(join(folder, `runs/${sweep}/four`), { recursive: true });
    writeFileSync(
      join(folder, `runs/${sweep}/four/log.jsonl`),
      `${JSON.stringify({ kind: "train", step: 1, loss: 4 })}\n`,
    );
  }
  writeFileSync(
    join(folder, "runs/table3/table.json"),
    JSON.stringify({
      recipe: "recipes/multi30k-en-de.toml",
      out: "runs/table3",
      columns: ["bleu"],
      rows: [row("one", "1", 20.5), row("four", "4", 24.25)],
    }),
  );
}

// A model of tests/golden/models for each name.
const sources = {
  "en-de": "marian",
  "de-en": "marian",
  gpt: "gpt2",
  mlm: "bert-mlm",
  labels: "bert-classify",
  pairs: "bert-classify",
  tags: "bert-tag",
  alibi: "bloom-alibi",
  rope: "llama-gqa",
  parser: "marian",
};

// With all models and the runs.
export const startServer = (...flags) =>
  startServerWith({ flags, models: Object.keys(sources).filter((name) => name !== "de-en") });

// Returns {url, folder, stop}; stop() resolves to the exit status.
export async function startServerWith({ models, flags = [], hasRuns = true }) {
  const folder = mkdtempSync(join(tmpdir(), "heed-web-"));
  if (hasRuns) writeRuns(folder);
  const args = ["serve", "--port", "0", "--threads", "1", ...flags];
  if (hasRuns) args.push("--runs", join(folder, "runs"));
  for (const name of models) {
    const source = sources[name];
    mkdirSync(join(folder, name));
    for (const file of ["config.json", "model.safetensors"])
      cpSync(join(golden, source, file), join(folder, name, file));
    // As training leaves them; the tagger's labels are parts of speech.
    const more = {
      parser: { finetuning_task: "parsing" },
      pairs: { heed_text_pairs: true },
      tags: { id2label: Object.fromEntries(["NOUN", "VERB", "PROPN", "ADJ", "ADP"].map((tag, i) => [i, tag])) },
    }[name];
    if (more)
      writeFileSync(
        join(folder, name, "config.json"),
        JSON.stringify({ ...JSON.parse(readFileSync(join(golden, source, "config.json"))), ...more }),
      );
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
    folder,
    log: () => log,
    async stop() {
      server.kill("SIGTERM");
      const code = await ended;
      rmSync(folder, { recursive: true });
      return code;
    },
  };
}
