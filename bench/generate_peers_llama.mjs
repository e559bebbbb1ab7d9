// node generate_peers_llama.mjs MODEL.gguf PROMPT NEW_TOKENS THREADS SECONDS: the speed of llama.cpp (by
// node-llama-cpp), as one JSON object.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

// import ignores NODE_PATH, which has the package.
const entry = createRequire(import.meta.url).resolve('node-llama-cpp');
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(entry));

const file = process.argv[2];
const [promptTokens, newTokens, threads, seconds] = process.argv.slice(3).map(Number);
const VOCABULARY = 50257;

const llama = await getLlama({gpu: false, build: 'never', progressLogs: false, maxThreads: threads,
                              logLevel: LlamaLogLevel.error});
const model = await llama.loadModel({modelPath: file});
const context = await model.createContext({contextSize: promptTokens + newTokens, batchSize: promptTokens, threads,
                                           sequences: 1});
const sequence = context.getSequence();
const now = () => Number(process.hrtime.bigint()) / 1e9;

// One request: seconds until the first token (prefill), and from it to the last (decode).
async function answer() {
  await sequence.clearHistory();
  const prompt = Array.from({length: promptTokens}, () => Math.floor(Math.random() * (VOCABULARY - 1)));
  const start = now();
  let first = 0, tokens = 0;
  for await (const _ of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    if (++tokens === 1) first = now();
    if (tokens === newTokens) break;
  }
  return {prompt: first - start, rest: now() - first};
}

await answer();
const best = {prompt: Infinity, rest: Infinity};
const start = now();
for (let runs = 0; runs < 2 || now() - start < seconds; ++runs) {
  const times = await answer();
  best.prompt = Math.min(best.prompt, times.prompt);
  best.rest = Math.min(best.rest, times.rest);
}
console.log(JSON.stringify({
  prompt_tokens_per_second: promptTokens / best.prompt,
  tokens_per_second: (newTokens - 1) / best.rest,
  peak_rss_bytes: 1024 * process.resourceUsage().maxRSS,
}));
process.exit(0);  // the package's timers would keep the process alive
