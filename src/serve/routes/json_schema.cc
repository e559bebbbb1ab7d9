#include "serve/routes/json_schema.h"

namespace heed::serve::schema {
namespace {

Json with_about(Json schema, const char* about) {
  if (*about != '\0') schema["description"] = about;
  return schema;
}

Json of_type(const char* type, const char* about) { return with_about({{"type", type}}, about); }

}  // namespace

Json text(const char* about) { return of_type("string", about); }
Json integer(const char* about) { return of_type("integer", about); }
Json number(const char* about) { return of_type("number", about); }
Json flag(const char* about) { return of_type("boolean", about); }
Json anything(const char* about) { return with_about(Json::object(), about); }

Json choice(const std::vector<std::string>& values, const char* about) {
  return with_about({{"type", "string"}, {"enum", values}}, about);
}

Json list(Json items, const char* about) {
  return with_about({{"type", "array"}, {"items", std::move(items)}}, about);
}

Json map(Json values, const char* about) {
  return with_about({{"type", "object"}, {"additionalProperties", std::move(values)}}, about);
}

Json object(const Members& members) {
  Json properties = Json::object(), required = Json::array();
  for (const auto& [name, schema] : members) {
    const bool may_miss = name.ends_with('?');
    const std::string key = may_miss ? name.substr(0, name.size() - 1) : name;
    properties[key] = schema;
    if (!may_miss) required.push_back(key);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json open_object(const Members& members) {
  Json schema = object(members);
  schema["additionalProperties"] = true;
  return schema;
}

Json any_of(const std::vector<Json>& schemas, const char* about) {
  return with_about({{"anyOf", schemas}}, about);
}

Json or_null(Json schema) {
  schema["nullable"] = true;
  return schema;
}

Json component(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

}  // namespace heed::serve::schema
