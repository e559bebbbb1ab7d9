// JSON schemas, as OpenAPI 3.0 has them: what a route answers, told beside it.
//
//   schema::object({{"model", schema::text("who answered")},
//                   {"results", schema::list(schema::object({{"tree", schema::text()}}))},
//                   {"labels?", schema::list(schema::text())}});    // "?": it may be missing
//
// Nothing checks what is sent against them while the server runs; openapi_test.cc does, for every
// route.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace heed::serve {

using Json = nlohmann::ordered_json;

namespace schema {

Json text(const char* about = "");
Json choice(const std::vector<std::string>& values, const char* about = "");  // a text
Json integer(const char* about = "");
Json number(const char* about = "");
Json flag(const char* about = "");
Json anything(const char* about = "");
Json list(Json items, const char* about = "");
Json map(Json values, const char* about = "");  // an object with any names

struct Member {
  std::string name;
  Json schema;
};
using Members = std::vector<Member>;
Json object(const Members& members);
// The same, which may have others too.
Json open_object(const Members& members);

Json any_of(const std::vector<Json>& schemas, const char* about = "");
Json or_null(Json schema);
// One of /openapi.json's components, by its name.
Json component(const std::string& name);

}  // namespace schema
}  // namespace heed::serve
