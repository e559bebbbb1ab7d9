// Health, metrics, /openapi.json, and listing, loading and unloading models.
#include "heed/version.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

Json model_json(const ServedModel& served) {
  const Model& model = served.model();
  Json json{{"id", served.name()},
            {"object", "model"},
            {"created", served.loaded_at()},
            {"owned_by", "heed"},
            {"family", model.family()},
            {"head", model.head()},
            {"vocabulary", model.vocabulary()},
            {"max_positions", model.max_positions()},
            {"abilities", served.abilities()}};
  const Languages& languages = served.languages();
  if (!languages.targets.empty()) {
    json["languages"] = {{"sources", languages.sources}, {"targets", languages.targets}};
  }
  if (!model.labels().empty()) json["labels"] = model.labels();
  if (model.takes_pairs()) json["takes_pairs"] = true;
  return json;
}

schema::Members model_members() {
  const Json texts = schema::list(schema::text());
  return {{"id", schema::text("model name")},
          {"object", schema::choice({"model"})},
          {"created", schema::integer("time of loading, in seconds since 1970")},
          {"owned_by", schema::text()},
          {"family", schema::choice({"encoder_decoder", "encoder_only", "decoder_only"})},
          {"head", schema::text("language_model, classifier, …")},
          {"vocabulary", schema::integer()},
          {"max_positions", schema::integer()},
          {"abilities", schema::list(schema::text(), "translate, generate, classify, …")},
          {"languages?", schema::object({{"sources", texts}, {"targets", texts}})},
          {"labels?", schema::list(schema::text(), "of classifiers and taggers")},
          {"takes_pairs?", schema::flag("classify needs second: the model is for pairs of texts")}};
}
Json model_schema() { return schema::object(model_members()); }

HttpReply list_models(Call& call) {
  Json data = Json::array();
  for (const ServedModelPtr& model : call.service.models().all()) {
    data.push_back(model_json(*model));
  }
  return json_reply({{"object", "list"}, {"data", std::move(data)}});
}

Json models_schema() {
  return schema::object(
      {{"object", schema::choice({"list"})}, {"data", schema::list(model_schema())}});
}

ServedModelPtr named(Call& call) {
  return call.service.model_for(call, call.path_values.front(), "");
}

HttpReply show_model(Call& call) { return json_reply(model_json(*named(call))); }

// The data of the page's Model tab.
HttpReply describe_model(Call& call) {
  const ServedModelPtr served = named(call);
  const ModelInfo& info = served->info();
  Json json = model_json(*served);
  json["model_type"] = info.model_type;
  json["parameters"] = info.parameters;
  json["weight_bytes"] = info.weight_bytes;
  json["weight_type"] = info.weight_type;
  json["flops_per_token"] = info.flops_per_token;
  Json& memory = json["memory"] = Json::array();
  for (const ShapeMemory& shape : info.memory) {
    memory.push_back({{"sequences", shape.sequences},
                      {"length", shape.length},
                      {"inference_bytes", shape.inference_bytes}});
  }
  Json& settings = json["settings"] = Json::object();
  for (const Setting& setting : info.settings) {
    settings[setting.name] = Json::parse(setting.value, nullptr, false);
  }
  Json& weights = json["weights"] = Json::array();
  for (const WeightShape& weight : info.weights) {
    weights.push_back({{"name", weight.name}, {"shape", {weight.rows, weight.cols}}});
  }
  return json_reply(json);
}
Json description_schema() {
  schema::Members members = model_members();
  const schema::Members more{
      {"model_type", schema::text("model_type of config.json")},
      {"parameters", schema::integer()},
      {"weight_bytes", schema::integer()},
      {"weight_type", schema::text()},
      {"flops_per_token", schema::number()},
      {"memory", schema::list(schema::object({{"sequences", schema::integer()},
                                              {"length", schema::integer()},
                                              {"inference_bytes", schema::integer()}}))},
      {"settings", schema::map(schema::anything(), "as in a recipe's [model] section")},
      {"weights", schema::list(schema::object(
                      {{"name", schema::text()},
                       {"shape", schema::list(schema::integer(), "rows and columns")}}))}};
  members.insert(members.end(), more.begin(), more.end());
  return schema::object(members);
}

struct LoadCall {
  std::string name, folder;
};
void describe(Fields& fields, LoadCall& call) {
  fields.text({.name = "folder", .about = "model folder on the server", .required = true},
              call.folder);
  fields.text({.name = "name", .about = "model name; default: the folder's name"}, call.name);
}

HttpReply load_model(Call& call) {
  auto request = read_fields<LoadCall>(call);
  if (request.name.empty()) request.name = default_model_name(request.folder);
  call.service.models().load(request.name, request.folder);
  call.service.log({{"event", "model_loaded"}, {"model", request.name}});
  call.path_values = {request.name};
  return json_reply(model_json(*named(call)), 201);
}

HttpReply unload_model(Call& call) {
  const std::string& name = call.path_values.front();
  named(call);  // throws 404
  call.service.models().unload(name);
  call.service.log({{"event", "model_unloaded"}, {"model", name}});
  return json_reply({{"id", name}, {"object", "model"}, {"deleted", true}});
}
Json unloaded_schema() {
  return schema::object({{"id", schema::text("model name")},
                         {"object", schema::choice({"model"})},
                         {"deleted", schema::flag()}});
}

HttpReply ready(Call& call) {
  const bool is_ready = !call.service.is_closing();
  return json_reply(
      {{"status", is_ready ? "ready" : "closing"}, {"models", call.service.models().all().size()}},
      is_ready ? 200 : 503);
}
Json ready_schema() {
  return schema::object({{"status", schema::choice({"ready", "closing"})},
                         {"models", schema::integer("number of loaded models")}});
}

HttpReply metrics(Call& call) {
  return {.body = call.service.metrics_text(), .content_type = "text/plain; version=0.0.4"};
}

// OpenAPI parameters for each {name} of a path.
Json path_parameters(const std::string& path) {
  Json list = Json::array();
  for (size_t begin = path.find('{'); begin != std::string::npos;
       begin = path.find('{', begin + 1)) {
    const std::string name = path.substr(begin + 1, path.find('}', begin) - begin - 1);
    list.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  return list;
}

Json responses_of(const Route& route) {
  Json responses = Json::object();
  for (const Route::Reply& reply : route.replies) {
    Json& response = responses[std::to_string(reply.status)];
    response["description"] = "success";
    response["content"][reply.type] = {{"schema", reply.schema}};
  }
  const Json error{{"schema", schema::component(error_name(route.form))}};
  responses["default"] = {{"description", "error"}, {"content", {{"application/json", error}}}};
  return responses;
}

HttpReply openapi(Call& call) {
  Json paths = Json::object(), errors = Json::object();
  for (const Route::Form form : {Route::Form::openai, Route::Form::libretranslate}) {
    errors[error_name(form)] = error_schema(form);
  }
  for (const Route& route : call.service.routes()) {
    Json operation{{"summary", route.about}, {"responses", responses_of(route)}};
    const Json parameters = path_parameters(route.path);
    if (!parameters.empty()) operation["parameters"] = parameters;
    if (route.describe) {
      FieldSchema fields(call.service.field_limits());
      route.describe(fields);
      Json content{{"application/json", {{"schema", fields.schema()}}}};
      if (route.takes_form) {
        content["application/x-www-form-urlencoded"] = {{"schema", fields.schema()}};
      }
      operation["requestBody"] = {{"required", true}, {"content", std::move(content)}};
    }
    if (route.access != Route::Access::open) {
      operation["security"] = Json::array({{{"key", Json::array()}}});
    }
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    paths[route.path][method] = std::move(operation);
  }
  return json_reply({{"openapi", "3.0.3"},
                     {"info", {{"title", "Heed"}, {"version", version()}}},
                     {"paths", std::move(paths)},
                     {"components",
                      {{"schemas", std::move(errors)},
                       {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}});
}

}  // namespace

void add_status_routes(std::vector<Route>& routes) {
  using Access = Route::Access;
  routes.push_back({.method = "GET",
                    .path = "/healthz",
                    .about = "Liveness check",
                    .access = Access::open,
                    .replies = {{.schema = schema::object({{"status", schema::choice({"ok"})}})}},
                    .handle = [](Call&) {
                      return json_reply({{"status", "ok"}});
                    }});
  routes.push_back(
      {.method = "GET",
       .path = "/readyz",
       .about = "Readiness check: 503 during shutdown",
       .access = Access::open,
       .replies = {{.schema = ready_schema()}, {.schema = ready_schema(), .status = 503}},
       .handle = ready});
  routes.push_back({.method = "GET",
                    .path = "/metrics",
                    .about = "Prometheus metrics",
                    .replies = {{.schema = schema::text(), .type = "text/plain"}},
                    .handle = metrics});
  routes.push_back({.method = "GET",
                    .path = "/openapi.json",
                    .about = "This OpenAPI description",
                    .access = Access::open,
                    .replies = {{.schema = schema::map(schema::anything())}},
                    .handle = openapi});
  routes.push_back({.method = "GET",
                    .path = "/v1/models",
                    .about = "List the loaded models",
                    .replies = {{.schema = models_schema()}},
                    .handle = list_models});
  routes.push_back({.method = "GET",
                    .path = "/v1/models/{name}",
                    .about = "One loaded model",
                    .replies = {{.schema = model_schema()}},
                    .handle = show_model});
  routes.push_back({.method = "GET",
                    .path = "/v1/heed/models/{name}",
                    .about = "Settings, size and memory of a model",
                    .replies = {{.schema = description_schema()}},
                    .handle = describe_model});
  routes.push_back({.method = "POST",
                    .path = "/v1/heed/models",
                    .about = "Load or reload a model",
                    .access = Access::admin,
                    .describe = described<LoadCall>(),
                    .replies = {{.schema = model_schema(), .status = 201}},
                    .handle = load_model});
  routes.push_back({.method = "DELETE",
                    .path = "/v1/heed/models/{name}",
                    .about = "Unload a model after its running requests",
                    .access = Access::admin,
                    .replies = {{.schema = unloaded_schema()}},
                    .handle = unload_model});
}

}  // namespace heed::serve
