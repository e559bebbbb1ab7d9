// The HTTP API as a page, made from /openapi.json: each route with its fields, its reply and a curl line.
import { call, copyButton, el, setStatus } from "./heed.js";

document.documentElement.dataset.theme = localStorage.getItem("heed-theme") ?? "";

const groups = [
  ["Translation (LibreTranslate API)", /^\/(translate|languages)/],
  ["Completions, embeddings and models (OpenAI API)", /^\/v1\/(?!heed)/],
  ["Tasks", /^\/v1\/heed\/(?!models|runs?$)/],
  ["Models and training runs", /^\/v1\/heed\//],
  ["Server", /./],
];

// Values for the examples, by the name of the field.
const samples = {
  q: "Good morning!",
  source: "en",
  target: "de",
  input: "The cat is on the sofa.",
  prompt: "Once upon a time",
  max_tokens: 40,
  model: "MODEL",
  name: "NAME",
  file: "main.js",
  folder: "DIR",
};
const extra = {
  "/translate": ["source", "target"],
  "/v1/completions": ["model", "max_tokens"],
  "/v1/heed/fill": ["model"],
};
const inputs = { "/v1/heed/fill": "The cat is on the [MASK]." };

function exampleBody(path, schema) {
  const names = new Set([...(schema.required ?? []), ...(extra[path] ?? [])]);
  if (schema.properties.model && path.startsWith("/v1/")) names.add("model");
  const ordered = Object.keys(schema.properties).filter((name) => names.has(name));
  return Object.fromEntries(ordered.map((name) => [name, (name === "input" && inputs[path]) || samples[name] || ""]));
}

// In single quotes for a shell.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(method, path, operation) {
  const address =
    location.origin + path.replace(/\{(\w+)\}/g, (_, name) => (path.includes("models") ? "NAME" : samples[name]));
  const parts = ["curl"];
  if (method === "delete") parts.push("-X DELETE");
  parts.push(address);
  if (operation.security && needsKey) parts.push("-H 'Authorization: Bearer KEY'");
  const schema = operation.requestBody?.content["application/json"].schema;
  if (schema) {
    parts.push("-H 'Content-Type: application/json'");
    parts.push(`\\\n  -d ${quoted(JSON.stringify(exampleBody(path, schema)))}`);
  }
  return parts.join(" ");
}

// "string", "number, 0 to 1", "list of integers", "one of a, b".
function typeText(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map(typeText).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.type === "array") return `list of ${plural(typeText(schema.items ?? {}))}`;
  const least = schema.minimum,
    most = schema.maximum;
  const range =
    least !== undefined && most !== undefined
      ? `, ${least} to ${most}`
      : least !== undefined
        ? `, ${least} or more`
        : most !== undefined
          ? `, at most ${most}`
          : "";
  return `${schema.type ?? "any"}${range}${schema.nullable ? " or null" : ""}`;
}
const plural = (text) => text.replace(/^(string|number|integer|object|boolean)\b/, "$1s");

// The members of an object, nested ones indented. Lists of objects have the members of their items.
function memberRows(schema, depth = 0) {
  const inner = schema.anyOf?.find((one) => one.properties || one.items) ?? schema;
  const object = inner.type === "array" ? (inner.items ?? {}) : inner;
  return Object.entries(object.properties ?? {}).flatMap(([name, member]) => {
    const cell = el(
      "td",
      {},
      el("code", {}, name),
      object.required?.includes(name) ? null : el("small", {}, " optional"),
    );
    cell.style.paddingLeft = `${1.2 * depth}rem`;
    return [
      el("tr", {}, cell, el("td", { class: "soft" }, typeText(member)), el("td", {}, member.description ?? "")),
      ...memberRows(member, depth + 1),
    ];
  });
}

function members(schema) {
  const rows = memberRows(schema);
  if (!rows.length) return el("p", { class: "soft small" }, schema.description ?? typeText(schema));
  return el(
    "div",
    { class: "wide" },
    el(
      "table",
      { class: "fields" },
      el("tr", {}, ...["Field", "Type", "Meaning"].map((title) => el("th", { scope: "col" }, title))),
      ...rows,
    ),
  );
}

function reply(status, response) {
  return Object.entries(response.content ?? {}).map(([type, media]) =>
    el(
      "details",
      {},
      el("summary", {}, `Reply ${status === "default" ? "on error" : status}, `, el("code", {}, type)),
      members(resolved(media.schema)),
    ),
  );
}

let api,
  needsKey = false;
const resolved = (schema) =>
  schema.$ref
    ? schema.$ref
        .slice(2)
        .split("/")
        .reduce((at, name) => at[name], api)
    : schema;

function route(method, path, operation) {
  const id = `${method}${path.replace(/\W+/g, "-")}`;
  const line = curl(method, path, operation);
  const body = operation.requestBody?.content;
  return el(
    "article",
    { class: "card route", id },
    el(
      "h3",
      {},
      el("span", { class: `method ${method}` }, method.toUpperCase()),
      el("code", {}, path),
      el("a", { class: "anchor", href: `#${id}`, "aria-label": `Link to ${method.toUpperCase()} ${path}` }, "#"),
    ),
    el("p", {}, operation.summary),
    el(
      "div",
      { class: "try" },
      el("pre", {}, line),
      copyButton("the curl line", () => line),
    ),
    body
      ? el(
          "details",
          { open: true },
          el("summary", {}, "Fields of the request"),
          members(body["application/json"].schema),
          body["application/x-www-form-urlencoded"]
            ? el("p", { class: "soft small" }, "Also as a form: -d field=value")
            : null,
        )
      : null,
    Object.entries(operation.responses).flatMap(([status, response]) => reply(status, response)),
  );
}

async function begin() {
  const main = document.getElementById("api");
  try {
    api = await call("/openapi.json");
  } catch (error) {
    return setStatus(error.message, true);
  }
  // A model's name makes the lines ready to run; without a key it may not be known.
  try {
    const models = (await call("/v1/models")).data;
    if (models.length) samples.model = samples.name = models[0].id;
  } catch (error) {
    needsKey = error.status === 401;
  }
  document.getElementById("version").textContent = api.info.version;
  const rest = new Set(Object.keys(api.paths));
  const lists = groups.map(([title, pattern]) => {
    const paths = [...rest].filter((path) => pattern.test(path));
    paths.forEach((path) => rest.delete(path));
    const routes = paths.flatMap((path) => Object.entries(api.paths[path]).map((one) => [one[0], path, one[1]]));
    return [title, routes];
  });
  main.replaceChildren(
    el(
      "p",
      { class: "soft" },
      "Every route of this server, made from its OpenAPI description. The lines can be pasted into a terminal.",
      needsKey ? " Replace KEY by an API key." : "",
    ),
    el(
      "nav",
      { "aria-label": "Routes", class: "card columns" },
      lists.map(([title, routes]) =>
        el(
          "div",
          {},
          el("h3", {}, title),
          el(
            "ul",
            {},
            routes.map(([method, path]) =>
              el(
                "li",
                {},
                el(
                  "a",
                  { href: `#${method}${path.replace(/\W+/g, "-")}` },
                  el("span", { class: `method ${method}` }, method.toUpperCase()),
                  path,
                ),
              ),
            ),
          ),
        ),
      ),
    ),
    ...lists.flatMap(([title, routes]) => [
      el("h2", {}, title),
      ...routes.map(([method, path, operation]) => route(method, path, operation)),
    ]),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

begin();
