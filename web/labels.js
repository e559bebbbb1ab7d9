// Classify & tag: labels for texts, pairs of texts and words.
import { bars, Bytes, call, el, debounce, errorNote, grow, latestOnly, modelChoice, setStatus } from "./heed.js";

const examples = {
  tag: ["Ada Lovelace lived in London ."],
  pair: ["A man is playing the guitar.", "Someone is making music."],
  text: ["What a wonderful film!"],
};

export function makeLabels(panel, models) {
  const own = models.filter((model) => model.abilities.includes("classify") || model.abilities.includes("tag"));
  const about = el("p", { class: "soft" });
  panel.append(el("h2", {}, "Classify & tag"), about);

  const { select, label } = modelChoice(own, () => {
    choose();
    run();
  });
  const textBox = (id) => el("textarea", { id, oninput: () => runSoon() });
  const input = textBox("labels-input"),
    second = textBox("labels-second");
  const firstLabel = el("span", {}, "Text");
  const secondLabel = el("label", {}, "Second text", second);
  const results = el("div", { class: "card", id: "labels-results", "aria-live": "polite" });
  panel.append(
    el(
      "div",
      { class: "stack" },
      el("div", { class: "bar" }, label),
      el("div", { class: "columns" }, el("label", {}, firstLabel, input), secondLabel),
      results,
    ),
  );

  let kind = "";
  function choose() {
    const model = own.find((one) => one.id === select.value);
    const before = kind;
    kind = model.abilities.includes("tag") ? "tag" : model.takes_pairs ? "pair" : "text";
    about.textContent = {
      tag: "A tagger labels each word of the text. Words and punctuation marks are separated by spaces.",
      pair: "This model compares two texts.",
      text: "A classifier labels the whole text.",
    }[kind];
    secondLabel.hidden = kind !== "pair";
    firstLabel.textContent = kind === "pair" ? "First text" : "Text";
    // What was typed stays; an example is replaced by one that fits.
    if (!input.value || input.value === examples[before]?.[0]) input.value = examples[kind][0];
    if (!second.value) second.value = examples.pair[1];
  }

  const run = latestOnly(
    async (signal) => {
      [input, second].forEach(grow);
      const isPair = kind === "pair";
      if (!input.value.trim() || (isPair && !second.value.trim())) {
        results.replaceChildren(el("p", { class: "soft" }, isPair ? "Enter both texts." : "Enter a text."));
        return setStatus("");
      }
      const body = { model: select.value, input: input.value };
      if (isPair) body.second = second.value;
      const answer = await call(`/v1/heed/${kind === "tag" ? "tag" : "classify"}`, body, signal);
      results.replaceChildren(kind === "tag" ? tagged(body.input, answer.results[0]) : classified(answer.results[0]));
      setStatus("");
    },
    (message) => results.replaceChildren(errorNote(message)),
  );
  const runSoon = debounce(300, run);
  choose();
  return run;
}

function classified(result) {
  if (result.scores) {
    const text = result.scores.map((score) => score.toFixed(3)).join(", ");
    return el("p", { class: "number score" }, "Score ", el("strong", {}, text.replaceAll("-", "−")));
  }
  const rows = Object.entries(result.probabilities)
    .map(([name, p]) => ({ name, p }))
    .sort((a, b) => b.p - a.p);
  return el("div", {}, el("h3", {}, result.label), bars(rows));
}

function tagged(text, result) {
  const bytes = new Bytes(text);
  const names = [...new Set(result.spans.map((span) => span.label))].sort();
  const parts = [];
  let at = 0;
  for (const {
    span: [begin, end],
    label,
    probability,
    text: words,
  } of result.spans) {
    parts.push(bytes.slice(at, begin));
    const mark = el("mark", { title: `${label}: ${(probability * 100).toFixed(1)} %` }, words, el("small", {}, label));
    mark.style.setProperty("--hue", String((names.indexOf(label) * 137) % 360));
    parts.push(mark);
    at = end;
  }
  parts.push(bytes.slice(at, bytes.length));
  return el("p", { class: "tags" }, parts);
}
