// What is sent is what /openapi.json says, for every route: each member of each answer is described
// and has its type, what is required is there, and nothing is described that never comes.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "serve/routes/json_schema.h"
#include "serve/serve_testing.h"

namespace heed::serve {
namespace {

const SentHeaders kBoss{{"Authorization", "Bearer boss"}};

// Compares values with the schemas that serve/routes/json_schema.h can write.
class SchemaCheck {
 public:
  explicit SchemaCheck(Json api) : api_(std::move(api)) {}

  // What does not fit, first of all; empty: everything does. `place` is the schema's own.
  std::string problem(const Json& value, const Json& schema, const std::string& place) {
    if (schema.contains("$ref")) return problem(value, component(schema), place);
    if (value.is_null() && schema.value("nullable", false)) return "";
    if (schema.contains("anyOf")) {
      std::string all;
      for (const Json& one : schema["anyOf"]) {
        const std::string why = problem(value, one, place);
        if (why.empty()) return "";
        all += (all.empty() ? "" : ", or ") + why;
      }
      return all;
    }
    const std::string type = schema.value("type", "");
    if (!is_of_type(value, type)) return place + " is no " + type + ": " + value.dump();
    if (schema.contains("enum") && !contains(schema["enum"], value)) {
      return place + " cannot be " + value.dump();
    }
    if (type == "array") {
      for (const Json& item : value) {
        const std::string why = problem(item, schema["items"], place + "[]");
        if (!why.empty()) return why;
      }
    }
    return type == "object" ? object_problem(value, schema, place) : "";
  }

  // The members that a schema describes, each by its place.
  void list_members(const Json& schema, const std::string& place,
                    std::set<std::string>& members) const {
    for (const Json& one : schema.value("anyOf", Json::array())) list_members(one, place, members);
    if (schema.contains("items")) list_members(schema["items"], place + "[]", members);
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, inner] : properties.items()) {
      members.insert(place + "." + name);
      list_members(inner, place + "." + name, members);
    }
  }

  const Json& api() const { return api_; }
  std::set<std::string>& seen() { return seen_; }

 private:
  static bool contains(const Json& list, const Json& value) {
    return std::ranges::find(list, value) != list.end();
  }

  static bool is_of_type(const Json& value, const std::string& type) {
    return type.empty() || (type == "string" && value.is_string()) ||
           (type == "boolean" && value.is_boolean()) || (type == "number" && value.is_number()) ||
           (type == "integer" && value.is_number_integer()) ||
           (type == "array" && value.is_array()) || (type == "object" && value.is_object());
  }

  const Json& component(const Json& reference) const {
    const std::string path = reference["$ref"].get<std::string>().substr(1);  // after '#'
    return api_.at(Json::json_pointer(path));
  }

  std::string object_problem(const Json& value, const Json& schema, const std::string& place) {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return place + " has no " + name.dump();
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, inner] : value.items()) {
      std::string why;
      if (properties.contains(name)) {
        seen_.insert(place + "." + name);
        why = problem(inner, properties[name], place + "." + name);
      } else if (!schema.contains("additionalProperties")) {
        why = place + "." + name + " is not described";
      } else if (schema["additionalProperties"].is_object()) {
        why = problem(inner, schema["additionalProperties"], place + ".*");
      }
      if (!why.empty()) return why;
    }
    return "";
  }

  const Json api_;
  std::set<std::string> seen_;  // types of replies, and members of them
};

class OpenapiTest : public ServeTest {
 protected:
  void begin(const std::vector<std::string>& kinds) {
    for (const char* folder : {"runs/small", "runs/sweep"}) {
      std::filesystem::create_directories(path(folder));
    }
    write("runs/small/log.jsonl", "{\"kind\":\"train\",\"step\":10,\"loss\":3.5}\n");
    write("runs/sweep/table.json", "{\"columns\":[\"bleu\"],\"rows\":[]}");
    start(kinds, {.admin_key = "boss", .runs_folder = path("runs")});
    check_ = std::make_unique<SchemaCheck>(client().get("/openapi.json").json());
  }

  // Sends it and compares what comes with what is described: route "POST /v1/heed/parse", or
  // "GET /v1/models/{name}" with the name in `value`.
  Json send(const std::string& route, const Json& body = {}, const std::string& value = {}) {
    SCOPED_TRACE(route + " " + body.dump());
    const std::string method = route.substr(0, route.find(' '));
    const std::string pattern = route.substr(route.find(' ') + 1);
    std::string address = pattern;
    if (!value.empty()) address = pattern.substr(0, pattern.find('{')) + value;
    const Received reply = method == "GET"      ? client().get(address, kBoss)
                           : method == "DELETE" ? client().remove(address, kBoss)
                                                : client().post(address, body, kBoss);
    const Json& responses = check_->api()["paths"][pattern][lower(method)]["responses"];
    const std::string status = std::to_string(reply.status);
    const std::string type = reply.type.substr(0, reply.type.find(';'));
    const std::string described = responses.contains(status) ? status : "default";
    const Json content =
        responses.value(described, Json::object()).value("content", Json::object());
    if (!content.contains(type)) {
      ADD_FAILURE() << described << " is not described with the type " << type;
      return {};
    }
    const std::string place = route + " " + described + " " + type;
    check_->seen().insert(place);
    for (const Json& json : documents(reply, type)) {
      EXPECT_EQ(check_->problem(json, content[type]["schema"], place), "");
    }
    return reply.json();
  }

  // All that is described, but for errors, which are the same everywhere.
  std::set<std::string> described() const {
    std::set<std::string> places;
    for (const auto& [pattern, methods] : check_->api()["paths"].items()) {
      for (const auto& [method, operation] : methods.items()) {
        for (const auto& [status, response] : operation["responses"].items()) {
          if (!status.starts_with('2')) continue;
          for (const auto& [type, media] : response["content"].items()) {
            const std::string place = upper(method) + " " + pattern + " " + status + " " + type;
            places.insert(place);
            check_->list_members(media["schema"], place, places);
          }
        }
      }
    }
    return places;
  }

  const SchemaCheck& check() const { return *check_; }
  const std::set<std::string>& seen() const { return check_->seen(); }

 private:
  static std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  }
  static std::string upper(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
  }

  // What the schema of that type is about: the body, or the data of each event.
  static std::vector<Json> documents(const Received& reply, const std::string& type) {
    if (type == "application/json") return {reply.json()};
    if (type != "text/event-stream") return {Json(reply.body)};
    std::vector<Json> events;
    std::istringstream lines(reply.body);
    constexpr std::string_view kData = "data: ";
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(kData) || line.ends_with("[DONE]")) continue;
      events.push_back(Json::parse(line.substr(kData.size())));
    }
    EXPECT_FALSE(events.empty());
    return events;
  }

  std::unique_ptr<SchemaCheck> check_;
};

TEST_F(OpenapiTest, DescribesWhatIsSent) {
  begin({"gpt", "en-de", "parser", "mlm", "labels", "grades", "tags"});
  for (const char* route : {"/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/models",
                            "/languages", "/v1/heed/runs"}) {
    send(std::string("GET ") + route);
  }
  for (const char* file : {"index.html", "main.js", "style.css", "icon.svg"}) {
    send("GET /web/{file}", {}, file);
  }
  for (const char* model : {"en-de", "labels"}) {
    send("GET /v1/models/{name}", {}, model);
    send("GET /v1/heed/models/{name}", {}, model);
  }
  for (const char* kind : {"labels", "en-de"}) {
    send("POST /v1/heed/models", {{"name", "new"}, {"folder", path(kind)}});
  }
  send("DELETE /v1/heed/models/{name}", {}, "new");

  for (const Json& q : {Json("the cat"), Json{"the cat", "a dog"}}) {
    send("POST /translate", {{"q", q}, {"target", "de"}});
    send("POST /translate", {{"q", q},
                             {"source", "en"},
                             {"target", "de"},
                             {"alternatives", 2},
                             {"alignments", true},
                             {"terms", {{"cat", "dog"}}}});
  }

  send("POST /translate", {{"q", "the cat"}, {"target", "de"}, {"temperature", 1}});

  Json complete{{"model", "gpt"}, {"prompt", "the cat"}, {"max_tokens", 4}};
  send("POST /v1/completions", complete);
  for (const bool stream : {false, true}) {
    send("POST /v1/completions", {{"model", "gpt"},
                                  {"prompt", std::vector<int>(100, 5)},
                                  {"truncate", "left"},
                                  {"stream", stream}});
  }
  for (const int logprobs : {0, 2}) {
    complete["logprobs"] = logprobs, complete["echo"] = true;
    send("POST /v1/completions", complete);
  }
  complete["stream"] = true;
  complete["stream_options"] = {{"include_usage", true}};
  send("POST /v1/completions", complete);
  complete.erase("logprobs");
  send("POST /v1/completions", complete);
  for (const char* format : {"float", "base64"}) {
    send("POST /v1/embeddings", {{"model", "mlm"}, {"input", "a"}, {"encoding_format", format}});
  }

  for (const char* model : {"labels", "grades"}) {
    send("POST /v1/heed/classify", {{"model", model}, {"input", "the cat"}});
  }
  send("POST /v1/heed/tag", {{"input", "she lives in new york"}});
  send("POST /v1/heed/fill", {{"input", "the [MASK] sat"}});
  send("POST /v1/heed/parse", {{"input", {"the cat sat", ""}}});
  send("POST /v1/heed/score", {{"model", "gpt"}, {"input", "the cat"}});
  send("POST /v1/heed/tokenize", {{"model", "gpt"}, {"input", "the cat"}});
  send("POST /v1/heed/predict", {{"model", "gpt"}, {"input", "the cat"}});
  for (const char* format : {"json", "svg"}) {
    send("POST /v1/heed/attend", {{"model", "en-de"}, {"input", "the cat"}, {"format", format}});
  }

  const Json run = send("POST /v1/heed/run", {{"name", "small"}});
  send("POST /v1/heed/run", {{"name", "small"}, {"version", run["version"]}});
  send("POST /v1/heed/run", {{"name", "sweep"}});

  const std::set<std::string> all = described();
  EXPECT_GT(all.size(), 100U);
  std::vector<std::string> never;
  std::ranges::set_difference(all, seen(), std::back_inserter(never));
  EXPECT_THAT(never, testing::IsEmpty());
}

TEST_F(OpenapiTest, DescribesErrorsInBothForms) {
  begin({"gpt"});
  for (const auto& [pattern, methods] : check().api()["paths"].items()) {
    if (!methods.contains("post")) continue;
    send("POST " + pattern, {{"no_such_field", 1}});
    EXPECT_TRUE(seen().contains("POST " + pattern + " default application/json"));
  }
  send("GET /v1/models/{name}", {}, "none");
  EXPECT_TRUE(seen().contains("POST /translate default application/json.error"));
  EXPECT_FALSE(seen().contains("POST /translate default application/json.error.message"));
  EXPECT_TRUE(seen().contains("GET /v1/models/{name} default application/json.error.message"));
}

// The check itself: what is wrong is found.
TEST(SchemaCheckTest, FindsWhatDoesNotFit) {
  SchemaCheck check(Json::object());
  const Json schema =
      schema::object({{"name", schema::text()},
                      {"counts", schema::list(schema::integer())},
                      {"more?", schema::any_of({schema::flag(), schema::map(schema::number())})},
                      {"kind", schema::or_null(schema::choice({"a", "b"}))}});
  const Json good{{"name", "x"}, {"counts", {1, 2}}, {"more", {{"y", 0.5}}}, {"kind", nullptr}};
  EXPECT_EQ(check.problem(good, schema, ""), "");
  const auto problem_with = [&](const char* name, const Json& value) {
    Json changed = good;
    changed[name] = value;
    return check.problem(changed, schema, "");
  };
  EXPECT_EQ(problem_with("name", nullptr), ".name is no string: null");
  EXPECT_EQ(problem_with("counts", {1, 0.5}), ".counts[] is no integer: 0.5");
  EXPECT_EQ(problem_with("more", {{"y", "z"}}),
            ".more is no boolean: {\"y\":\"z\"}, or .more.* is no number: \"z\"");
  EXPECT_EQ(problem_with("kind", "c"), ".kind cannot be \"c\"");
  EXPECT_EQ(problem_with("other", 1), ".other is not described");
  Json without = good;
  without.erase("kind");
  EXPECT_EQ(check.problem(without, schema, ""), " has no \"kind\"");
}

}  // namespace
}  // namespace heed::serve
