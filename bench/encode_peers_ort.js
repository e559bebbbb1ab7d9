// node encode_peers_ort.js MODEL.onnx SEQUENCES THREADS SECONDS: the speed of ONNX Runtime, as one JSON object.
'use strict';
const ort = require('onnxruntime-node');

const LENGTH = 128, VOCABULARY = 30522;

async function main() {
  const file = process.argv[2];
  const [sequences, threads, seconds] = process.argv.slice(3).map(Number);
  const session = await ort.InferenceSession.create(
      file, {intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all'});
  const ids = BigInt64Array.from({length: sequences * LENGTH},
                                 () => BigInt(Math.floor(Math.random() * VOCABULARY)));
  const feeds = {ids: new ort.Tensor('int64', ids, [sequences, LENGTH])};
  const time = async () => {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    return Number(process.hrtime.bigint() - start) / 1e9;
  };
  await time();  // warm-up
  let best = Infinity;
  const start = process.hrtime.bigint();
  for (let runs = 0; runs < 3 || Number(process.hrtime.bigint() - start) < 1e9 * seconds; ++runs) {
    best = Math.min(best, await time());
  }
  console.log(JSON.stringify({tokens_per_second: sequences * LENGTH / best, batch_ms: 1e3 * best,
                              peak_rss_bytes: 1024 * process.resourceUsage().maxRSS}));
}
main();
