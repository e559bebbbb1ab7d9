// Translate: a text, its translation, and the word alignment.
import {
  withAbility,
  Bytes,
  call,
  el,
  debounce,
  latestOnly,
  modelChoice,
  noModelNote,
  addArrowKeys,
  setStatus,
  stream,
} from "./heed.js";

// Longer texts are split into sentences, so a draft of the whole would not match the result.
const draftLetters = 200;
const examples = [
  "A man in a blue shirt is standing on a ladder.",
  "Two dogs are running through the snow.",
  "How are you today?",
];

export function makeTranslate(panel, models, shared) {
  const own = withAbility(models, "translate");
  panel.append(
    el("h2", {}, "Translate"),
    el(
      "p",
      { class: "soft" },
      "The greedy translation is streamed first, then replaced by the result of beam search. Hover over a word to " +
        "see the words that it is aligned with.",
    ),
  );
  if (!own.length) return void panel.append(noModelNote("translate", "heed serve --model models/en-de"));

  const { select, label } = modelChoice(own, () => {
    languages();
    run();
  });
  const source = el("select", { "aria-label": "From", onchange: () => run() });
  const target = el("select", { "aria-label": "Into", onchange: () => run() });
  const input = el("textarea", {
    id: "translate-input",
    "aria-label": "Text to translate",
    placeholder: "Enter a sentence …",
    oninput: () => {
      shared.text = input.value;
      runSoon();
    },
  });
  const output = el("div", {
    class: "output",
    id: "translate-output",
    "aria-live": "polite",
    role: "region",
    "aria-label": "Translation",
    "data-empty": "The translation appears here.",
  });
  const chips = el(
    "div",
    { class: "chips" },
    "Examples:",
    examples.map((text) =>
      el(
        "button",
        {
          type: "button",
          onclick: () => {
            input.value = shared.text = text;
            run();
          },
        },
        text,
      ),
    ),
  );
  const terms = el("textarea", {
    id: "translate-terms",
    "aria-label": "Terms, one a line",
    placeholder: "car = Wagen\nneural network = neuronales Netz",
    oninput: () => runSoon(),
  });
  const termsUsed = el("ul", { "aria-label": "Terms that occur here", "aria-live": "polite" });
  const terminology = el(
    "details",
    { class: "card terms" },
    el("summary", {}, "Terminology"),
    el(
      "p",
      { class: "soft small" },
      "One term per line: word = translation. When a sentence contains the word, beam search is constrained to " +
        "contain the translation, as written here or as the start of a longer word.",
    ),
    terms,
    termsUsed,
  );
  const aligned = el("div", { class: "columns" });
  const others = el("div");
  const details = el(
    "div",
    { class: "stack", hidden: true },
    el("div", { class: "card" }, el("h3", {}, "Word alignment"), aligned),
    el(
      "div",
      { class: "card" },
      el("h3", {}, "Beam hypotheses"),
      el(
        "p",
        { class: "soft small" },
        "The n-best list. The score is the sum of the log-probabilities after the length penalty: closer to 0 is " +
          "better. Differences to the best one are marked.",
      ),
      others,
    ),
  );

  panel.append(
    el(
      "div",
      { class: "stack" },
      el("div", { class: "bar" }, label, el("label", {}, "From", source), el("label", {}, "Into", target)),
      el("div", { class: "columns" }, input, output),
      chips,
      terminology,
      details,
    ),
  );

  function languages() {
    const model = own.find((m) => m.id === select.value);
    const options = (list) =>
      (list?.length ? list : [""]).map((code) => el("option", { value: code }, code || "default"));
    source.replaceChildren(...options(model.languages?.sources));
    chips.hidden = Boolean(model.languages?.sources) && !model.languages.sources.some((code) => /^en/.test(code));
    target.replaceChildren(...options(model.languages?.targets));
  }

  const run = latestOnly(async (signal) => {
    const q = input.value;
    if (!q.trim()) {
      output.textContent = "";
      details.hidden = true;
      return setStatus("");
    }
    setStatus("Translating …");
    const isSimple = source.options.length === 1 && target.options.length === 1;
    if (isSimple && q.length <= draftLetters && !q.includes("\n")) await draft(q, signal);
    const body = { q, model: select.value, alternatives: 3, alignments: true };
    const requested = readTerms();
    if (Object.keys(requested).length) body.terms = requested;
    if (target.value) Object.assign(body, { source: source.value, target: target.value });
    const start = performance.now();
    const answer = await call("/translate", body, signal);
    output.classList.remove("draft");
    output.textContent = shared.target = answer.translatedText;
    termsUsed.replaceChildren(
      ...(answer.terms ?? []).map((term) =>
        el(
          "li",
          { class: term.used ? null : "missed" },
          `${term.source} → ${term.target}${term.used ? "" : " (not used)"}`,
        ),
      ),
    );
    showAlignments(q, answer);
    others.replaceChildren(
      el(
        "table",
        {},
        el("tr", {}, el("th", { scope: "col" }, "Translation"), el("th", { scope: "col", class: "score" }, "Score")),
        [answer.translatedText, ...answer.alternatives].map((text, i) =>
          el(
            "tr",
            {},
            el("td", {}, i ? marked(text, answer.translatedText) : text),
            el("td", { class: "number soft score" }, answer.scores[i].toFixed(2).replace("-", "−")),
          ),
        ),
      ),
    );
    details.hidden = false;
    setStatus(`Translated in ${Math.round(performance.now() - start)} ms`);
  });
  const runSoon = debounce(350, run);

  function readTerms() {
    const pairs = terms.value.split("\n").map((line) => line.split("=").map((part) => part.trim()));
    return Object.fromEntries(pairs.filter(([from, to]) => from && to));
  }

  // Streams the greedy translation until beam search has finished.
  async function draft(q, signal) {
    output.classList.add("draft");
    let text = "";
    await stream(
      "/v1/completions",
      { model: select.value, prompt: q, temperature: 0, max_tokens: 120 },
      (event) => {
        text += event.choices[0]?.text ?? "";
        output.textContent = text;
      },
      signal,
    );
  }

  function showAlignments(q, answer) {
    const keys = ["source", "target"],
      languages = [source.value, target.value];
    // Alignments are between subword tokens; highlighting is by word.
    const lines = [q, answer.translatedText].map((text, s) => words(text, languages[s]));
    const touches = (word, [begin, end]) => word.begin < end && word.end > begin;
    lines.forEach((line, s) =>
      line
        .filter((part) => part.isWord)
        .forEach((part) => {
          const spans = answer.alignments.filter((a) => touches(part, a[keys[s]])).map((a) => a[keys[1 - s]]);
          part.others = lines[1 - s].filter((other) => other.isWord && spans.some((span) => touches(other, span)));
          const names = part.others.map((other) => other.text).join(" ");
          part.element = el(
            "span",
            { tabindex: -1, role: "img", "aria-label": names ? `${part.text}: ${names}` : part.text },
            part.text,
          );
          const light = (isOn) => () =>
            [part, ...part.others].forEach((one) =>
              one.element.classList.toggle("lit", isOn && part.others.length > 0),
            );
          for (const [event, isOn] of [
            ["pointerenter", true],
            ["pointerleave", false],
            ["focus", true],
            ["blur", false],
          ])
            part.element.addEventListener(event, light(isOn));
        }),
    );
    aligned.replaceChildren(
      ...lines.map((line, s) => {
        const box = el(
          "div",
          {
            class: "words",
            id: `words-${keys[s]}`,
            role: "group",
            "aria-label": `Words of the ${s ? "translation" : "text"}; arrow keys move between them`,
          },
          line.map((part) => part.element ?? part.text),
        );
        addArrowKeys(box, "span");
        return box;
      }),
    );
  }

  // Browsers before 2024 may lack Intl.Segmenter; splitting at non-letters is as good for languages with spaces.
  function segments(text, language) {
    if (!Intl.Segmenter) return text.match(/[\p{L}\p{M}\p{N}'’]+|\s+|./gsu) ?? [];
    const segmenter = new Intl.Segmenter(/^[a-z]{2,3}$/.test(language) ? language : undefined, { granularity: "word" });
    return Array.from(segmenter.segment(text), ({ segment }) => segment);
  }

  // The words of a text and the gaps between them, with byte offsets.
  function words(text, language) {
    const parts = [];
    let begin = 0;
    for (const segment of segments(text, language)) {
      const end = begin + new Bytes(segment).length;
      parts.push({ text: segment, begin, end, isWord: Boolean(segment.trim()) });
      begin = end;
    }
    return parts;
  }

  // Marks the words that are not in the longest common subsequence with `other`.
  function marked(text, other) {
    const a = text.split(/(\s+)/),
      b = other.split(/(\s+)/);
    if (a.length * b.length > 1e6) return text;
    const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; --i)
      for (let j = b.length - 1; j >= 0; --j)
        common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    const parts = [];
    for (let i = 0, j = 0; i < a.length;) {
      if (j < b.length && a[i] === b[j]) {
        parts.push(a[i++]);
        ++j;
      } else if (j < b.length && common[i][j + 1] >= common[i + 1][j]) ++j;
      else {
        parts.push(a[i].trim() ? el("mark", {}, a[i]) : a[i]);
        ++i;
      }
    }
    return parts;
  }

  languages();
  return () => {
    if (shared.text && shared.text !== input.value) {
      input.value = shared.text;
      run();
    }
  };
}
