// Third-party clients against the server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { libreTranslate } from "libretranslate-ts";
import OpenAI from "openai";
import { startServer } from "./heed.mjs";

let server, client;
before(async () => {
  server = await startServer("--api-key", "secret");
  client = new OpenAI({ baseURL: `${server.url}v1`, apiKey: "secret", maxRetries: 0 });
});
after(async () => assert.equal(await server.stop(), 0));

test("openai: completion", async () => {
  const answer = await client.completions.create({
    model: "gpt",
    prompt: "the cat",
    max_tokens: 8,
    temperature: 0,
    logprobs: 2,
  });
  assert.equal(answer.choices.length, 1);
  assert.ok(["stop", "length"].includes(answer.choices[0].finish_reason));
  assert.ok(answer.usage.completion_tokens >= 1 && answer.usage.completion_tokens <= 8);
  assert.equal(answer.choices[0].logprobs.tokens.length, answer.choices[0].logprobs.token_logprobs.length);
});

test("openai: the stream equals the completion", async () => {
  const call = { model: "gpt", prompt: "the cat", max_tokens: 12, temperature: 0.9, seed: 3 };
  const whole = await client.completions.create(call);
  let text = "",
    finish = null,
    usage = null;
  for await (const part of await client.completions.create({
    ...call,
    stream: true,
    stream_options: { include_usage: true },
  })) {
    text += part.choices[0]?.text ?? "";
    finish = part.choices[0]?.finish_reason ?? finish;
    usage = part.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].text);
  assert.equal(finish, whole.choices[0].finish_reason);
  assert.deepEqual(usage, whole.usage);
});

test("openai: n choices, streamed interleaved", async () => {
  const call = { model: "gpt", prompt: ["the cat", "she"], max_tokens: 10, temperature: 1, seed: 7, n: 3 };
  const whole = await client.completions.create(call);
  assert.deepEqual(
    whole.choices.map((choice) => choice.index),
    [0, 1, 2, 3, 4, 5],
  );
  assert.ok(new Set(whole.choices.slice(0, 3).map((choice) => choice.text)).size > 1);
  const texts = Array(6).fill("");
  for await (const part of await client.completions.create({ ...call, stream: true }))
    for (const choice of part.choices) texts[choice.index] += choice.text;
  assert.deepEqual(
    texts,
    whole.choices.map((choice) => choice.text),
  );
});

test("openai: stop and echo", async () => {
  const call = { model: "gpt", prompt: "the cat", max_tokens: 12, temperature: 0 };
  const {
    choices: [free],
  } = await client.completions.create(call);
  const words = free.text.trim().split(/\s+/);
  const stop = words.find((word, i) => i > 0 && word !== words[0]) ?? words.at(-1);
  const {
    choices: [stopped],
  } = await client.completions.create({ ...call, stop: [stop, "never"] });
  assert.equal(stopped.text, free.text.slice(0, free.text.indexOf(stop)));
  assert.equal(stopped.finish_reason, "stop");
  const {
    choices: [echoed],
  } = await client.completions.create({ ...call, echo: true });
  assert.ok(echoed.text.startsWith("the cat") && echoed.text.endsWith(free.text));
});

test("openai: logprobs of the completion's tokens", async () => {
  const call = { model: "gpt", prompt: "the cat", max_tokens: 6, temperature: 0, logprobs: 3 };
  const {
    choices: [{ logprobs }],
  } = await client.completions.create(call);
  assert.equal(logprobs.tokens.length, logprobs.text_offset.length);
  logprobs.top_logprobs.forEach((tops, i) => {
    assert.equal(Object.keys(tops).length, 3);
    assert.ok(Math.abs(Math.max(...Object.values(tops)) - logprobs.token_logprobs[i]) < 1e-4); // greedy: argmax
  });
  const streamed = [];
  for await (const part of await client.completions.create({ ...call, stream: true }))
    if (part.choices[0]?.logprobs) streamed.push(...part.choices[0].logprobs.tokens);
  assert.deepEqual(streamed, logprobs.tokens);
});

test("openai: embeddings", async () => {
  const answer = await client.embeddings.create({ model: "mlm", input: ["the cat", "a dog"] }); // base64 underneath
  assert.equal(answer.data.length, 2);
  const length = Math.hypot(...answer.data[0].embedding);
  assert.ok(Math.abs(length - 1) < 1e-4, `length ${length}`);
  const floats = await client.embeddings.create({ model: "mlm", input: "the cat", encoding_format: "float" });
  floats.data[0].embedding.forEach((x, i) => assert.ok(Math.abs(x - answer.data[0].embedding[i]) < 1e-6));
});

test("openai: models and errors", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.deepEqual(names, ["en-de", "gpt", "mlm", "labels", "pairs", "tags", "alibi", "rope", "parser"]);
  await assert.rejects(client.completions.create({ model: "none", prompt: "x" }), OpenAI.NotFoundError);
  await assert.rejects(
    client.completions.create({ model: "gpt", prompt: "x", temperature: 9 }),
    (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature",
  );
  const stranger = new OpenAI({ baseURL: `${server.url}v1`, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  await assert.rejects(
    client.completions.create({ model: "gpt", prompt: "x", suffix: "y" }),
    (error) => error.param === "suffix",
  );
  await assert.rejects(
    client.embeddings.create({ model: "mlm", input: "x".repeat(200_000) }),
    (error) => error.status === 413,
  );
  assert.equal((await client.models.retrieve("gpt")).id, "gpt");
});

// Without retries the client gets 429; with retries the request succeeds.
test("openai: 429 and Retry-After", async () => {
  const busy = await startServer("--max-running", "1", "--max-waiting", "0");
  try {
    const make = (maxRetries) => new OpenAI({ baseURL: `${busy.url}v1`, apiKey: "none", maxRetries });
    const long = await make(0).completions.create({
      model: "gpt",
      prompt: Array(200).fill("the cat"),
      max_tokens: 40,
      stream: true,
    });
    await assert.rejects(make(0).completions.create({ model: "gpt", prompt: "the cat" }), OpenAI.RateLimitError);
    const patient = make(5).completions.create({ model: "gpt", prompt: "the cat" });
    long.controller.abort(); // which gives its place back
    assert.equal((await patient).choices.length, 1);
  } finally {
    assert.equal(await busy.stop(), 0);
  }
});

test("/openapi.json is valid and lists the routes used here", async () => {
  const description = await (await fetch(`${server.url}openapi.json`)).json();
  const { valid, errors } = await new Validator().validate(structuredClone(description));
  assert.ok(valid, JSON.stringify(errors));
  for (const path of ["/translate", "/languages", "/v1/completions", "/v1/embeddings", "/v1/models", "/metrics"])
    assert.ok(description.paths[path], path);
});

// Accepted requests are answered in full; later ones are refused.
test("SIGTERM under load: accepted requests are answered, exit status 0", async () => {
  const own = await startServer();
  const seen = { whole: 0, refused: 0, broken: 0 };
  let isOver = false;
  const ask = async (seed) => {
    for (let i = 0; !isOver; ++i) {
      let response;
      try {
        response = await fetch(`${own.url}v1/completions`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ model: "gpt", prompt: "the cat", max_tokens: 30, seed, stream: i % 2 === 0 }),
        });
      } catch {
        return ++seen.refused; // the port is closed
      }
      if (response.status === 503) return ++seen.refused;
      const text = await response.text().catch(() => "");
      if (response.status === 200 && (text.endsWith("data: [DONE]\n\n") || JSON.parse(text || "{}").choices))
        ++seen.whole;
      else return ++seen.broken;
    }
  };
  const clients = Array.from({ length: 16 }, (_, seed) => ask(seed));
  while (seen.whole < 32) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(await own.stop(), 0);
  isOver = true;
  await Promise.all(clients);
  assert.equal(seen.broken, 0);
  assert.ok(seen.refused > 0);
  const answered = own
    .log()
    .split("\n")
    .filter((line) => line.includes('"/v1/completions"') && JSON.parse(line).status === 200);
  assert.equal(answered.length, seen.whole);
});

test("libretranslate-ts: languages, translation, errors", async () => {
  libreTranslate.setApiEndpoint(server.url.replace(/\/$/, ""));
  libreTranslate.setApiKey("secret");
  const languages = await libreTranslate.listLanguages();
  assert.deepEqual(
    languages.find((language) => language.code === "en"),
    { code: "en", name: "English", targets: ["de"] },
  );
  const answer = await libreTranslate.translate("the cat", "en", "de", 2);
  assert.equal(answer.status, 200, answer.error);
  assert.ok(answer.translatedText.length > 0);
  assert.equal(answer.alternatives.length, 2);
  assert.match((await libreTranslate.translate("the cat", "en", "fr")).error, /fr is not supported/);
  libreTranslate.setApiKey("wrong");
  assert.match((await libreTranslate.translate("the cat", "en", "de")).error, /key/);
});

test("the call from LibreTranslate's documentation", async () => {
  const response = await fetch(`${server.url}translate`, {
    method: "POST",
    body: JSON.stringify({
      q: "the cat",
      source: "en",
      target: "de",
      format: "text",
      alternatives: 3,
      api_key: "secret",
    }),
    headers: { "Content-Type": "application/json" },
  });
  const answer = await response.json();
  assert.equal(typeof answer.translatedText, "string");
  assert.equal(answer.alternatives.length, 3);
  const languages = await (await fetch(`${server.url}languages`)).json();
  assert.deepEqual(
    languages.find((l) => l.code === "en"),
    { code: "en", name: "English", targets: ["de"] },
  );
});
