// Lens: the attention weights of every layer and head.
import {
  withAbility,
  call,
  download,
  standaloneSvg,
  el,
  errorNote,
  grow,
  latestOnly,
  modelChoice,
  percent,
  isTouch,
  addArrowKeys,
  setStatus,
  send,
  svg,
  visible,
} from "./heed.js";
import { positionFigure } from "./positions.js";
import { drawLines, drawMap } from "./maps.js";
import { patternOf } from "./patterns.js";

const kindNames = {
  encoder: "Encoder self-attention",
  decoder: "Decoder self-attention (causal)",
  cross: "Cross-attention (target to source)",
};
const kindHints = {
  encoder: "Each source token attends to all source tokens.",
  decoder: "Causal: a token attends to itself and to the tokens before it.",
  cross: "A row is the decoder's input token; its attention over the source is used to predict the next token.",
};
const examples = {
  encoder_decoder: "A man in a blue shirt is standing on a ladder.",
  decoder_only: "Once upon a time, there was a little girl named Lily.",
  encoder_only: "The animal did not cross the street because it was too tired.",
};

export function makeLens(panel, models, shared) {
  const own = withAbility(models, "attend").filter((model) => model.abilities.includes("tokenize"));
  panel.append(
    el("h2", {}, "Lens"),
    el(
      "p",
      { class: "soft" },
      "The attention weights of every head in every layer: how much each token (query) attends to every other (key).",
    ),
  );

  const { select, label } = modelChoice(own, () => chooseModel());
  const input = el("textarea", {
    id: "lens-input",
    class: "low",
    rows: 2,
    "aria-label": "Text",
    oninput: () => grow(input),
  });
  const failure = el("div", { id: "lens-failure" });
  const target = el("input", { id: "lens-target", placeholder: "empty: the model's own output" });
  const targetLabel = el("label", { class: "grow" }, "Target", target);
  const kinds = el("select", { "aria-label": "Kind of attention", id: "lens-kind", onchange: () => chooseKind() });
  const grid = el("div", {
    class: "heads grid",
    role: "group",
    "aria-label": "Layers and heads; arrow keys move between them",
  });
  const hint = el("span");
  const title = el("h3"),
    pattern = el("p", { class: "soft small", id: "lens-pattern" });
  const map = el("div", { class: "map" });
  const looks = el("p", { class: "words looks", id: "lens-looks", "aria-live": "polite" });
  const forms = ["Map", "Lines"].map((name) =>
    el(
      "button",
      { type: "button", class: "quiet", "aria-pressed": String(name === "Map"), onclick: () => chooseForm(name) },
      name,
    ),
  );
  const saving = (type, what, work) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": `Download ${what} as ${type}`,
        title: `Download ${what} as ${type}`,
        onclick: work,
      },
      `↓ ${type}`,
    );
  const results = el(
    "div",
    { class: "columns lens", hidden: true },
    el(
      "div",
      { class: "card" },
      el(
        "div",
        { class: "bar" },
        el("h3", {}, "All heads"),
        el("span", { class: "grow" }),
        saving("SVG", "all heads", () => saveAll()),
      ),
      kinds,
      el(
        "p",
        { class: "soft small" },
        "Each square is a head: rows are queries, columns are keys. A stronger colour is a larger weight. ",
        hint,
      ),
      grid,
    ),
    el(
      "div",
      { class: "card" },
      el(
        "div",
        { class: "bar" },
        title,
        el("span", { class: "grow" }),
        el("span", { class: "choice", role: "group", "aria-label": "Drawn as" }, forms),
        saving("SVG", "this head", () => save("svg")),
        saving("PNG", "this head", () => save("png")),
      ),
      pattern,
      map,
      looks,
    ),
  );
  const positions = el("div", { class: "card" });
  panel.append(
    el(
      "div",
      { class: "stack" },
      el("div", { class: "bar ends" }, label, targetLabel),
      input,
      el("div", { class: "bar" }, el("button", { type: "button", onclick: () => run() }, "Show attention")),
      failure,
      results,
      positions,
    ),
  );
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      run();
    }
  });
  addArrowKeys(grid, "button", (button) => button.click());
  addArrowKeys(map, "g[tabindex]");

  let view,
    settings,
    layers,
    chosen,
    form = "Map";

  const chooseModel = latestOnly(async (signal) => {
    const model = own.find((m) => m.id === select.value);
    targetLabel.hidden = model.family !== "encoder_decoder";
    if (!input.value.trim() || Object.values(examples).includes(input.value)) input.value = examples[model.family];
    settings = (await call(`/v1/heed/models/${model.id}`, undefined, signal)).settings;
    showPositions();
    run();
  });

  // Drawn for the width of its card.
  function showPositions() {
    const figure = el("div");
    positions.replaceChildren(el("h3", {}, "Position encoding of this model"), figure);
    figure.append(positionFigure(settings, figure.clientWidth));
  }

  function hideResult(message) {
    view = null;
    results.hidden = true;
    failure.replaceChildren(errorNote(message));
  }

  const run = latestOnly(async (signal) => {
    grow(input);
    if (!input.value.trim()) return setStatus("Enter a text first.");
    setStatus("Computing …");
    if (!Object.values(examples).includes(input.value)) shared.text = input.value;
    const body = { model: select.value, input: input.value };
    if (!targetLabel.hidden && target.value.trim()) body.target = target.value;
    view = await call("/v1/heed/attend", body, signal);
    const before = kinds.value,
      names = [...new Set(view.layers.map((layer) => layer.kind))];
    kinds.replaceChildren(...names.map((kind) => el("option", { value: kind }, kindNames[kind])));
    kinds.value = names.includes(before) ? before : names.includes("cross") ? "cross" : names[0];
    results.hidden = false;
    failure.replaceChildren();
    chooseKind();
    setStatus(view.truncated ? "The text was truncated." : "");
  }, hideResult);

  function headOf(layer, head) {
    const queries = layer.kind === "encoder" ? view.source : view.target;
    const keys = layer.kind === "decoder" ? view.target : view.source;
    return {
      weights: layer.heads[head],
      queries,
      keys,
      kind: layer.kind,
      layer: layer.layer,
      head,
      name: `layer ${layer.layer + 1}, head ${head + 1}`,
    };
  }

  function chooseKind() {
    layers = view.layers.filter((layer) => layer.kind === kinds.value);
    const start = view.source.length && kinds.value !== "encoder" ? view.target[0]?.text : "";
    hint.textContent = kindHints[kinds.value] + (start ? ` ${visible(start)} is the decoder start token.` : "");
    grid.style.setProperty("--heads", String(Math.max(...layers.map((layer) => layer.heads.length))));
    grid.replaceChildren(
      ...layers.map((layer) =>
        el(
          "div",
          { class: "row" },
          el("span", {}, `Layer ${layer.layer + 1}`),
          layer.heads.map((weights, head) => {
            const canvas = el("canvas", { "aria-hidden": "true" }),
              one = headOf(layer, head);
            const name = `Layer ${layer.layer + 1}, head ${head + 1}: ${patternOf(one)}`;
            canvas.weights = weights;
            const button = el(
              "button",
              {
                type: "button",
                "aria-pressed": "false",
                tabindex: -1,
                "aria-label": name,
                title: name,
                onclick: () => chooseHead(one, button),
              },
              canvas,
            );
            return button;
          }),
        ),
      ),
    );
    paintAll();
    // Keep the head that was selected, where it exists.
    const again = chosen && layers.findIndex((layer) => layer.layer === chosen.layer);
    const row = grid.children[again > 0 ? again : 0];
    (row.querySelectorAll("button")[chosen?.head ?? 0] ?? row.querySelector("button")).click();
  }

  const paintAll = () => grid.querySelectorAll("canvas").forEach(paint);

  // One pixel per weight; with fewer pixels than weights, the maximum of those that share a pixel, so that a line of
  // large weights stays visible.
  function paint(canvas) {
    const { weights } = canvas,
      shown = Math.round((canvas.clientWidth || 40) * devicePixelRatio);
    const width = Math.min(weights[0].length, shown),
      height = Math.min(weights.length, shown);
    const most = new Float32Array(width * height);
    weights.forEach((row, q) =>
      row.forEach((weight, k) => {
        const at = Math.floor((q * height) / weights.length) * width + Math.floor((k * width) / row.length);
        most[at] = Math.max(most[at], weight);
      }),
    );
    Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    most.forEach((weight, i) => {
      context.globalAlpha = Math.sqrt(weight);
      context.fillRect(i % width, Math.floor(i / width), 1, 1);
    });
  }

  function chooseHead(one, button) {
    for (const other of grid.querySelectorAll("button")) {
      other.setAttribute("aria-pressed", String(other === button));
      other.tabIndex = other === button ? 0 : -1;
    }
    chosen = one;
    title.textContent = `Layer ${one.layer + 1}, head ${one.head + 1}`;
    pattern.textContent = `${patternOf(one)}.`;
    show();
  }

  function chooseForm(name) {
    form = name;
    for (const button of forms) button.setAttribute("aria-pressed", String(button.textContent === name));
    show();
  }

  function show() {
    const room = map.clientWidth || 480;
    map.replaceChildren((form === "Map" ? drawMap : drawLines)(chosen, room, { query: showLooks, key: showSeen }));
    looks.textContent = isTouch()
      ? "Tap a token to see its attention weights."
      : "Hover over a token, or select it with Tab and the arrow keys, to see its attention weights.";
  }

  const shaded = (token, weight) => {
    const word = el("span", { title: percent(weight) }, visible(token.text));
    word.style.background = `color-mix(in srgb, var(--accent) ${Math.round(weight * 70)}%, transparent)`;
    return [word, " "];
  };
  function showLooks(q) {
    const { weights, queries, keys } = chosen;
    looks.replaceChildren(
      el("strong", {}, visible(queries[q].text)),
      " attends to: ",
      ...keys.flatMap((token, k) => shaded(token, weights[q][k])),
    );
  }
  function showSeen(k) {
    const { weights, queries, keys } = chosen;
    looks.replaceChildren(
      el("strong", {}, visible(keys[k].text)),
      " is attended to by: ",
      ...queries.flatMap((token, q) => shaded(token, weights[q][k])),
    );
  }

  async function save(type) {
    const name = `attention ${chosen.name}.${type}`,
      text = standaloneSvg(map.querySelector("svg"));
    if (type === "svg") return download(name, "image/svg+xml", text);
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = el("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(name, "image/png", blob));
  }
  const saveAll = latestOnly(async (signal) => {
    const body = { model: select.value, input: input.value, format: "svg" };
    if (!targetLabel.hidden && target.value.trim()) body.target = target.value;
    download("attention.svg", "image/svg+xml", await (await send("/v1/heed/attend", body, signal)).text());
  });

  addEventListener("heed-theme", () => view && chooseKind());
  addEventListener("resize", () => {
    if (panel.hidden) return;
    if (settings) showPositions();
    if (!view) return;
    paintAll();
    show();
  });
  let isNew = true;
  return () => {
    const isChanged = shared.text && shared.text !== input.value;
    if (isChanged) input.value = shared.text;
    if (isNew) chooseModel();
    else if (isChanged) run();
    isNew = false;
  };
}
