// Lens: where every token looks, in every layer and head.
import { able, call, download, el, latest, modelChoice, nobody, percent, say, svg, visible } from "./heed.js";
import { positionFigure } from "./positions.js";

const kindNames = { encoder: "Encoder: the source at itself", decoder: "Decoder: the text at what came before", cross: "Cross: the target at the source" };
const cell = 26;

export function makeLens(panel, models, shared) {
  const own = able(models, "attend").filter((model) => model.abilities.includes("tokenize"));
  panel.append(el("h2", {}, "Lens"), el("p", { class: "soft" }, "Each small square is one head's attention: rows are tokens that look, columns what they look at. Choose one, then point at a token."));
  if (!own.length) return void panel.append(nobody("be looked into", "heed serve --model DIR"));

  const { select, label } = modelChoice(own, () => chooseModel());
  const input = el("textarea", { id: "lens-input", rows: 2, "aria-label": "Text", placeholder: "The animal did not cross the street because it was too tired." });
  input.style.minHeight = "4rem";
  const target = el("input", { id: "lens-target", placeholder: "leave empty: what the model writes itself" });
  const targetLabel = el("label", { class: "grow" }, "Target", target);
  const look = el("button", { type: "button", onclick: () => run() }, "Look");
  const kinds = el("select", { "aria-label": "Which attention", id: "lens-kind", onchange: () => chooseKind() });
  const grid = el("div", { class: "heads", role: "group", "aria-label": "Layers and heads" });
  const title = el("h3");
  const map = el("div", { class: "map" });
  const looks = el("p", { class: "words looks", id: "lens-looks", "aria-live": "polite" });
  const results = el("div", { class: "columns", hidden: true },
    el("div", { class: "card" }, el("h3", {}, "All heads"), el("div", { class: "bar" }, kinds), grid),
    el("div", { class: "card" }, el("div", { class: "bar" }, title, el("span", { class: "grow" }),
      el("button", { type: "button", class: "quiet", onclick: () => save("svg") }, "SVG"),
      el("button", { type: "button", class: "quiet", onclick: () => save("png") }, "PNG")), map, looks));
  const positions = el("div", { class: "card" });
  panel.append(el("div", { class: "stack" },
    el("div", { class: "bar" }, label, targetLabel), input, el("div", { class: "bar" }, look), results, positions));
  input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); run(); } });

  let view, layers, chosen;

  const chooseModel = latest(async (signal) => {
    const model = own.find((m) => m.id === select.value);
    targetLabel.hidden = model.family !== "encoder_decoder";
    const info = await call(`/v1/heed/models/${model.id}`, undefined, signal);
    positions.replaceChildren(el("h3", {}, "How this model knows where a token stands"), positionFigure(info.settings));
    if (input.value.trim()) run();
  });

  const run = latest(async (signal) => {
    if (!input.value.trim()) return say("Type a text first.");
    say("Looking …");
    shared.text = input.value;
    const body = { model: select.value, input: input.value };
    if (!targetLabel.hidden && target.value.trim()) body.target = target.value;
    view = await call("/v1/heed/attend", body, signal);
    kinds.replaceChildren(...[...new Set(view.layers.map((layer) => layer.kind))].map((kind) => el("option", { value: kind }, kindNames[kind])));
    if (kinds.querySelector("option[value=cross]")) kinds.value = "cross";
    results.hidden = false;
    chooseKind();
    say(view.truncated ? "The text is longer than is shown, and was cut." : "");
  });

  function chooseKind() {
    layers = view.layers.filter((layer) => layer.kind === kinds.value);
    grid.replaceChildren(...layers.map((layer) => el("div", { class: "row" }, el("span", {}, `Layer ${layer.layer + 1}`),
      layer.heads.map((weights, head) => {
        const canvas = el("canvas", { "aria-hidden": "true" });
        draw(canvas, weights);
        return el("button", { type: "button", "aria-pressed": "false", "aria-label": `Layer ${layer.layer + 1}, head ${head + 1}`, title: `Layer ${layer.layer + 1}, head ${head + 1}`, onclick: (event) => chooseHead(layer, head, event.currentTarget) }, canvas);
      }))));
    grid.querySelector("button")?.click();
  }

  function draw(canvas, weights) {
    canvas.width = weights[0].length;
    canvas.height = weights.length;
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    weights.forEach((row, q) => row.forEach((weight, k) => {
      context.globalAlpha = Math.sqrt(weight);
      context.fillRect(k, q, 1, 1);
    }));
  }

  function chooseHead(layer, head, button) {
    for (const other of grid.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
    const queries = layer.kind === "encoder" ? view.source : view.target;
    const keys = layer.kind === "decoder" ? view.target : view.source;
    chosen = { weights: layer.heads[head], queries, keys, name: `layer ${layer.layer + 1}, head ${head + 1}` };
    title.textContent = `Layer ${layer.layer + 1}, head ${head + 1}`;
    map.replaceChildren(drawMap());
    looks.textContent = "Point at a token on the left, or move to it with the Tab key, to see where it looks.";
  }

  function drawMap() {
    const { weights, queries, keys } = chosen;
    const longest = (tokens) => 14 + 7.6 * Math.max(...tokens.map((t) => visible(t.text).length));
    const left = longest(queries), top = longest(keys);
    const picture = svg("svg", { role: "img", "aria-label": `Attention of ${chosen.name}`, xmlns: "http://www.w3.org/2000/svg",
      width: left + keys.length * cell + 4, height: top + queries.length * cell + 4, id: "lens-map" });
    keys.forEach((token, k) => picture.append(svg("text", { transform: `translate(${left + (k + 0.65) * cell} ${top - 6}) rotate(-90)` }, visible(token.text))));
    const rows = queries.map((token, q) => {
      const row = svg("g", { tabindex: 0, "aria-label": describe(q) },
        svg("rect", { x: 0, y: top + q * cell, width: left + keys.length * cell, height: cell, fill: "transparent" }),
        svg("text", { x: left - 8, y: top + (q + 0.68) * cell, "text-anchor": "end" }, visible(token.text)),
        weights[q].map((weight, k) => svg("rect", { class: "cell", x: left + k * cell + 1, y: top + q * cell + 1, width: cell - 2, height: cell - 2, rx: 3, "fill-opacity": Math.sqrt(weight).toFixed(4) },
          svg("title", {}, `${visible(token.text)} → ${visible(keys[k].text)}: ${percent(weight)}`))));
      const light = (isOn) => {
        rows.forEach((other) => other.classList.toggle("dim", isOn && other !== row));
        if (isOn) showLooks(q);
      };
      row.addEventListener("pointerenter", () => light(true));
      row.addEventListener("pointerleave", () => light(false));
      row.addEventListener("focus", () => light(true));
      row.addEventListener("blur", () => light(false));
      return row;
    });
    picture.append(...rows);
    return picture;
  }

  function describe(q) {
    const { weights, queries, keys } = chosen;
    const best = weights[q].map((weight, k) => ({ weight, k })).sort((a, b) => b.weight - a.weight).slice(0, 3);
    return `${visible(queries[q].text)} looks at ${best.map(({ weight, k }) => `${visible(keys[k].text)} ${percent(weight)}`).join(", ")}`;
  }

  function showLooks(q) {
    const { weights, queries, keys } = chosen;
    looks.replaceChildren(el("strong", {}, visible(queries[q].text)), " looks at: ", ...keys.flatMap((token, k) => {
      const word = el("span", { title: percent(weights[q][k]) }, visible(token.text));
      word.style.background = `color-mix(in srgb, var(--accent) ${Math.round(weights[q][k] * 70)}%, transparent)`;
      return [word, " "];
    }));
  }

  // A drawing of its own: with the colours that the page lends it.
  function drawing() {
    const copy = map.querySelector("svg").cloneNode(true);
    const style = getComputedStyle(document.documentElement);
    for (const text of copy.querySelectorAll("text")) {
      text.setAttribute("fill", style.getPropertyValue("--ink"));
      text.setAttribute("font-family", "monospace");
      text.setAttribute("font-size", "12");
    }
    for (const rect of copy.querySelectorAll(".cell")) rect.setAttribute("fill", style.getPropertyValue("--accent"));
    copy.prepend(svg("rect", { width: "100%", height: "100%", fill: style.getPropertyValue("--card") }));
    return new XMLSerializer().serializeToString(copy);
  }

  async function save(type) {
    const name = `attention ${chosen.name}.${type}`;
    if (type === "svg") return download(name, "image/svg+xml", drawing());
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(drawing())}`;
    await image.decode();
    const canvas = el("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(name, "image/png", blob));
  }

  addEventListener("heed-theme", () => view && chooseKind());
  chooseModel();
  return () => {
    if (shared.text && shared.text !== input.value) {
      input.value = shared.text;
      run();
    }
  };
}
