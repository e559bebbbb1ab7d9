// Classify & tag: labels for texts and for words.
import {
  withAbility,
  bars,
  Bytes,
  call,
  el,
  debounce,
  latestOnly,
  modelChoice,
  noModelNote,
  setStatus,
} from "./heed.js";

export function makeLabels(panel, models) {
  const own = models.filter((model) => model.abilities.includes("classify") || model.abilities.includes("tag"));
  panel.append(
    el("h2", {}, "Classify & tag"),
    el("p", { class: "soft" }, "A classifier labels the whole text, a tagger each word."),
  );
  if (!own.length) return void panel.append(noModelNote("label texts", "heed serve --model sentiment=models/sst2"));

  const { select, label } = modelChoice(own, () => run());
  const input = el("textarea", { id: "labels-input", "aria-label": "Text", oninput: () => runSoon() });
  input.value = "Ada Lovelace lived in London.";
  const results = el("div", { class: "card", id: "labels-results", "aria-live": "polite" });
  panel.append(el("div", { class: "stack" }, el("div", { class: "bar" }, label), input, results));

  const run = latestOnly(async (signal) => {
    if (!input.value.trim()) return results.replaceChildren();
    const isTagger = withAbility(own, "tag").some((model) => model.id === select.value);
    const answer = await call(
      `/v1/heed/${isTagger ? "tag" : "classify"}`,
      { model: select.value, input: input.value },
      signal,
    );
    results.replaceChildren(isTagger ? tagged(input.value, answer.results[0]) : classified(answer.results[0]));
    setStatus("");
  });
  const runSoon = debounce(300, run);
  return run;
}

function classified(result) {
  if (result.scores) return el("p", { class: "number" }, `Score: ${result.scores.map((s) => s.toFixed(3)).join(", ")}`);
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
