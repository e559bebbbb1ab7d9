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

function ticks(low, high, count) {
  const step = stepOf(high - low || 1, count),
    list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) list.push(i * step);
  return list;
}

export function shortNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${Math.round(value / 1e3)} k`;
  if (size >= 1e-3) return String(Number(value.toPrecision(4)));
  return value.toExponential(1);
}

// series: [{name, points: [[step, value], …]}]; series without points are left out.
export function lineChart(title, series) {
  const shown = series.filter((s) => s.points.length);
  const all = shown.flatMap((s) => s.points);
  const xs = all.map(([x]) => x),
    ys = all.map(([, y]) => y);
  // An outlier, such as the first step's loss, must not flatten the curve.
  const sorted = [...ys].sort((a, b) => a - b);
  let low = sorted[0],
    high = sorted[sorted.length - 1];
  const almost = sorted[Math.floor(sorted.length * 0.98)];
  if (sorted.length > 50 && high - low > 3 * (almost - low)) high = almost;
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  low = low >= 0 ? Math.max(0, low - pad) : low - pad;
  high += pad;
  const from = Math.min(...xs),
    to = Math.max(...xs, from + 1);
  const levels = ticks(low, high, 5),
    left = 12 + letter * Math.max(3, ...levels.map((value) => shortNumber(value).length));
  const x = (value) => left + ((value - from) / (to - from)) * (width - left - right);
  const y = (value) => top + (1 - (Math.min(value, high) - low) / (high - low)) * (height - top - bottom);
  const latest = shown.map((s) => `${s.name} ${shortNumber(s.points.at(-1)[1])}`).join(", ");
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${title}, at step ${to}: ${latest}`,
  });
  for (const value of levels) {
    picture.append(
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "label", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shortNumber(value)),
    );
  }
  for (const value of ticks(from, to, 4)) {
    // Keep the label inside the picture.
    const text = shortNumber(value),
      half = (letter * text.length) / 2;
    picture.append(
      svg(
        "text",
        {
          class: "label",
          x: Math.max(half + 1, Math.min(x(value), width - half - 1)),
          y: height - 8,
          "text-anchor": "middle",
        },
        text,
      ),
    );
  }
  shown.forEach((s, i) => {
    picture.append(
      svg("path", {
        class: `curve series-${i}`,
        d: `M${s.points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L")}`,
      }),
    );
    if (s.points.length < 16)
      s.points.forEach(([a, b]) =>
        picture.append(svg("circle", { class: `dot series-${i}`, cx: x(a), cy: y(b), r: 2 })),
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
    tell(to);
  });
  tell(to);
  return el("figure", { class: "card chart" }, el("h3", {}, title), picture, legend);
}
