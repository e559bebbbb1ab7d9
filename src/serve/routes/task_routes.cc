// /v1/heed/…: classify, tag, fill, parse, score, attend, tokenize, predict.
#include "heed/attend.h"
#include "serve/routes/search_fields.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

// Offsets in texts are UTF-8 bytes.
Json span_json(TextSpan span) { return Json::array({span.begin, span.end}); }
Json span_schema() {
  return schema::list(schema::integer(), "the first byte, and the one after the last");
}

std::vector<TaskInput> as_inputs(const Texts& texts) {
  std::vector<TaskInput> inputs;
  for (const std::string& text : texts.values) inputs.push_back({.text = text});
  return inputs;
}

void add_pairs(const Texts& second, const std::string& field, std::vector<TaskInput>& inputs) {
  if (second.values.empty()) return;
  if (second.values.size() != inputs.size()) {
    throw HttpError::bad_field(field, field + ": expected as many as input has (" +
                                          std::to_string(inputs.size()) + "), found " +
                                          std::to_string(second.values.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].second = second.values[i];
}

template <class Results>
void count_tokens(Call& call, const Results& results) {
  int64_t tokens = 0;
  for (const TaskResult& result : results) tokens += result.tokens;
  call.service.metrics().count_tokens(tokens, 0);
}

HttpReply results_reply(const ServedModel& served, Json results) {
  return json_reply({{"model", served.name()}, {"results", std::move(results)}});
}

Json results_schema(const schema::Members& result) {
  return schema::object({{"model", schema::text("model name")},
                         {"results", schema::list(schema::object(result), "one for each input")}});
}
Json truncated_schema() {
  return schema::flag("the text was longer than the context and was truncated");
}

// The fields of most tasks.
struct TextsCall {
  std::string model;
  Texts input;
};
void describe_input(Fields& fields, TextsCall& call) {
  fields.text({.name = "model", .about = "model name; required if several models support the task"},
              call.model);
  fields.texts({.name = "input", .about = "text, or list of texts", .required = true}, call.input);
}

// ---- classify ----------------------------------------------------------------------------------

struct ClassifyCall : TextsCall {
  Texts second;
};
void describe(Fields& fields, ClassifyCall& call) {
  describe_input(fields, call);
  fields.texts({.name = "second", .about = "second texts, for models of text pairs"}, call.second);
}

HttpReply classify(Call& call) {
  const auto request = read_fields<ClassifyCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "classify");
  std::vector<TaskInput> inputs = as_inputs(request.input);
  add_pairs(request.second, "second", inputs);
  if (served->model().takes_pairs() && request.second.values.empty() && !inputs.empty()) {
    throw HttpError::bad_field(
        "second", "second must be given: the model '" + served->name() + "' is for pairs of texts");
  }
  const Classifier& classifier = served->classifier();
  const std::vector<Classified> results = classifier.classify(inputs, call.cancelled());
  Json list = Json::array();
  for (const Classified& result : results) {
    Json json = Json::object();
    if (classifier.is_regression()) {
      json["scores"] = result.logits;
    } else {
      json["label"] = result.name;
      Json& probabilities = json["probabilities"] = Json::object();
      for (size_t i = 0; i < result.probabilities.size(); ++i) {
        probabilities[classifier.labels()[i]] = result.probabilities[i];
      }
    }
    json["tokens"] = result.tokens, json["truncated"] = result.truncated;
    list.push_back(std::move(json));
  }
  count_tokens(call, results);
  return results_reply(*served, std::move(list));
}

Json classify_schema() {
  return results_schema({{"scores?", schema::list(schema::number(), "of regressions")},
                         {"label?", schema::text("most probable label")},
                         {"probabilities?", schema::map(schema::number(), "of all labels")},
                         {"tokens", schema::integer()},
                         {"truncated", truncated_schema()}});
}

// ---- tag ---------------------------------------------------------------------------------------

struct TagCall : TextsCall {
  std::string aggregation = "first";
};
void describe(Fields& fields, TagCall& call) {
  describe_input(fields, call);
  fields.text(
      {.name = "aggregation",
       .about = "first: spans of words, labelled by the first token; simple: spans of tokens",
       .choices = {"first", "simple"}},
      call.aggregation);
}

HttpReply tag(Call& call) {
  const auto request = read_fields<TagCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "tag");
  const TagOptions options{.aggregation = request.aggregation == "simple" ? Aggregation::simple
                                                                          : Aggregation::first};
  const std::vector<Tagged> results =
      served->tagger().tag(as_inputs(request.input), options, call.cancelled());
  Json list = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& text = request.input.values[i];
    const auto part = [&](TextSpan span) {
      return text.substr(static_cast<size_t>(span.begin),
                         static_cast<size_t>(span.end - span.begin));
    };
    Json words = Json::array(), spans = Json::array();
    for (const TaggedWord& word : results[i].words) {
      words.push_back({{"text", part(word.span)},
                       {"span", span_json(word.span)},
                       {"label", word.label < 0 ? Json() : Json(word.name)},
                       {"probability", word.probability}});
    }
    for (const TaggedSpan& span : results[i].spans) {
      spans.push_back({{"text", part(span.span)},
                       {"span", span_json(span.span)},
                       {"label", span.name},
                       {"probability", span.probability}});
    }
    list.push_back({{"words", std::move(words)},
                    {"spans", std::move(spans)},
                    {"truncated", results[i].truncated}});
  }
  count_tokens(call, results);
  return results_reply(*served, std::move(list));
}

Json tag_schema() {
  const Json probability = schema::number();
  const Json word =
      schema::object({{"text", schema::text()},
                      {"span", span_schema()},
                      {"label", schema::or_null(schema::text("null: beyond the context"))},
                      {"probability", probability}});
  const Json span = schema::object({{"text", schema::text()},
                                    {"span", span_schema()},
                                    {"label", schema::text("without B- and I-")},
                                    {"probability", probability}});
  return results_schema({{"words", schema::list(word)},
                         {"spans", schema::list(span)},
                         {"truncated", truncated_schema()}});
}

// ---- fill --------------------------------------------------------------------------------------

struct FillCall : TextsCall {
  int64_t top = 5;
};
void describe(Fields& fields, FillCall& call) {
  describe_input(fields, call);
  fields.integer({.name = "top", .about = "candidates per mask (5)", .min = 1, .max = 100},
                 call.top);
}

Json candidates_json(const std::vector<Candidate>& candidates) {
  Json list = Json::array();
  for (const Candidate& candidate : candidates) {
    list.push_back({{"id", candidate.id},
                    {"piece", candidate.piece},
                    {"text", candidate.text},
                    {"probability", candidate.probability}});
  }
  return list;
}

Json candidates_schema() {
  return schema::list(schema::object({{"id", schema::integer("token id")},
                                      {"piece", schema::text("entry of the vocabulary")},
                                      {"text", schema::text()},
                                      {"probability", schema::number()}}),
                      "best first");
}

HttpReply fill(Call& call) {
  const auto request = read_fields<FillCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "fill");
  const std::vector<Filled> results = served->filler().fill(
      as_inputs(request.input), {.top = static_cast<int>(request.top)}, call.cancelled());
  Json list = Json::array();
  for (const Filled& result : results) {
    Json masks = Json::array();
    for (const FilledMask& mask : result.masks) {
      masks.push_back(
          {{"span", span_json(mask.span)}, {"candidates", candidates_json(mask.candidates)}});
    }
    list.push_back({{"source", result.source},
                    {"text", result.text},
                    {"masks", std::move(masks)},
                    {"truncated", result.truncated}});
  }
  count_tokens(call, results);
  return results_reply(*served, std::move(list));
}

Json fill_schema() {
  const Json mask = schema::object({{"span", span_schema()}, {"candidates", candidates_schema()}});
  return results_schema({{"source", schema::text("the input with mask tokens")},
                         {"text", schema::text("the input with the best candidates")},
                         {"masks", schema::list(mask)},
                         {"truncated", truncated_schema()}});
}

// ---- parse -------------------------------------------------------------------------------------

struct ParseCall : TextsCall {
  SearchOverrides search;
};
void describe(Fields& fields, ParseCall& call) {
  describe_input(fields, call);
  describe_search(fields, call.search, {"nbest"});
}

HttpReply parse(Call& call) {
  const auto request = read_fields<ParseCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "parse");
  const SearchOptions search = apply(served->model().search_options(), request.search);
  const std::vector<Parsed> results =
      served->parser().parse(request.input.values, search, call.cancelled());
  Json list = Json::array();
  for (size_t i = 0; i < results.size(); ++i) {
    const Parsed& result = results[i];
    call.service.count_texts(*served, request.input.values[i], result.linear);
    list.push_back({{"tree", result.tree},
                    {"linear", result.linear},
                    {"score", result.score},
                    {"truncated", result.truncated}});
  }
  return results_reply(*served, std::move(list));
}

Json parse_schema() {
  return results_schema({{"tree", schema::text("bracketed tree")},
                         {"linear", schema::text("the tree as generated")},
                         {"score", schema::number("score of the search")},
                         {"truncated", truncated_schema()}});
}

// ---- score -------------------------------------------------------------------------------------

struct ScoreCall : TextsCall {
  Texts target;
};
void describe(Fields& fields, ScoreCall& call) {
  describe_input(fields, call);
  fields.texts({.name = "target", .about = "target to score, for encoder-decoder models"},
               call.target);
}

HttpReply score(Call& call) {
  const auto request = read_fields<ScoreCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "score");
  std::vector<TaskInput> inputs = as_inputs(request.input);
  add_pairs(request.target, "target", inputs);
  if (!served->model().has_source() && !request.target.values.empty()) {
    throw HttpError::bad_field("target", "target: this model has no source: all text is input");
  }
  const std::vector<Scored> results = served->scorer().score(inputs, {}, call.cancelled());
  Json list = Json::array();
  for (const Scored& result : results) {
    Json offsets = Json::array();
    for (const TextSpan span : result.offsets) offsets.push_back(span_json(span));
    list.push_back({{"log_probability", result.log_probability},
                    {"perplexity", result.perplexity()},
                    {"ids", result.ids},
                    {"token_scores", result.token_scores},
                    {"offsets", std::move(offsets)},
                    {"truncated", result.truncated}});
  }
  count_tokens(call, results);
  return results_reply(*served, std::move(list));
}

Json score_schema() {
  return results_schema({{"log_probability", schema::number("sum over all tokens")},
                         {"perplexity", schema::number()},
                         {"ids", schema::list(schema::integer())},
                         {"token_scores", schema::list(schema::number())},
                         {"offsets", schema::list(span_schema())},
                         {"truncated", truncated_schema()}});
}

// ---- attend ------------------------------------------------------------------------------------

struct AttendCall {
  std::string model, input, format = "json";
  std::optional<std::string> second, target;
};
void describe(Fields& fields, AttendCall& call) {
  fields.text({.name = "model", .about = "model name; required if several are loaded"}, call.model);
  fields.text(
      {.name = "input", .about = "text, or source of encoder-decoder models", .required = true},
      call.input);
  fields.text({.name = "second", .about = "second text, for models of text pairs"}, call.second);
  fields.text(
      {.name = "target", .about = "target of encoder-decoder models; default: the model's output"},
      call.target);
  fields.text(
      {.name = "format", .about = "json: weights; svg: a drawing", .choices = {"json", "svg"}},
      call.format);
}

HttpReply attend_to(Call& call) {
  const auto request = read_fields<AttendCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "attend");
  TaskInput input{.text = request.input,
                  .second = served->model().has_source() ? request.target : request.second};
  TaskOptions options = served->task_options();
  options.max_tokens = call.service.options().limits.attend_tokens;
  const AttentionView view = attend(served->model(), input, options,
                                    {.max_weights = call.service.options().limits.attend_weights,
                                     .is_cancelled = call.cancelled()});
  call.service.metrics().count_tokens(view.tokens, 0);
  if (request.format == "svg") {
    return {.body = attention_svg(view, request.input), .content_type = "image/svg+xml"};
  }
  // Four digits: more would only enlarge the reply.
  constexpr int kDigits = 4;
  return {.body = attention_json(view, kDigits)};
}

Json attend_schema() {
  const Json tokens =
      schema::list(schema::object({{"id", schema::integer()}, {"text", schema::text()}}));
  const Json weights =
      schema::list(schema::list(schema::list(schema::number())), "for each head, query and key");
  const Json layer = schema::object({{"kind", schema::choice({"encoder", "decoder", "cross"})},
                                     {"layer", schema::integer()},
                                     {"heads", weights}});
  return schema::object({{"source", tokens},
                         {"target", tokens},
                         {"truncated", truncated_schema()},
                         {"layers", schema::list(layer)}});
}

// ---- tokenize ----------------------------------------------------------------------------------

struct TokenizeCall : TextsCall {
  bool special = true;
  std::string side = "source";
};
void describe(Fields& fields, TokenizeCall& call) {
  describe_input(fields, call);
  fields.flag({.name = "special", .about = "add special tokens"}, call.special);
  fields.text({.name = "side",
               .about = "for models with two vocabularies",
               .choices = {"source", "target"}},
              call.side);
}

HttpReply tokenize(Call& call) {
  const auto request = read_fields<TokenizeCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "tokenize");
  const Tokenizer& tokenizer = served->model().tokenizer();
  const EncodeOptions options{
      .special_tokens = request.special,
      .side = request.side == "target" ? TextSide::target : TextSide::source};
  Json list = Json::array();
  for (const std::string& text : request.input.values) {
    throw_if_cancelled(call.cancelled());
    const Encoding encoding = tokenizer.encode(text, options);
    Json pieces = Json::array(), offsets = Json::array();
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      pieces.push_back(tokenizer.piece(encoding.ids[i]));
      offsets.push_back(span_json(encoding.offsets[i]));
    }
    list.push_back(
        {{"ids", encoding.ids}, {"pieces", std::move(pieces)}, {"offsets", std::move(offsets)}});
  }
  return results_reply(*served, std::move(list));
}

Json tokenize_schema() {
  return results_schema({{"ids", schema::list(schema::integer())},
                         {"pieces", schema::list(schema::text())},
                         {"offsets", schema::list(span_schema())}});
}

// ---- predict -----------------------------------------------------------------------------------

struct PredictCall {
  std::string model, input;
  std::optional<std::string> target;
  std::vector<int32_t> ids;
  int64_t top = 10;
  double temperature = 1;
};
void describe(Fields& fields, PredictCall& call) {
  fields.text({.name = "model", .about = "model name; required if several models generate"},
              call.model);
  fields.text({.name = "input", .about = "text, or source of encoder-decoder models"}, call.input);
  fields.ids({.name = "ids", .about = "token ids instead of input"}, call.ids);
  fields.text({.name = "target", .about = "target so far, for encoder-decoder models"},
              call.target);
  fields.integer({.name = "top", .about = "number of tokens (10)", .min = 1, .max = 100}, call.top);
  fields.number({.name = "temperature",
                 .about = "temperature of the probabilities (1)",
                 .min = 0.01,
                 .max = 100},
                call.temperature);
}

HttpReply predict(Call& call) {
  const auto request = read_fields<PredictCall>(call);
  const ServedModelPtr served = call.service.model_for(call, request.model, "generate");
  const TaskInput input{.text = request.input, .second = request.target, .ids = request.ids};
  const Predicted result = served->predictor().predict({input},
                                                       {.top = static_cast<int>(request.top),
                                                        .everywhere = false,
                                                        .temperature = request.temperature},
                                                       call.cancelled())[0];
  call.service.metrics().count_tokens(result.tokens, 0);
  return json_reply(
      {{"model", served->name()},
       {"ids", result.ids},
       {"next", result.next.empty() ? Json::array() : candidates_json(result.next[0])},
       {"truncated", result.truncated}});
}

Json predict_schema() {
  return schema::object({{"model", schema::text("model name")},
                         {"ids", schema::list(schema::integer(), "the tokens so far")},
                         {"next", candidates_schema()},
                         {"truncated", truncated_schema()}});
}

template <class T>
Route task_route(const std::string& name, const std::string& about, HttpReply (*handle)(Call&),
                 const Json& schema) {
  return {.method = "POST",
          .path = "/v1/heed/" + name,
          .about = about,
          .works = true,
          .describe = described<T>(),
          .replies = {{.schema = schema}},
          .handle = handle};
}

}  // namespace

void add_task_routes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add(task_route<ClassifyCall>("classify", "Classify texts", classify, classify_schema()));
  add(task_route<TagCall>("tag", "Label words and spans", tag, tag_schema()));
  add(task_route<FillCall>("fill", "Predict masked tokens", fill, fill_schema()));
  add(task_route<ParseCall>("parse", "Parse sentences into trees", parse, parse_schema()));
  add(task_route<ScoreCall>("score", "Log-probability of texts", score, score_schema()));
  add(task_route<AttendCall>("attend", "Attention weights of a text", attend_to, attend_schema()));
  routes.back().replies.push_back({.schema = schema::text(), .type = "image/svg+xml"});
  add(task_route<TokenizeCall>("tokenize", "Tokenize texts", tokenize, tokenize_schema()));
  add(task_route<PredictCall>("predict", "Most probable next tokens", predict, predict_schema()));
}

}  // namespace heed::serve
