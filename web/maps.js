// One attention head, drawn as a map (rows are queries, columns are keys) or as lines between two token columns.
import { percent, svg, visible } from "./heed.js";

const largest = 30,
  smallest = 11,
  letter = 7.3;

const widthOf = (tokens) => 14 + letter * Math.max(...tokens.map((token) => visible(token.text).length));

function describe({ weights, queries, keys }, q) {
  const best = weights[q]
    .map((weight, k) => ({ weight, k }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 3);
  const seen = best.map(({ weight, k }) => `${visible(keys[k].text)} ${percent(weight)}`);
  return `${visible(queries[q].text)} attends to ${seen.join(", ")}`;
}

// Calls work(true) on hover and keyboard focus, work(false) at their end.
function onPoint(element, work) {
  element.addEventListener("pointerenter", () => work(true));
  element.addEventListener("pointerleave", () => work(false));
  element.addEventListener("focus", () => work(true));
  element.addEventListener("blur", () => work(false));
}

function picture(head, width, height, id) {
  return svg("svg", {
    role: "group",
    "aria-label": `Attention of ${head.name}`,
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    id,
  });
}

export function drawMap(head, room, on) {
  const { weights, queries, keys } = head;
  const left = widthOf(queries),
    top = widthOf(keys);
  const cell = Math.max(smallest, Math.min(largest, Math.floor((room - left - 6) / keys.length)));
  const font = Math.min(12, cell),
    gap = cell > 16 ? 2 : 1;
  const drawn = picture(head, left + keys.length * cell + 4, top + queries.length * cell + 4, "lens-map");
  const cells = weights.map((row, q) =>
    row.map((weight, k) =>
      svg(
        "rect",
        {
          class: "cell",
          x: left + k * cell + gap / 2,
          y: top + q * cell + gap / 2,
          width: cell - gap,
          height: cell - gap,
          rx: cell / 9,
          "fill-opacity": Math.sqrt(weight).toFixed(4),
        },
        svg("title", {}, `${visible(queries[q].text)} → ${visible(keys[k].text)}: ${percent(weight)}`),
      ),
    ),
  );
  const columns = keys.map((token, k) => {
    const name = svg(
      "text",
      {
        class: "column",
        "font-size": font,
        transform: `translate(${left + (k + 0.5) * cell + font / 3} ${top - 6}) rotate(-90)`,
      },
      visible(token.text),
    );
    onPoint(name, (isOn) => {
      cells.forEach((row) => row.forEach((rect, other) => rect.classList.toggle("dim", isOn && other !== k)));
      columns.forEach((other) => other.classList.toggle("dim", isOn && other !== name));
      if (isOn) on.key(k);
    });
    return name;
  });
  const rows = queries.map((token, q) => {
    const row = svg(
      "g",
      { tabindex: q ? -1 : 0, role: "img", "aria-label": describe(head, q) },
      svg("rect", { x: 0, y: top + q * cell, width: left + keys.length * cell, height: cell, fill: "transparent" }),
      svg(
        "text",
        { x: left - 8, y: top + (q + 0.5) * cell + font / 3, "text-anchor": "end", "font-size": font },
        visible(token.text),
      ),
      cells[q],
    );
    onPoint(row, (isOn) => {
      rows.forEach((other) => other.classList.toggle("dim", isOn && other !== row));
      if (isOn) on.query(q);
    });
    return row;
  });
  drawn.append(...columns, ...rows);
  return drawn;
}

export function drawLines(head, room, on) {
  const { weights, queries, keys } = head;
  const step = 24,
    left = widthOf(queries),
    right = widthOf(keys);
  const width = Math.min(room, left + right + 260),
    from = left + 4,
    to = width - right - 4;
  const height = Math.max(queries.length, keys.length) * step + 8;
  const y = (i) => 4 + (i + 0.5) * step;
  const drawn = picture(head, width, height, "lens-lines");
  const names = keys.map((token, k) => svg("text", { x: to + 8, y: y(k) + 4, "font-size": 12 }, visible(token.text)));
  const rows = queries.map((token, q) => {
    const row = svg(
      "g",
      { tabindex: q ? -1 : 0, role: "img", "aria-label": describe(head, q) },
      svg("rect", { x: 0, y: y(q) - step / 2, width: left, height: step, fill: "transparent" }),
      svg("text", { x: left - 6, y: y(q) + 4, "text-anchor": "end", "font-size": 12 }, visible(token.text)),
      // Weights below 2 % are not drawn.
      weights[q].map((weight, k) =>
        weight < 0.02
          ? null
          : svg("path", {
              class: "line",
              d: `M${from} ${y(q)}C${(from + to) / 2} ${y(q)} ${(from + to) / 2} ${y(k)} ${to} ${y(k)}`,
              "stroke-opacity": weight.toFixed(3),
              "stroke-width": (1 + 2.5 * weight).toFixed(2),
            }),
      ),
    );
    onPoint(row, (isOn) => {
      rows.forEach((other) => other.classList.toggle("gone", isOn && other !== row));
      names.forEach((name, k) => name.classList.toggle("dim", isOn && weights[q][k] < 0.02));
      if (isOn) on.query(q);
    });
    return row;
  });
  drawn.append(...rows, ...names);
  return drawn;
}
