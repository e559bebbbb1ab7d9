// A one-line description of a head's attention pattern.
import { percent } from "./heed.js";

const clear = 0.4; // mean attention weight from which a pattern is named

const mean = (list) => list.reduce((sum, x) => sum + x, 0) / (list.length || 1);

export function patternOf({ weights, kind, keys }) {
  // The first rows of causal attention have only one or two keys and say nothing about the head.
  const rows = weights.map((row, q) => ({ row, q })).slice(kind === "decoder" && weights.length > 2 ? 2 : 0);
  const at = (place) => mean(rows.map(({ row, q }) => row[place(q)] ?? 0));
  const patterns = [["the first token", at(() => 0)]];
  if (kind !== "decoder") patterns.push(["the last token", at(() => keys.length - 1)]);
  if (kind !== "cross") patterns.push(["the token itself", at((q) => q)], ["the previous token", at((q) => q - 1)]);
  if (kind === "encoder") patterns.push(["the next token", at((q) => q + 1)]);
  const [name, share] = patterns.reduce((best, pattern) => (pattern[1] > best[1] ? pattern : best));
  if (share >= clear) return `Mostly ${name}: ${percent(share)}`;
  // Perplexity e^entropy: the effective number of tokens attended to.
  const spread = mean(rows.map(({ row }) => Math.exp(-row.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0))));
  return spread < 2.5
    ? `Sharp: about ${spread.toFixed(1)} tokens at a time`
    : `Spread over about ${Math.round(spread)} tokens`;
}
