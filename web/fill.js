// Fill: predicts masked tokens.
import {
  withAbility,
  bars,
  call,
  el,
  debounce,
  errorNote,
  latestOnly,
  grow,
  isTouch,
  modelChoice,
  replaceChildrenKeepingFocus,
  setStatus,
  visible,
} from "./heed.js";

export function makeFill(panel, models) {
  const own = withAbility(models, "fill");
  panel.append(
    el("h2", {}, "Fill"),
    el(
      "p",
      { class: "soft" },
      "A masked language model such as BERT predicts the token at each [MASK]. " +
        `${isTouch() ? "Tap" : "Click"} a candidate to insert it.`,
    ),
  );

  const { select, label } = modelChoice(own, () => run());
  const input = el("textarea", { id: "fill-input", "aria-label": "Text with [MASK]", oninput: () => runSoon() });
  input.value = "The [MASK] sat on the mat.";
  const insert = el(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        input.setRangeText("[MASK]", input.selectionStart, input.selectionEnd, "end");
        input.focus();
        run();
      },
    },
    "Insert [MASK]",
  );
  const results = el("div", { class: "columns", id: "fill-results", "aria-live": "polite" });
  panel.append(
    el(
      "div",
      { class: "stack" },
      el("div", { class: "bar" }, label),
      input,
      el("div", { class: "bar" }, insert),
      results,
    ),
  );

  const run = latestOnly(
    async (signal) => {
      grow(input);
      if (!/\[MASK\]|<mask>/.test(input.value)) {
        results.replaceChildren(el("p", { class: "soft" }, "Insert a [MASK] where a token is to be predicted."));
        return setStatus("");
      }
      const {
        results: [filled],
      } = await call("/v1/heed/fill", { model: select.value, input: input.value, top: 8 }, signal);
      replaceChildrenKeepingFocus(
        results,
        "button",
        ...filled.masks.map((mask, m) =>
          el(
            "div",
            { class: "card" },
            el("h3", {}, filled.masks.length > 1 ? `Mask ${m + 1}` : "Candidates"),
            bars(
              mask.candidates.map((c) => ({
                name: visible(c.text || c.piece),
                p: c.probability,
                onclick: () => put(m, c.text),
              })),
            ),
          ),
        ),
      );
      setStatus(`Most probable: ${filled.text}`);
    },
    (message) => results.replaceChildren(errorNote(message)),
  );
  const runSoon = debounce(300, run);

  function put(mask, word) {
    let at = 0;
    input.value = input.value.replace(/\[MASK\]|<mask>/g, (found) => (at++ === mask ? word : found));
    run();
  }
  return run;
}
