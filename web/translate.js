// Translate: a text, its translation, and the word alignment.
import {
  withAbility,
  Bytes,
  call,
  copyButton,
  el,
  debounce,
  errorNote,
  generates,
  grow,
  languageName,
  latestOnly,
  modelChoice,
  addArrowKeys,
  pointAt,
  setStatus,
  stream,
} from "./heed.js";

// Longer texts are split into sentences, so a draft of the whole would not match the result.
const draftLetters = 200;
const smallParameters = 50e6; // below, a model is called small
const examples = [
  "Good morning! How are you today?",
  "Two dogs are running through the snow.",
  "Excuse me, where is the nearest train station?",
];

export function makeTranslate(panel, models, shared) {
  const own = withAbility(models, "translate");
  panel.append(
    el("h2", {}, "Translate"),
    el(
      "p",
      { class: "soft" },
      `A greedy draft is streamed while beam search computes the result. ${pointAt()} a word below to see the ` +
        "words that it is aligned with.",
    ),
  );

  const { select, label } = modelChoice(own, () => {
    languages();
    run();
  });
  const source = el("select", { id: "translate-from", onchange: () => languagesChanged() });
  const target = el("select", { id: "translate-into", onchange: () => languagesChanged() });
  const swap = el("button", { type: "button", class: "quiet swap", id: "translate-swap", onclick: swapLanguages }, "⇄");
  const input = el("textarea", {
    id: "translate-input",
    "aria-label": "Text to translate",
    placeholder: "Enter a sentence …",
    oninput: () => {
      shared.text = input.value;
      grow(input);
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
  const copy = copyButton("the translation", () => output.textContent);
  copy.hidden = true;
  const about = el("p", { class: "soft small", id: "translate-about", hidden: true });
  const chips = el(
    "div",
    { class: "chips" },
    "Examples:",
    examples.map((text) => el("button", { type: "button", onclick: () => setText(text) }, text)),
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
      el("div", { class: "bar ends" }, el("label", {}, "From", source), swap, el("label", {}, "Into", target), label),
      el("div", { class: "columns pair" }, input, el("div", { class: "result" }, output, copy)),
      about,
      chips,
      terminology,
      details,
    ),
  );

  const modelOf = (id) => own.find((model) => model.id === id);
  const sourcesOf = (model) => model.languages?.sources ?? [];
  const targetsOf = (model) => model.languages?.targets ?? [];

  function languages(from = source.value, into = target.value) {
    const model = modelOf(select.value);
    const fillIn = (list, codes, chosen) => {
      const options = codes.map((code) => [code, languageName(code)]).sort((a, b) => a[1].localeCompare(b[1]));
      list.replaceChildren(
        ...(options.length ? options : [["", "Default"]]).map(([value, name]) => el("option", { value }, name)),
      );
      if (codes.includes(chosen)) list.value = chosen;
    };
    fillIn(source, sourcesOf(model), from);
    fillIn(target, targetsOf(model), into);
    languagesChanged(false);
    tellAbout(model);
  }

  function languagesChanged(isAsked = true) {
    const model = modelOf(select.value);
    chips.hidden = sourcesOf(model).length > 0 && !/^en/.test(source.value);
    const isPossible = Boolean(reverse());
    swap.disabled = !isPossible;
    swap.title = isPossible
      ? "Swap the languages"
      : `No loaded model translates ${target.value ? languageName(target.value) : "the other way"} into ` +
        (source.value ? languageName(source.value) : "this language");
    swap.setAttribute("aria-label", swap.title);
    if (isAsked) run();
  }

  // A model for the other direction, this one first.
  function reverse() {
    if (!source.value || !target.value) return null;
    return [modelOf(select.value), ...own].find(
      (model) => sourcesOf(model).includes(target.value) && targetsOf(model).includes(source.value),
    );
  }

  function swapLanguages() {
    const model = reverse();
    if (!model) return;
    const text = output.querySelector(".failed") ? "" : output.textContent;
    select.value = model.id;
    languages(target.value, source.value);
    setText(text || input.value);
  }

  // Says what a small model is for, before someone tries a contract.
  const tellAbout = latestOnly(async (signal, model) => {
    about.hidden = true;
    const info = await call(`/v1/heed/models/${model.id}`, undefined, signal);
    if (info.parameters >= smallParameters) return;
    const millions = (info.parameters / 1e6).toLocaleString("en", { maximumFractionDigits: 1 });
    about.textContent =
      `${model.id} is a small model (${millions} million parameters) for everyday sentences. ` +
      "Long, formal or technical texts need a larger one.";
    about.hidden = false;
  });

  function setText(text) {
    input.value = shared.text = text;
    run();
  }

  function showResult(...children) {
    output.classList.remove("draft");
    output.replaceChildren(...children);
    const isText = children.length > 0 && !output.querySelector(".failed");
    copy.hidden = !isText;
    if (!isText) {
      details.hidden = true;
      shared.target = "";
      termsUsed.replaceChildren();
    }
  }

  const run = latestOnly(
    async (signal) => {
      const q = input.value;
      grow(input);
      if (!q.trim()) {
        showResult();
        return setStatus("");
      }
      setStatus("Translating …");
      const isSimple = source.options.length === 1 && target.options.length === 1 && generates(modelOf(select.value));
      if (isSimple && q.length <= draftLetters && !q.includes("\n")) await draft(q, signal);
      const body = { q, model: select.value, alternatives: 3, alignments: true };
      const requested = readTerms();
      if (Object.keys(requested).length) body.terms = requested;
      if (target.value) Object.assign(body, { source: source.value, target: target.value });
      const start = performance.now();
      const answer = await call("/translate", body, signal);
      showResult(answer.translatedText);
      shared.target = answer.translatedText;
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
    },
    (message) => showResult(errorNote(message)),
  );
  const runSoon = debounce(350, run);

  function readTerms() {
    const pairs = terms.value.split("\n").map((line) => line.split("=").map((part) => part.trim()));
    return Object.fromEntries(pairs.filter(([from, to]) => from && to));
  }

  // Streams the greedy translation until beam search has finished.
  async function draft(q, signal) {
    output.classList.add("draft");
    copy.hidden = true;
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
