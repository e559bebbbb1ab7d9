// Draws the curves of report.html again: with values at the cursor, a log scale and smoothing. The SVGs in the page are
// for readers without scripts.
(() => {
  const W = 420,
    H = 210,
    L = 58,
    R = 10,
    T = 8,
    B = 28;
  const charts = JSON.parse(document.getElementById("curves-data").textContent);
  const log = document.getElementById("log"),
    smooth = document.getElementById("smooth");
  const figures = [...document.querySelectorAll("figure")];
  const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const short = (v) =>
    v === 0 ? "0" : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3 ? v.toExponential(3) : String(Number(v.toPrecision(5)));

  const roundStep = (span, count) => {
    const rough = span / count,
      power = 10 ** Math.floor(Math.log10(rough));
    return power * ([1, 2, 5].find((m) => m * power >= rough) ?? 10);
  };
  // Steps of a training are whole numbers.
  const ticks = (low, high, count, isWhole) => {
    let step = roundStep(high - low, count);
    if (isWhole) step = Math.max(1, step);
    const list = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && list.length < 20; ++i)
      list.push(i * step + 0);
    const digits = Math.max(...list.map((v) => (v ? Math.ceil(Math.log10(Math.abs(v) / step)) + 1 : 1)), 1);
    return list.map((v) => [
      v,
      v === 0
        ? "0"
        : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-3
          ? v.toExponential(Math.min(digits - 1, 20))
          : String(Number(v.toPrecision(Math.min(Math.max(digits, 1), 21)))),
    ]);
  };
  const logTicks = (low, high) => {
    const list = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); ++e)
      for (const m of [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) list.push(m * 10 ** e);
    const decades = list.filter((v) => Number.isInteger(Math.round(1e9 * Math.log10(v)) / 1e9));
    const chosen = list.length < 12 ? list : decades;
    return chosen.length > 1 ? chosen.map((v) => [v, short(v)]) : ticks(low, high, 4, false);
  };
  // The exponential moving average, corrected for its start as in TensorBoard.
  const smoothed = (points, weight) => {
    let sum = 0,
      total = 0;
    return points.map(([x, y]) => {
      sum = weight * sum + (1 - weight) * y;
      total = weight * total + (1 - weight);
      return [x, sum / total];
    });
  };

  function draw(figure, chart) {
    const weight = Number(smooth.value);
    const curves = chart.curves.map((c) => ({ ...c, shown: weight ? smoothed(c.points, weight) : c.points }));
    const all = curves.flatMap((c) => c.points),
      ys = all.map((p) => p[1]);
    const isLog = log.checked && ys.every((y) => y > 0);
    let low = Math.min(...ys),
      high = Math.max(...ys),
      from = Math.min(...all.map((p) => p[0])),
      to = Math.max(...all.map((p) => p[0]));
    const steps = from === to ? [[from, String(from)]] : ticks(from, to, 6, true);
    if (from === to) [from, to] = [from - 1, to + 1];
    if (high - low <= 1e-9 * Math.abs(high)) {
      const room = Math.abs(high) / 4 || 0.5;
      [low, high] = [low - room, high + room];
    }
    const scale = isLog ? Math.log : (v) => v;
    const x = (v) => L + ((v - from) / (to - from)) * (W - L - R);
    const y = (v) => H - B - ((scale(v) - scale(low)) / (scale(high) - scale(low))) * (H - T - B);
    const levels = isLog ? logTicks(low, high) : ticks(low, high, 5, false);
    const line = (points) =>
      points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
    const parts = levels.map(
      ([v, text]) =>
        `<line class="grid" x1="${L}" x2="${W - R}" y1="${y(v)}" y2="${y(v)}"/>` +
        `<text x="${L - 6}" y="${y(v) + 4}" text-anchor="end">${text}</text>`,
    );
    for (const [v, text] of steps)
      parts.push(`<text x="${Math.min(x(v), W - 4 * text.length)}" y="${H - 10}" text-anchor="middle">${text}</text>`);
    curves.forEach((c, i) => {
      if (weight) parts.push(`<path class="c${i} raw" d="${line(c.points)}"/>`);
      parts.push(`<path class="c${i}" d="${line(c.shown)}"/>`);
      if (c.points.length < 16)
        for (const p of c.shown) parts.push(`<circle class="c${i}" cx="${x(p[0])}" cy="${y(p[1])}" r="3"/>`);
    });
    figure.querySelector("svg").outerHTML =
      `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escape(chart.title)}">` +
      `${parts.join("")}<line class="cursor" y1="${T}" y2="${H - B}" visibility="hidden"/></svg>`;
    const picture = figure.querySelector("svg"),
      cursor = picture.querySelector(".cursor");
    const legend = figure.querySelector(".legend");
    const tell = (step) => {
      const nearest = (points) => points.reduce((a, b) => (Math.abs(b[0] - step) < Math.abs(a[0] - step) ? b : a));
      const at = nearest(curves.flatMap((c) => c.points))[0];
      legend.innerHTML =
        curves
          .map((c, i) => {
            const point = nearest(c.shown);
            return `<span class="c${i}">${escape(c.name)} <b>${short(point[1])}</b>${point[0] === at ? "" : ` (step ${point[0]})`}</span>`;
          })
          .join("") + `<span>step ${at}</span>`;
      return at;
    };
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect(),
        place = ((event.clientX - box.left) / box.width) * W;
      const at = x(tell(from + ((place - L) / (W - L - R)) * (to - from)));
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
      cursor.setAttribute("visibility", "visible");
    });
    picture.addEventListener("pointerleave", () => {
      cursor.setAttribute("visibility", "hidden");
      tell(to);
    });
    tell(to);
  }

  const drawAll = () => charts.forEach((chart, i) => draw(figures[i], chart));
  for (const input of [log, smooth]) input.addEventListener("input", drawAll);
  smooth.addEventListener(
    "input",
    () => (document.getElementById("smooth-value").textContent = Number(smooth.value).toFixed(2)),
  );
  const theme = document.getElementById("theme"),
    root = document.documentElement;
  theme.addEventListener("click", () => {
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
  document.querySelectorAll("[data-script]").forEach((element) => (element.hidden = false));
  drawAll();
})();
