// A line chart of values over training steps, with the values at the cursor.
import { el, svg } from "./heed.js";

const width = 330,
  height = 180,
  right = 12,
  top = 8,
  bottom = 26,
  letter = 6.7;

// A tick step of 1, 2 or 5 times a power of ten that gives about `count` ticks.
function stepOf(span, count) {
  const rough = span / count,
    power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((m) => m * power >= rough) ?? 10);
}

// The multiples of a round number from low to high. Training steps are whole numbers, and so are their ticks.
export function ticks(low, high, count, isWhole = false) {
  const rough = stepOf(high - low || 1, count),
    step = isWhole ? Math.max(1, rough) : rough,
    values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) values.push(i * step + 0);
  return { step, values };
}

// Labels with as many decimals as the distance of the ticks needs, so that neighbours differ.
export function tickLabels({ step, values }) {
  const most = Math.max(...values.map(Math.abs));
  if (most === 0) return values.map(String);
  const decimals = (unit) => Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  if (most < 1e-3) {
    const digits = Math.max(0, Math.floor(Math.log10(most) + 1e-9) - Math.floor(Math.log10(step) + 1e-9));
    return values.map((value) => (value === 0 ? "0" : value.toExponential(digits)));
  }
  const [unit, name] = most >= 1e6 ? [1e6, " M"] : most >= 1e4 ? [1e3, " k"] : [1, ""];
  return values.map((value) => (value === 0 ? "0" : `${(value / unit).toFixed(decimals(unit))}${name}`));
}

export function shortNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${Math.round(value / 1e3)} k`;
  if (size >= 1e-3) return String(Number(value.toPrecision(4)));
  return value.toExponential(1);
}

// The least and largest value to show; a single value is in the middle.
function rangeOf(ys) {
  const sorted = [...ys].sort((a, b) => a - b);
  let low = sorted[0],
    high = sorted[sorted.length - 1];
  if (low === high) {
    const room = Math.abs(low) / 2 || 1;
    return [low - room, high + room];
  }
  // An outlier, such as the first step's loss, must not flatten the curve.
  const almost = sorted[Math.floor(sorted.length * 0.98)];
  if (sorted.length > 50 && high - low > 3 * (almost - low)) high = almost;
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 ? Math.max(0, low - pad) : low - pad, high + pad];
}

// series: [{name, points: [[step, value], …]}]; series without points are left out.
export function lineChart(title, series) {
  const shown = series.filter((s) => s.points.length);
  const all = shown.flatMap((s) => s.points);
  const xs = all.map(([x]) => x);
  const [low, high] = rangeOf(all.map(([, y]) => y));
  let from = Math.min(...xs),
    to = Math.max(...xs);
  const last = to;
  if (from === to) [from, to] = [from - 1, to + 1]; // one point: in the middle
  const levels = ticks(low, high, 5),
    names = tickLabels(levels),
    left = 12 + letter * Math.max(3, ...names.map((name) => name.length));
  const x = (value) => left + ((value - from) / (to - from)) * (width - left - right);
  const y = (value) => top + (1 - (Math.min(value, high) - low) / (high - low)) * (height - top - bottom);
  const latest = shown.map((s) => `${s.name} ${shortNumber(s.points.at(-1)[1])}`).join(", ");
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${title}, at step ${last}: ${latest}`,
  });
  levels.values.forEach((value, i) =>
    picture.append(
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "label level", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, names[i]),
    ),
  );
  const steps = xs.every((step) => step === last) ? { step: 1, values: [last] } : ticks(from, to, 4, true);
  tickLabels(steps).forEach((text, i) => {
    // Keep the label inside the picture.
    const half = (letter * text.length) / 2;
    picture.append(
      svg(
        "text",
        {
          class: "label step",
          x: Math.max(half + 1, Math.min(x(steps.values[i]), width - half - 1)),
          y: height - 8,
          "text-anchor": "middle",
        },
        text,
      ),
    );
  });
  shown.forEach((s, i) => {
    picture.append(
      svg("path", {
        class: `curve series-${i}`,
        d: `M${s.points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L")}`,
      }),
    );
    if (s.points.length < 16)
      s.points.forEach(([a, b]) =>
        picture.append(
          svg("circle", { class: `dot series-${i}`, cx: x(a), cy: y(b), r: s.points.length === 1 ? 3.5 : 2 }),
        ),
      );
  });
  const line = svg("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
  picture.append(line);
  const legend = el("figcaption", { class: "legend" });
  function tell(step) {
    const values = shown.map((s) =>
      s.points.reduce((best, point) => (Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best)),
    );
    legend.replaceChildren(
      ...shown.flatMap((s, i) => [
        el("span", { class: `key series-${i}`, "aria-hidden": "true" }),
        el("span", {}, `${s.name} `, el("b", { class: "number" }, shortNumber(values[i][1]))),
      ]),
      el("span", { class: "soft number" }, `step ${values[0][0].toLocaleString("en")}`),
    );
    return values[0][0];
  }
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    const step = tell(from + ((at - left) / (width - left - right)) * (to - from));
    line.setAttribute("x1", x(step));
    line.setAttribute("x2", x(step));
    line.setAttribute("visibility", "visible");
  });
  picture.addEventListener("pointerleave", () => {
    line.setAttribute("visibility", "hidden");
    tell(last);
  });
  tell(last);
  return el("figure", { class: "card chart" }, el("h3", {}, title), picture, legend);
}
