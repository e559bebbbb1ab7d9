// How a model tells positions apart, drawn from its settings.
import { el, svg } from "./heed.js";

const width = 640, height = 190, left = 44, bottom = 26;

export function positionFigure(settings) {
  const draw = { sinusoidal, rope, alibi, t5_bias: t5, learned, none }[settings.position];
  return (draw ?? none)(settings);
}

function plot(curves, { from, to, low, high, axis, caption }) {
  const x = (value) => left + ((value - from) / (to - from)) * (width - left - 8);
  const y = (value) => 8 + ((high - value) / (high - low)) * (height - bottom - 16);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": caption },
    svg("line", { class: "axis", x1: left, x2: width - 8, y1: y(Math.max(low, 0)), y2: y(Math.max(low, 0)) }),
    svg("line", { class: "axis", x1: left, x2: left, y1: 8, y2: height - bottom }),
    svg("text", { class: "label", x: left - 6, y: y(high) + 8, "text-anchor": "end" }, String(high)),
    svg("text", { class: "label", x: left - 6, y: y(low), "text-anchor": "end" }, String(low)),
    svg("text", { class: "label", x: width - 8, y: height - 6, "text-anchor": "end" }, `${axis} ${to}`),
    svg("text", { class: "label", x: left, y: height - 6 }, String(from)),
    curves.map(({ points, name }, i) => svg("path", { class: "curve", stroke: `hsl(${210 + i * 47} 55% 55%)`, d: "M" + points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L") }, svg("title", {}, name))));
  return el("figure", {}, picture, el("figcaption", {}, caption));
}

const range = (count, step = 1) => Array.from({ length: count }, (_, i) => i * step);

// sin(pos / 10000^(2i/d)): slow and fast waves, like the digits of a counter.
function sinusoidal(settings) {
  const half = settings.width / 2;
  const curves = [0, 0.15, 0.3, 0.5].map((share) => {
    const i = Math.round(share * half);
    return { name: `dimension ${2 * i}`, points: range(401, 0.25).map((pos) => [pos, Math.sin(pos / 10000 ** (i / half))]) };
  });
  return plot(curves, { from: 0, to: 100, low: -1, high: 1, axis: "position", caption: "Sinusoids are added to the embeddings: every dimension is a wave of its own length, so a position is written like a number in digits that turn ever more slowly." });
}

// The mean of cos(distance × angle): how alike a query and a key stay when they are turned apart.
function rope(settings) {
  const dimensions = Math.max(2, Math.round((settings.head_dim || settings.width / settings.heads) * (settings.rope_fraction ?? 1)));
  const angles = range(dimensions / 2).map((i) => (settings.rope_base ?? 10000) ** ((-2 * i) / dimensions));
  const points = range(257).map((distance) => [distance, angles.reduce((sum, angle) => sum + Math.cos(distance * angle), 0) / angles.length]);
  return plot([{ name: "likeness", points }], { from: 0, to: 256, low: -0.2, high: 1, axis: "distance", caption: "Rotary positions turn queries and keys by an angle that grows with their place: two equal vectors look less alike the further apart they stand." });
}

function alibi(settings) {
  const heads = settings.heads;
  const curves = range(heads).map((h) => ({ name: `head ${h + 1}`, points: range(65).map((distance) => [distance, Math.exp(-distance * 2 ** ((-8 * (h + 1)) / heads))]) }));
  return plot(curves, { from: 0, to: 64, low: 0, high: 1, axis: "distance", caption: "ALiBi lowers a score in proportion to the distance, in each head by another slope: what is left of a token's weight." });
}

const prose = (text) => el("p", { class: "soft" }, text);
const t5 = (settings) => prose(`T5's positions are a learnt number for each head and each of ${settings.t5_buckets ?? 32} ranges of distance, added to the attention's scores: near tokens have ranges of their own, far ones share.`);
const learned = (settings) => prose(`Positions are learnt: a vector for each of ${settings.max_positions} places is added to the token's own. Beyond them the model cannot read.`);
const none = () => prose("This model is not told where a token stands.");
