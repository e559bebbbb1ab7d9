// /v1/embeddings of OpenAI's API.
#include "base/text/base64.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

struct EmbeddingsCall {
  std::string model, encoding_format = "float";
  Prompts input;
};

void describe(Fields& fields, EmbeddingsCall& call) {
  fields.text({.name = "model", .about = "model name; required if several are loaded"}, call.model);
  fields.prompts({.name = "input", .about = "text or token ids, or a list", .required = true},
                 call.input);
  fields.text({.name = "encoding_format",
               .about = "base64: 32-bit floats, little-endian",
               .choices = {"float", "base64"}},
              call.encoding_format);
  fields.ignored({.name = "user", .about = "not used"});
}

HttpReply embed(Call& call) {
  const auto request = read_fields<EmbeddingsCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "embed");
  std::vector<TaskInput> inputs;
  for (const Prompt& prompt : request.input.values) {
    inputs.push_back({.text = prompt.text, .ids = prompt.ids.value_or(std::vector<int32_t>{})});
  }
  const std::vector<Embedded> results =
      served->embedder().embed(inputs, served->embed_settings(), call.cancelled());
  Json data = Json::array();
  int64_t tokens = 0;
  for (const Embedded& result : results) {
    tokens += result.tokens;
    Json vector = result.vector;
    if (request.encoding_format == "base64")
      vector = encode_base64(std::as_bytes(std::span(result.vector)));
    data.push_back(
        {{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(vector)}});
  }
  call.service.metrics().count_tokens(tokens, 0);
  return json_reply({{"object", "list"},
                     {"data", std::move(data)},
                     {"model", served->name()},
                     {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
}

Json embeddings_schema() {
  const Json vector = schema::any_of({schema::list(schema::number()), schema::text("base64")});
  return schema::object(
      {{"object", schema::choice({"list"})},
       {"data", schema::list(schema::object({{"object", schema::choice({"embedding"})},
                                             {"index", schema::integer("index of the input")},
                                             {"embedding", vector}}))},
       {"model", schema::text("model name")},
       {"usage", schema::object({{"prompt_tokens", schema::integer()},
                                 {"total_tokens", schema::integer()}})}});
}

}  // namespace

void add_embedding_routes(std::vector<Route>& routes) {
  routes.push_back({.method = "POST",
                    .path = "/v1/embeddings",
                    .about = "Embed texts (OpenAI API)",
                    .works = true,
                    .describe = described<EmbeddingsCall>(),
                    .replies = {{.schema = embeddings_schema()}},
                    .handle = embed});
}

}  // namespace heed::serve
