// Shared by all tabs: HTTP requests, DOM elements, the status line.

// el("button", {class: "quiet", onclick: f}, "Show") → <button class="quiet">Show</button>
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

export function setStatus(message, isBad = false) {
  const status = document.getElementById("status");
  status.textContent = message;
  status.classList.toggle("bad", isBad);
}

// ---- The server ----------------------------------------------------------------------------------

let key = sessionStorage.getItem("heed-key") ?? "";
export const hasKey = () => key !== "";

export function useKey(value) {
  key = value;
  sessionStorage.setItem("heed-key", value);
}

export class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function send(path, body, signal) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new HttpError(0, "The server does not respond.");
  }
  if (response.ok) return response;
  let message = response.statusText;
  try {
    const { error } = await response.json();
    message = error.message ?? error;
  } catch {
    /* no JSON body: keep the status text */
  }
  throw new HttpError(response.status, message);
}

export async function call(path, body, signal) {
  return (await send(path, body, signal)).json();
}

// Calls onEvent with the data of each server-sent event.
export async function stream(path, body, onEvent, signal) {
  const response = await send(path, { ...body, stream: true }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const json = JSON.parse(data);
      if (json.error) throw new HttpError(500, json.error.message);
      onEvent(json);
    }
  }
}

// Wraps an async function so that a new call aborts the running one. Errors go to the status line and to
// onError(message), which replaces the result of the call before: it does not belong to the new input.
export function latestOnly(work, onError) {
  let controller;
  return async (...values) => {
    controller?.abort();
    const mine = (controller = new AbortController());
    try {
      await work(mine.signal, ...values);
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) return;
      setStatus(error.message, true);
      onError?.(error.message);
    }
  };
}

export const errorNote = (message) => el("p", { class: "failed" }, message);

export function debounce(ms, work) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(work, ms, ...values);
  };
}

// ---- Models --------------------------------------------------------------------------------------

export function withAbility(models, ability) {
  return models.filter((model) => model.abilities.includes(ability));
}

export function modelChoice(models, onchange) {
  const select = el(
    "select",
    { onchange },
    models.map((model) => el("option", { value: model.id }, model.id)),
  );
  return { select, label: el("label", {}, "Model", select) };
}

// Can /v1/completions continue a text with it?
export const generates = (model) => model.abilities.includes("generate");

// "en" → "English", "eng_Latn" → "English (Latin)"; an unknown code as it is.
export function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code.replaceAll("_", "-")) ?? code;
  } catch {
    return code;
  }
}

// ---- Text ----------------------------------------------------------------------------------------

// Offsets from the server are UTF-8 bytes; JavaScript strings are UTF-16.
export class Bytes {
  constructor(text) {
    this.bytes = new TextEncoder().encode(text);
    this.decoder = new TextDecoder();
  }
  slice(begin, end) {
    return this.decoder.decode(this.bytes.slice(begin, end));
  }
  get length() {
    return this.bytes.length;
  }
}

export function percent(p) {
  if (p > 0 && p < 0.0001) return "< 0.01 %";
  return p >= 0.9995 ? "100 %" : p >= 0.0995 ? `${(p * 100).toFixed(1)} %` : `${(p * 100).toFixed(2)} %`;
}

// The verb for hints: a touch screen has no hover.
export const isTouch = () => matchMedia("(hover: none)").matches;
export const pointAt = () => (isTouch() ? "Tap" : "Hover over");

// Makes a text box as high as its text, up to most of the window.
export function grow(textarea) {
  const { height } = textarea.style; // chosen by the user, who may drag the corner
  textarea.style.height = 0;
  textarea.style.setProperty("--text-height", "0px");
  const border = textarea.offsetHeight - textarea.clientHeight;
  const needed = Math.min(textarea.scrollHeight + border, 0.7 * innerHeight);
  textarea.style.height = height;
  textarea.style.setProperty("--text-height", `${needed}px`);
}

// A button that copies what text() returns.
export function copyButton(what, text) {
  const button = el("button", { type: "button", class: "quiet", "aria-label": `Copy ${what}` }, "Copy");
  let timer;
  button.addEventListener("click", async () => {
    const isCopied = await copy(text());
    button.textContent = isCopied ? "Copied" : "Not copied";
    clearTimeout(timer);
    timer = setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return button;
}

// The clipboard API needs HTTPS or localhost; elsewhere the selection is copied.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = el("textarea", { "aria-hidden": "true" });
    box.value = text;
    document.body.append(box);
    box.select();
    const isCopied = document.execCommand("copy");
    box.remove();
    return isCopied;
  }
}

export function visible(text) {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/^ | $/g, "␣") || "∅";
}

// A list of names with bars; rows with onclick are buttons. A full bar is `most`, by default the probability 1.
export function bars(rows, most = 1) {
  const list = el(
    "ol",
    { class: "bars" },
    rows.map(({ name, p, onclick, value }) => {
      const fillBar = el("span", { class: "fill" });
      fillBar.style.width = `${(100 * p) / most}%`;
      const parts = [
        el("span", { class: "name", title: name }, name),
        el("span", { class: "track", "aria-hidden": "true" }, fillBar),
        el("span", { class: "value" }, value ?? percent(p)),
      ];
      return onclick
        ? el("li", {}, el("button", { type: "button", class: "row", onclick }, parts))
        : el("li", {}, parts);
    }),
  );
  addArrowKeys(list, "button");
  return list;
}

export function slider(name, { min, max, step, value, format = String }, oninput) {
  // A <span>, because a label would label an <output> instead of the slider.
  const shown = el("span", { class: "number" }, format(value));
  const input = el("input", { type: "range", min, max, step, value });
  input.addEventListener("input", () => {
    shown.textContent = format(Number(input.value));
    oninput?.();
  });
  return {
    input,
    get value() {
      return Number(input.value);
    },
    label: el("label", {}, el("span", {}, `${name} `, shown), input),
  };
}

// Roving tabindex: the container is one Tab stop, and arrow keys move between its items. In a .grid, up and down move
// by rows. Items added later must have tabindex 0 on one element and -1 on the others.
export function addArrowKeys(container, selector, onMove) {
  const parts = () => [...container.querySelectorAll(selector)];
  const stopAt = (item) => parts().forEach((other) => other.setAttribute("tabindex", other === item ? "0" : "-1"));
  if (parts().length) stopAt(parts()[0]);
  container.addEventListener("focusin", (event) => parts().includes(event.target) && stopAt(event.target));
  container.addEventListener("keydown", (event) => {
    const items = parts(),
      at = items.indexOf(event.target);
    if (at < 0) return;
    const row =
      (container.classList.contains("grid") && event.target.closest(".row")?.querySelectorAll(selector).length) || 1;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row }[event.key];
    const next = event.key === "Home" ? items[0] : event.key === "End" ? items.at(-1) : items[at + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    onMove?.(next);
  });
}

// Replaces the children of a container; focus stays on the item with the same index.
export function replaceChildrenKeepingFocus(container, selector, ...children) {
  const at = [...container.querySelectorAll(selector)].indexOf(document.activeElement);
  container.replaceChildren(...children);
  if (at < 0) return;
  const items = container.querySelectorAll(selector);
  items[Math.min(at, items.length - 1)]?.focus({ preventScroll: true });
}

// An SVG for download: the colours of the page become attributes.
export function standaloneSvg(picture) {
  const copy = picture.cloneNode(true),
    style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  for (const dim of copy.querySelectorAll(".dim, .gone")) dim.classList.remove("dim", "gone");
  for (const text of copy.querySelectorAll("text")) {
    text.setAttribute("fill", colour("--ink"));
    text.setAttribute("font-family", "monospace");
  }
  for (const rect of copy.querySelectorAll(".cell")) rect.setAttribute("fill", colour("--accent"));
  for (const line of copy.querySelectorAll(".line")) {
    line.setAttribute("stroke", colour("--accent"));
    line.setAttribute("fill", "none");
  }
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: colour("--card") }));
  return new XMLSerializer().serializeToString(copy);
}

export function download(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
