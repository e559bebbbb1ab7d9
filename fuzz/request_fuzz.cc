// Any bytes as a request body: rejected with status 4xx, or read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text/json_text.h"
#include "serve/http/http_error.h"
#include "serve/routes/fields.h"

namespace heed::serve {
namespace {

// A field of every kind.
struct AllFields {
  std::string text, kind = "a";
  bool flag = false, inner = false;
  int64_t integer = 0;
  double number = 0;
  std::optional<int64_t> maybe;
  Texts texts;
  Prompts prompts;
  std::vector<int32_t> ids;
  TextPairs pairs;
};

void describe(Fields& fields, AllFields& values) {
  fields.text({.name = "text"}, values.text);
  fields.text({.name = "kind", .choices = {"a", "b"}}, values.kind);
  fields.flag({.name = "flag"}, values.flag);
  fields.integer({.name = "integer", .min = -5, .max = 5}, values.integer);
  fields.number({.name = "number", .min = 0}, values.number);
  fields.integer({.name = "maybe"}, values.maybe);
  fields.texts({.name = "texts", .max = 4}, values.texts);
  fields.prompts({.name = "prompts"}, values.prompts);
  fields.ids({.name = "ids"}, values.ids);
  fields.pairs({.name = "pairs"}, values.pairs);
  fields.only({.name = "only"}, 0);
  fields.ignored({.name = "ignored"});
  fields.inside({.name = "inside"}, [&](Fields& in) { in.flag({.name = "inner"}, values.inner); });
}

void read(std::string_view body, bool is_form) {
  const FieldLimits limits{.text_bytes = 64, .texts = 8, .ids = 16};
  try {
    const Json json = is_form ? parse_form(body) : parse_body(body, limits.depth);
    AllFields values;
    FieldReader reader(json, limits, is_form);
    describe(reader, values);
    reader.finish();
    if (values.text.size() > 64 || values.integer < -5 || values.integer > 5 ||
        !(values.number >= 0) || values.texts.values.size() > 4 || values.ids.size() > 16 ||
        values.pairs.size() > 8) {
      std::abort();
    }
  } catch (const HttpError& error) {
    if (error.status() < 400 || error.status() > 499) std::abort();
    // The message becomes part of a JSON reply.
    json_text(Json(error.what()));
  }
}

}  // namespace
}  // namespace heed::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  heed::serve::read(body, false);
  heed::serve::read(body, true);
  return 0;
}
