// Parse: the constituency tree of a sentence.
import { withAbility, call, el, errorNote, latestOnly, modelChoice, setStatus, svg } from "./heed.js";

const levelHeight = 54,
  leafGap = 18,
  letterWidth = 8.2;

export function makeParse(panel, models) {
  const own = withAbility(models, "parse");
  panel.append(
    el("h2", {}, "Parse"),
    el("p", { class: "soft" }, "The constituency tree of a sentence, from a model that was trained to generate trees."),
  );

  const { select, label } = modelChoice(own);
  const input = el("input", { id: "parse-input", "aria-label": "Sentence", value: "The cat sat on the mat ." });
  const results = el("div", { class: "card", id: "parse-results", hidden: true, "aria-live": "polite" });
  const form = el(
    "form",
    { class: "stack" },
    el("div", { class: "bar" }, label),
    input,
    el("div", { class: "bar" }, el("button", {}, "Parse")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  panel.append(el("div", { class: "stack" }, form, results));

  const run = latestOnly(
    async (signal) => {
      setStatus("Parsing …");
      const {
        results: [parsed],
      } = await call("/v1/heed/parse", { model: select.value, input: input.value }, signal);
      results.hidden = false;
      results.replaceChildren(el("div", { class: "tree" }, draw(read(parsed.tree))), el("pre", {}, parsed.tree));
      setStatus("");
    },
    (message) => {
      results.hidden = false;
      results.replaceChildren(errorNote(message));
    },
  );
  let isNew = true;
  return () => {
    if (isNew) run();
    isNew = false;
  };
}

// "(S (NP (DT The)) …)" → {label, children}; a leaf is {word}.
function read(text) {
  const parts = text.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const node = () => {
    if (parts[at] !== "(") return { word: parts[at++] };
    ++at;
    const label = parts[at] === "(" ? "" : parts[at++];
    const children = [];
    while (at < parts.length && parts[at] !== ")") children.push(node());
    ++at;
    return { label, children };
  };
  return parts.length ? node() : { word: "" };
}

function draw(tree) {
  let right = 10,
    deepest = 0;
  const place = (node, depth) => {
    deepest = Math.max(deepest, depth);
    node.depth = depth;
    if (node.children?.length) {
      node.children.forEach((child) => place(child, depth + 1));
      node.x = (node.children[0].x + node.children.at(-1).x) / 2;
    } else {
      const width = (node.word ?? node.label).length * letterWidth;
      node.x = right + width / 2;
      right += width + leafGap;
    }
  };
  place(tree, 0);
  const y = (depth) => 22 + depth * levelHeight;
  const picture = svg("svg", {
    width: right,
    height: y(deepest) + 14,
    role: "img",
    "aria-label": "The tree of the sentence",
  });
  const add = (node) => {
    for (const child of node.children ?? []) {
      const from = y(node.depth) + 6,
        to = y(child.depth) - 16,
        middle = (from + to) / 2;
      picture.append(
        svg("path", { d: `M${node.x} ${from}C${node.x} ${middle} ${child.x} ${middle} ${child.x} ${to}` }),
      );
      add(child);
    }
    picture.append(
      svg(
        "text",
        { x: node.x, y: y(node.depth), class: node.word !== undefined ? "leaf" : null },
        node.word ?? node.label,
      ),
    );
  };
  add(tree);
  return picture;
}
