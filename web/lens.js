// Lens: where every token looks, in every layer and head.
import {
  able,
  call,
  download,
  drawing,
  el,
  latest,
  modelChoice,
  nobody,
  percent,
  roving,
  say,
  send,
  svg,
  visible,
} from "./heed.js";
import { positionFigure } from "./positions.js";
import { drawLines, drawMap } from "./maps.js";
import { habitOf } from "./habits.js";

const kindNames = {
  encoder: "Encoder: the source at itself",
  decoder: "Decoder: the text at what came before",
  cross: "Cross: the target at the source",
};
const kindHints = {
  encoder: "Every token of the source may look at every other, before and after it.",
  decoder: "A token may look only at itself and at what came before: what follows is not written yet.",
  cross: "A row is the token that was written last; what it looks at in the source decides what comes next.",
};
const examples = {
  encoder_decoder: "A man in a blue shirt is standing on a ladder.",
  decoder_only: "Once upon a time, there was a little girl named Lily.",
  encoder_only: "The animal did not cross the street because it was too tired.",
};

export function makeLens(panel, models, shared) {
  const own = able(models, "attend").filter((model) => model.abilities.includes("tokenize"));
  panel.append(
    el("h2", {}, "Lens"),
    el(
      "p",
      { class: "soft" },
      "A Transformer reads a token by looking at others: each head of each layer decides anew how much of its attention every other token gets. Here is all of it.",
    ),
  );
  if (!own.length) return void panel.append(nobody("be looked into", "heed serve --model DIR"));

  const { select, label } = modelChoice(own, () => chooseModel());
  const input = el("textarea", { id: "lens-input", class: "low", rows: 2, "aria-label": "Text" });
  const target = el("input", { id: "lens-target", placeholder: "leave empty: what the model writes itself" });
  const targetLabel = el("label", { class: "grow" }, "Target", target);
  const kinds = el("select", { "aria-label": "Which attention", id: "lens-kind", onchange: () => chooseKind() });
  const grid = el("div", {
    class: "heads grid",
    role: "group",
    "aria-label": "Layers and heads; arrow keys move between them",
  });
  const hint = el("span");
  const title = el("h3"),
    habit = el("p", { class: "soft small", id: "lens-habit" });
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
        "Each square is a head: its rows are the tokens that look, its columns what they look at. The stronger the colour, the more. ",
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
      habit,
      map,
      looks,
    ),
  );
  const positions = el("div", { class: "card" });
  panel.append(
    el(
      "div",
      { class: "stack" },
      el("div", { class: "bar" }, label, targetLabel),
      input,
      el("div", { class: "bar" }, el("button", { type: "button", onclick: () => run() }, "Look")),
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
  roving(grid, "button", (button) => button.click());
  roving(map, "g[tabindex]");

  let view,
    layers,
    chosen,
    form = "Map";

  const chooseModel = latest(async (signal) => {
    const model = own.find((m) => m.id === select.value);
    targetLabel.hidden = model.family !== "encoder_decoder";
    if (!input.value.trim() || Object.values(examples).includes(input.value)) input.value = examples[model.family];
    const info = await call(`/v1/heed/models/${model.id}`, undefined, signal);
    positions.replaceChildren(el("h3", {}, "How this model knows where a token stands"), positionFigure(info.settings));
    run();
  });

  const run = latest(async (signal) => {
    if (!input.value.trim()) return say("Type a text first.");
    say("Looking …");
    if (!Object.values(examples).includes(input.value)) shared.text = input.value;
    const body = { model: select.value, input: input.value };
    if (!targetLabel.hidden && target.value.trim()) body.target = target.value;
    view = await call("/v1/heed/attend", body, signal);
    const before = kinds.value,
      names = [...new Set(view.layers.map((layer) => layer.kind))];
    kinds.replaceChildren(...names.map((kind) => el("option", { value: kind }, kindNames[kind])));
    kinds.value = names.includes(before) ? before : names.includes("cross") ? "cross" : names[0];
    results.hidden = false;
    chooseKind();
    say(view.truncated ? "The text is longer than is shown, and was cut." : "");
  });

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
    hint.textContent =
      kindHints[kinds.value] +
      (start
        ? ` ${visible(start)}, the first, is what the decoder is given to start with: nothing is written yet.`
        : "");
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
            const name = `Layer ${layer.layer + 1}, head ${head + 1}: ${habitOf(one)}`;
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
    // The same head as before, where there is one.
    const again = chosen && layers.findIndex((layer) => layer.layer === chosen.layer);
    const row = grid.children[again > 0 ? again : 0];
    (row.querySelectorAll("button")[chosen?.head ?? 0] ?? row.querySelector("button")).click();
  }

  const paintAll = () => grid.querySelectorAll("canvas").forEach(paint);

  // A pixel for each weight; where there are fewer pixels than weights, the largest of those that share one: a line
  // must not vanish because every second row is left out.
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
    habit.textContent = `${habitOf(one)}.`;
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
    looks.textContent = "Point at a token, or go to it with Tab and the arrow keys, to see where it looks.";
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
      " looks at: ",
      ...keys.flatMap((token, k) => shaded(token, weights[q][k])),
    );
  }
  function showSeen(k) {
    const { weights, queries, keys } = chosen;
    looks.replaceChildren(
      el("strong", {}, visible(keys[k].text)),
      " is seen by: ",
      ...queries.flatMap((token, q) => shaded(token, weights[q][k])),
    );
  }

  async function save(type) {
    const name = `attention ${chosen.name}.${type}`,
      text = drawing(map.querySelector("svg"));
    if (type === "svg") return download(name, "image/svg+xml", text);
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = el("canvas", { width: image.width * 2, height: image.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(name, "image/png", blob));
  }
  const saveAll = latest(async (signal) => {
    const body = { model: select.value, input: input.value, format: "svg" };
    if (!targetLabel.hidden && target.value.trim()) body.target = target.value;
    download("attention.svg", "image/svg+xml", await (await send("/v1/heed/attend", body, signal)).text());
  });

  addEventListener("heed-theme", () => view && chooseKind());
  addEventListener("resize", () => {
    if (!view || panel.hidden) return;
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
