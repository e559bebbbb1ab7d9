// The position encoding of a model, drawn from its settings.
import { el, svg } from "./heed.js";

const height = 220,
  left = 44,
  bottom = 26;
const colour = (i) => `hsl(${210 + i * 47} 60% 52%)`;

// Drawn `width` pixels wide.
export function positionFigure(settings, width) {
  const draw = { sinusoidal, rope, alibi, t5_bias: t5, learned, none }[settings.position];
  return (draw ?? none)(settings, Math.max(width, 240));
}

// curves: [{name, points: [[x, y], …], isFaint}]
function plot(curves, width, { to, axis, caption, extra }) {
  const ys = curves.flatMap(({ points }) => points.map(([, y]) => y));
  const low = Math.min(0, Math.floor(Math.min(...ys) * 5) / 5),
    high = 1;
  const x = (value) => left + (value / to) * (width - left - 8);
  const y = (value) => 8 + ((high - value) / (high - low)) * (height - bottom - 16);
  const line = (value) => [
    svg("line", { class: "axis", x1: left, x2: width - 8, y1: y(value), y2: y(value) }),
    svg(
      "text",
      { class: "label", x: left - 6, y: y(value) + 4, "text-anchor": "end" },
      String(value).replace("-", "−"),
    ),
  ];
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": caption },
    [...new Set([high, 0, low])].flatMap(line),
    svg("text", { class: "label", x: width - 8, y: height - 4, "text-anchor": "end" }, `${axis} ${to}`),
    svg("text", { class: "label", x: left, y: height - 4 }, "0"),
    curves.map(({ points, name, isFaint }, i) =>
      svg(
        "path",
        {
          class: "curve",
          stroke: colour(i),
          "stroke-opacity": isFaint ? 0.3 : 1,
          d: "M" + points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L"),
        },
        svg("title", {}, name),
      ),
    ),
  );
  const keys = curves.flatMap(({ name, isFaint }, i) => {
    const key = el("span", { class: "key", "aria-hidden": "true" });
    key.style.background = colour(i);
    key.style.opacity = isFaint ? 0.4 : 1;
    return [el("span", {}, key, name)];
  });
  return el("figure", {}, picture, el("div", { class: "keys" }, keys), extra ?? null, el("figcaption", {}, caption));
}

const range = (count, step = 1) => Array.from({ length: count }, (_, i) => i * step);

// sin(pos / 10000^(2i/d)).
function sinusoidal(settings, width) {
  const half = settings.width / 2,
    wave = (pos, i) => pos / 10000 ** (i / half);
  const curves = [...new Set([0, 0.12, 0.25, 0.45].map((share) => Math.round(share * half)))].map((i) => ({
    name: `dimension ${2 * i}`,
    points: range(401, 0.25).map((pos) => [pos, Math.sin(wave(pos, i))]),
  }));
  return plot(curves, width, {
    to: 100,
    axis: "position",
    extra: waves(settings.width, wave),
    caption:
      "Sinusoidal positions are added to the embeddings: each dimension is a sine or cosine of another wavelength. " +
      "Below, all of them: a row per dimension (sines first, then cosines), a column per position; blue is −1, " +
      "orange 1.",
  });
}

function waves(dimensions, wave) {
  const half = dimensions / 2,
    canvas = el("canvas", { class: "waves", width: 100, height: dimensions, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  for (let d = 0; d < dimensions; ++d) {
    for (let pos = 0; pos < 100; ++pos) {
      const value = d < half ? Math.sin(wave(pos, d)) : Math.cos(wave(pos, d - half));
      context.fillStyle = `hsl(${value < 0 ? 208 : 28} 62% 54% / ${Math.abs(value).toFixed(3)})`;
      context.fillRect(pos, d, 1, 1);
    }
  }
  return canvas;
}

// The mean of cos(distance × angle): the dot product of two equal unit vectors at that distance.
function rope(settings, width) {
  const dimensions = Math.max(
    2,
    Math.round((settings.head_dim || settings.width / settings.heads) * (settings.rope_fraction ?? 1)),
  );
  const angles = range(Math.floor(dimensions / 2)).map((i) => (settings.rope_base ?? 10000) ** ((-2 * i) / dimensions));
  const rotated = (list) =>
    range(257, 0.5).map((distance) => [
      distance,
      list.reduce((sum, angle) => sum + Math.cos(distance * angle), 0) / list.length,
    ]);
  const some = [...new Set([1, Math.floor(angles.length / 2), angles.length - 1])].filter(
    (i) => i > 0 && i < angles.length,
  );
  return plot(
    [
      { name: "all pairs together", points: rotated(angles) },
      ...some.map((i) => ({
        name: `pair ${i + 1} of ${angles.length} alone`,
        points: rotated([angles[i]]),
        isFaint: true,
      })),
    ],
    width,
    {
      to: 128,
      axis: "distance",
      caption:
        "Rotary positions (RoPE) rotate each pair of dimensions of queries and keys by an angle proportional to the " +
        "position, each pair at its own frequency, so that scores depend on the distance only. The curve is the dot " +
        "product of two equal vectors at that distance.",
    },
  );
}

function alibi(settings, width) {
  const heads = settings.heads;
  const curves = range(heads).map((h) => ({
    name: `head ${h + 1}`,
    points: range(129, 0.5).map((distance) => [distance, Math.exp(-distance * 2 ** ((-8 * (h + 1)) / heads))]),
  }));
  return plot(curves, width, {
    to: 64,
    axis: "distance",
    caption:
      "ALiBi subtracts slope × distance from the attention scores, with another slope in each head. The curve is " +
      "the factor by which a token's weight shrinks.",
  });
}

const prose = (text) => el("p", { class: "soft" }, text);
const t5 = (settings) =>
  prose(
    `T5's relative bias: a learned number per head and distance bucket (${settings.t5_buckets ?? 32} buckets) is ` +
      "added to the attention scores. Small distances have a bucket each, large ones share buckets.",
  );
const learned = (settings) =>
  prose(
    `Learned positions: a learned vector for each of ${settings.max_positions} positions is added to the token ` +
      "embedding. The context cannot be longer.",
  );
const none = () => prose("This model has no position encoding.");
