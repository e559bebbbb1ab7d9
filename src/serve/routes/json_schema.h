// Builders of JSON schemas (OpenAPI 3.0), for the replies of routes.
//
//   schema::object({{"model", schema::text("model name")},
//                   {"results", schema::list(schema::object({{"tree", schema::text()}}))},
//                   {"labels?", schema::list(schema::text())}});    // "?": optional
//
// Replies are validated against them in openapi_test.cc only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace heed::serve {

using Json = nlohmann::ordered_json;

namespace schema {

Json text(const char* about = "");
Json choice(const std::vector<std::string>& values, const char* about = "");  // a string
Json integer(const char* about = "");
Json number(const char* about = "");
Json flag(const char* about = "");
Json anything(const char* about = "");
Json list(Json items, const char* about = "");
Json map(Json values, const char* about = "");  // an object with arbitrary keys

struct Member {
  std::string name;
  Json schema;
};
using Members = std::vector<Member>;
Json object(const Members& members);
// Allows additional members.
Json open_object(const Members& members);

Json any_of(const std::vector<Json>& schemas, const char* about = "");
Json or_null(Json schema);
// A reference to a component of /openapi.json.
Json component(const std::string& name);

}  // namespace schema
}  // namespace heed::serve
