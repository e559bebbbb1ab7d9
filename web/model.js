// Model: the architecture, drawn from the config.
import { call, el, errorNote, latestOnly, modelChoice, setStatus, svg } from "./heed.js";

const boxWidth = 240,
  boxHeight = 62,
  gap = 22;
const besideWidth = 480; // page width from which encoder and decoder are drawn side by side

export function makeModel(panel, models) {
  panel.append(
    el("h2", {}, "Model"),
    el(
      "p",
      { class: "soft" },
      "The blocks of the model from bottom to top, with their shapes and parameter counts, and the memory that " +
        "inference takes.",
    ),
  );
  const { select, label } = modelChoice(models, () => run());
  const facts = el("dl", { class: "facts", id: "model-facts" });
  const drawing = el("div", { class: "card drawing" });
  const settings = el("details", { class: "card" });
  const memory = el("div", { class: "card" });
  panel.append(
    el(
      "div",
      { class: "stack" },
      el("div", { class: "bar" }, label),
      facts,
      el("div", { class: "columns" }, drawing, el("div", { class: "stack" }, memory, settings)),
    ),
  );

  let shown, isStacked;
  const sketch = () => {
    isStacked = innerWidth < besideWidth;
    drawing.replaceChildren(
      el("h3", {}, "Architecture"),
      draw(shown, isStacked),
      el("p", { class: "soft small" }, "Parameter counts are the sum over all layers of a stack."),
    );
  };
  addEventListener("resize", () => shown && isStacked !== innerWidth < besideWidth && sketch());

  const run = latestOnly(
    async (signal) => {
      const info = await call(`/v1/heed/models/${select.value}`, undefined, signal);
      const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
      facts.replaceChildren(
        fact("Kind", info.model_type),
        fact("Family", info.family.replace("_", "-")),
        fact("Head", info.head.replaceAll("_", " ")),
        fact("Parameters", short(info.parameters)),
        fact(`Weights, ${info.weight_type}`, bytes(info.weight_bytes)),
        fact("Vocabulary", info.vocabulary.toLocaleString("en")),
        fact("Per token", `${short(info.flops_per_token)} FLOP`),
      );
      shown = info;
      sketch();
      memory.replaceChildren(
        el("h3", {}, "Memory for inference, without the weights"),
        el(
          "table",
          {},
          el(
            "tr",
            {},
            ["Sequences", "Tokens each", "Memory"].map((t) => el("th", { scope: "col" }, t)),
          ),
          info.memory.map((m) =>
            el(
              "tr",
              {},
              [m.sequences, m.length, bytes(m.inference_bytes)].map((v) => el("td", { class: "number" }, String(v))),
            ),
          ),
        ),
        ...(cached(info)
          ? [el("p", { class: "soft small" }, `The KV cache takes ${bytes(cached(info))} per token.`)]
          : []),
      );
      settings.replaceChildren(
        el("summary", {}, "All settings"),
        el(
          "table",
          {},
          Object.entries(info.settings).map(([name, value]) =>
            el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", {}, JSON.stringify(value))),
          ),
        ),
      );
      setStatus("");
    },
    (message) => {
      shown = null;
      for (const part of [facts, memory, settings]) part.replaceChildren();
      drawing.replaceChildren(errorNote(message));
    },
  );
  run();
}

export function short(value) {
  const units = [
    [1e12, " T"],
    [1e9, " G"],
    [1e6, " M"],
    [1e3, " k"],
  ];
  const [unit, name] = units.find(([u]) => value >= u) ?? [1, ""];
  return `${(value / unit).toLocaleString("en", { maximumFractionDigits: 1 })}${name}`;
}
const bytes = (value) => `${short(value)}B`;

// Bytes of one token in the KV cache (f32).
function cached({ family, settings: s }) {
  if (family === "encoder_only") return 0;
  const heads = s.kv_heads || s.decoder_heads || s.heads;
  return 2 * 4 * s.decoder_layers * heads * (s.head_dim || s.width / s.heads);
}

// The parameter count of all weights whose names start with, or match, one of `beginnings`.
function parametersOf(info, ...beginnings) {
  const is = (name) => beginnings.some((b) => (typeof b === "string" ? name.startsWith(b) : b.test(name)));
  return info.weights.filter((w) => is(w.name)).reduce((sum, w) => sum + w.shape[0] * w.shape[1], 0);
}

// Stacked, the decoder is drawn above the encoder, for narrow screens.
function draw(info, isStacked) {
  const s = info.settings;
  const heads = (n, kv) =>
    `${n} heads${kv && kv !== n ? `, ${kv} for keys` : ""} × ${s.head_dim || Math.round(s.width / n)}`;
  const layers = (stack, part) => parametersOf(info, new RegExp(`^${stack}\\.\\d+\\.${part}\\.`));
  const feed = (stack, width) => ({
    name: "Feed-forward",
    shape: `${s.width} → ${width} → ${s.width} ${s.activation}${s.ffn_kind === "gated" ? ", gated" : ""}`,
    count: layers(stack, "ffn"),
  });
  const norm = s.norm === "rms_norm" ? "RMS norm" : "Layer norm";
  const position = {
    sinusoidal: "+ sinusoids",
    learned: "+ learned positions",
    rope: "RoPE",
    t5_bias: "T5 relative bias",
    alibi: "ALiBi",
    none: "",
  }[s.position];
  const embed = (name, side) => ({
    name,
    shape: `${s.vocabulary} × ${s.width} ${position}`,
    count: parametersOf(info, `${side}.`),
    isShared: !parametersOf(info, `${side}.tokens`),
  });
  const attend = (name, stack, n, part) => ({
    name,
    shape: heads(n, s.kv_heads),
    count: layers(stack, part) + (part === "self" ? layers(stack, "global") : 0),
  });
  const towers = [];
  if (info.family !== "decoder_only") {
    towers.push({
      title: `${s.encoder_layers} ×  ${s.norm_place}-norm, ${norm}`,
      start: embed(info.family === "encoder_only" ? "Embedding" : "Source embedding", "embedding"),
      block: [attend("Self-attention", "encoder", s.heads, "self"), feed("encoder", s.ffn)],
    });
  }
  if (info.family !== "encoder_only") {
    const n = s.decoder_heads || s.heads;
    const block = [attend("Masked self-attention", "decoder", n, "self"), feed("decoder", s.decoder_ffn || s.ffn)];
    if (info.family === "encoder_decoder") block.splice(1, 0, attend("Cross-attention", "decoder", n, "cross"));
    towers.push({
      title: `${s.decoder_layers} ×  ${s.norm_place}-norm, ${norm}`,
      start: info.family === "decoder_only" ? embed("Embedding", "embedding") : embed("Target embedding", "target"),
      block,
    });
  }
  towers.at(-1).end = {
    name: `Head: ${info.head.replaceAll("_", " ")}`,
    shape: info.labels ? `${s.width} → ${info.labels.length} labels` : `${s.width} → ${info.vocabulary}`,
    count: parametersOf(info, "head.", "output.", "pooler", "next_sentence"),
    isShared: ["language_model", "masked_lm"].includes(info.head) && !parametersOf(info, "output.weight"),
  };

  const step = boxHeight + gap;
  const heights = towers.map((tower) => (tower.block.length + (tower.end || !isStacked ? 2.6 : 1.6)) * step + 20);
  const height = isStacked ? heights.reduce((sum, h) => sum + h, 0) : Math.max(...heights);
  const total = (isStacked ? 1 : towers.length) * (boxWidth + 60);
  const stacks = towers.map((t) => `${t.title} of ${t.block.map((b) => b.name).join(", ")}`);
  const picture = svg("svg", {
    viewBox: `0 0 ${total} ${height}`,
    width: total,
    role: "img",
    "aria-label": `Architecture: ${stacks.join("; ")}`,
  });
  picture.style.maxWidth = `${1.15 * total}px`;
  picture.style.minWidth = `${0.8 * total}px`; // below this the text is not readable
  const counted = ({ count, isShared }) =>
    [count ? `${short(count)} parameters` : "", isShared ? "tied embedding" : ""].filter(Boolean).join(" + ");
  const box = (x, y, part) =>
    picture.append(
      svg(
        "g",
        { class: "block" },
        svg("rect", { x, y, width: boxWidth, height: boxHeight, rx: 9 }),
        svg("text", { x: x + boxWidth / 2, y: y + 19 }, part.name),
        svg("text", { class: "shape", x: x + boxWidth / 2, y: y + 36 }, part.shape),
        svg("text", { class: "shape count", x: x + boxWidth / 2, y: y + 53 }, counted(part)),
      ),
    );
  const up = (x, from, to) => picture.append(svg("path", { class: "arrow", d: `M${x} ${from}V${to}m-4 5l4 -5l4 5` }));
  towers.forEach((tower, t) => {
    const x = 30 + (isStacked ? 0 : t * (boxWidth + 60)),
      middle = x + boxWidth / 2;
    let y = height - boxHeight - 6 - (isStacked && t ? heights[0] : 0);
    box(x, y, tower.start);
    const bottom = y - gap - 8;
    picture.append(
      svg(
        "g",
        { class: "block frame" },
        svg("rect", {
          x: x - 14,
          y: bottom - tower.block.length * step - 12,
          width: boxWidth + 28,
          height: tower.block.length * step + 18,
          rx: 12,
        }),
      ),
    );
    tower.block.forEach((part, i) => {
      up(middle, y - 1, y - (i === 0 ? gap + 12 : gap) + 2);
      y -= step + (i === 0 ? 12 : 0);
      box(x, y, part);
      tower.top = y;
      if (part.name === "Cross-attention") {
        const from = towers[t - 1];
        picture.append(
          svg("path", {
            class: "arrow",
            d:
              `M${from.middle} ${from.top - 30}V${from.top - 46}H${x - (isStacked ? 24 : 30)}` +
              `V${y + boxHeight / 2}H${x - 2}m-5 -4l5 4l-5 4`,
          }),
        );
      }
    });
    tower.middle = middle;
    if (tower.end) {
      up(middle, y - 1, y - gap - 20);
      box(x, y - step - 22, tower.end);
    }
    // Drawn last, so that it is in front of the arrow.
    picture.append(
      svg(
        "g",
        { class: "block frame" },
        svg("text", { class: "shape", x: middle, y: bottom - tower.block.length * step + 4 }, tower.title),
      ),
    );
  });
  return picture;
}
