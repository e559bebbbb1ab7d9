// What a head does, in words: most heads have a habit that one can see.
import { percent } from "./heed.js";

const clear = 0.4; // of the attention, on the mean: less is no habit

const mean = (list) => list.reduce((sum, x) => sum + x, 0) / (list.length || 1);

export function habitOf({ weights, kind, keys }) {
  // The first tokens of a text that reads backwards have nowhere else to look.
  const rows = weights.map((row, q) => ({ row, q })).slice(kind === "decoder" && weights.length > 2 ? 2 : 0);
  const at = (place) => mean(rows.map(({ row, q }) => row[place(q)] ?? 0));
  const habits = [["the first token", at(() => 0)]];
  if (kind !== "decoder") habits.push(["the last token", at(() => keys.length - 1)]);
  if (kind !== "cross") habits.push(["the token itself", at((q) => q)], ["the token before", at((q) => q - 1)]);
  if (kind === "encoder") habits.push(["the token after", at((q) => q + 1)]);
  const [name, share] = habits.reduce((best, habit) => (habit[1] > best[1] ? habit : best));
  if (share >= clear) return `Mostly at ${name}: ${percent(share)}`;
  // e^entropy: among how many tokens equal shares would be as undecided.
  const spread = mean(rows.map(({ row }) => Math.exp(-row.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0))));
  return spread < 2.5
    ? `Sharp: about ${spread.toFixed(1)} tokens at a time`
    : `Spread over about ${Math.round(spread)} tokens`;
}
