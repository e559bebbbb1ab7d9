// The fields of a request body, described once for parsing and for /openapi.json.
//
//   struct TranslateCall { Texts q; std::string source; int64_t alternatives = 0; };
//
//   void describe(Fields& fields, TranslateCall& call) {
//     fields.texts({.name = "q", .about = "text or texts to translate", .required = true}, call.q);
//     fields.text({.name = "source", .about = "language of q"}, call.source);
//     fields.integer({.name = "alternatives", .about = "…", .min = 0, .max = 16},
//     call.alternatives);
//   }
//
// A FieldReader fills the struct from a request body and rejects wrong types, values out of range
// and unknown fields, naming the field. A FieldSchema builds the schema for /openapi.json from the
// same description.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/search.h"
#include "serve/routes/json_schema.h"

namespace heed::serve {

struct Field {
  const char* name;
  const char* about = "";
  bool required = false;
  // For numbers the range, for lists the number of items.
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::vector<std::string> choices{};  // for texts; empty: any
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// One text or a list of texts.
struct Texts {
  std::vector<std::string> values{};
  bool is_list = false;
};

// A text or raw ids, or a list of either.
struct Prompt {
  std::string text{};
  std::optional<std::vector<int32_t>> ids{};
};
struct Prompts {
  std::vector<Prompt> values{};
  bool is_list = false;
};

// Limits of request fields.
struct FieldLimits {
  int64_t text_bytes = 100'000;  // per text
  int64_t texts = 256;           // per list
  int64_t ids = 65'536;          // per list
  int depth = 16;                // nesting of lists and objects
  int64_t new_tokens = 4096;     // per answer
  int64_t answers = 16;          // per text; also the largest beam
};

class Fields {
 public:
  virtual ~Fields() = default;

  // The limits of the server, for fields whose range they define.
  virtual const FieldLimits& limits() const = 0;

  virtual void text(const Field& field, std::string& value) = 0;
  virtual void flag(const Field& field, bool& value) = 0;
  virtual void integer(const Field& field, int64_t& value) = 0;
  virtual void number(const Field& field, double& value) = 0;
  virtual void texts(const Field& field, Texts& value) = 0;
  virtual void prompts(const Field& field, Prompts& value) = 0;
  virtual void ids(const Field& field, std::vector<int32_t>& value) = 0;
  // An object of texts, in order.
  virtual void pairs(const Field& field, TextPairs& value) = 0;
  // An object of token ids and numbers, {"50256": -100}; the range is of the numbers.
  virtual void biases(const Field& field, LogitBias& value) = 0;
  // Accepted for compatibility with other servers and ignored.
  virtual void ignored(const Field& field) = 0;
  // Compatibility: only this value, which has no effect, is accepted.
  virtual void only(const Field& field, const Json& value) = 0;
  // A nested object.
  virtual void inside(const Field& field, const std::function<void(Fields& fields)>& describe) = 0;

  // Optional fields: empty if not given.
  void text(const Field& field, std::optional<std::string>& value) {
    maybe(field, value, &Fields::text);
  }
  void flag(const Field& field, std::optional<bool>& value) { maybe(field, value, &Fields::flag); }
  void integer(const Field& field, std::optional<int64_t>& value) {
    maybe(field, value, &Fields::integer);
  }
  void number(const Field& field, std::optional<double>& value) {
    maybe(field, value, &Fields::number);
  }

 protected:
  virtual bool is_given(const Field& field) const = 0;

 private:
  template <class T>
  void maybe(const Field& field, std::optional<T>& value, void (Fields::*visit)(const Field&, T&)) {
    T given{};
    (this->*visit)(field, given);
    if (is_given(field)) value = std::move(given);
  }
};

// Parses application/json. Throws HttpError 400: invalid JSON, not an object, not UTF-8, or deeper
// than `depth`.
Json parse_body(std::string_view body, int depth);
// Parses application/x-www-form-urlencoded into an object of texts; repeated keys become a list.
// Throws HttpError 400.
Json parse_form(std::string_view body);

class FieldReader : public Fields {
 public:
  // `is_form`: all values are texts and are converted to the type of the field.
  FieldReader(const Json& object, const FieldLimits& limits, bool is_form = false,
              std::string prefix = {});

  const FieldLimits& limits() const override { return limits_; }
  using Fields::flag, Fields::integer, Fields::number, Fields::text;
  void text(const Field& field, std::string& value) override;
  void flag(const Field& field, bool& value) override;
  void integer(const Field& field, int64_t& value) override;
  void number(const Field& field, double& value) override;
  void texts(const Field& field, Texts& value) override;
  void prompts(const Field& field, Prompts& value) override;
  void ids(const Field& field, std::vector<int32_t>& value) override;
  void pairs(const Field& field, TextPairs& value) override;
  void biases(const Field& field, LogitBias& value) override;
  void ignored(const Field& field) override;
  void only(const Field& field, const Json& value) override;
  void inside(const Field& field, const std::function<void(Fields& fields)>& describe) override;

  // Call after all fields were described. Throws for unknown fields.
  void finish() const;

 protected:
  bool is_given(const Field& field) const override;

 private:
  // Null counts as not given. Throws if a required field is missing.
  const Json* find(const Field& field);
  std::string one_text(const Field& field, const Json& value) const;
  std::vector<int32_t> one_ids(const Field& field, const Json& value) const;
  void check_range(const Field& field, double value) const;
  void check_count(const Field& field, size_t count, int64_t most) const;
  [[noreturn]] void refuse(const Field& field, const std::string& expected,
                           const std::string& found) const;

  const Json& object_;
  const FieldLimits& limits_;
  bool is_form_;
  std::string prefix_;  // "stream_options." in a nested object
  std::vector<std::string> known_;
};

// Builds the JSON schema of the fields for OpenAPI.
class FieldSchema : public Fields {
 public:
  explicit FieldSchema(const FieldLimits& limits = {}) : limits_(limits) {}

  const FieldLimits& limits() const override { return limits_; }
  using Fields::flag, Fields::integer, Fields::number, Fields::text;
  void text(const Field& field, std::string& value) override;
  void flag(const Field& field, bool& value) override;
  void integer(const Field& field, int64_t& value) override;
  void number(const Field& field, double& value) override;
  void texts(const Field& field, Texts& value) override;
  void prompts(const Field& field, Prompts& value) override;
  void ids(const Field& field, std::vector<int32_t>& value) override;
  void pairs(const Field& field, TextPairs& value) override;
  void biases(const Field& field, LogitBias& value) override;
  void ignored(const Field& field) override;
  void only(const Field& field, const Json& value) override;
  void inside(const Field& field, const std::function<void(Fields& fields)>& describe) override;

  Json schema() const;

 protected:
  bool is_given(const Field&) const override { return false; }

 private:
  void add(const Field& field, Json schema);

  const FieldLimits limits_;
  Json properties_ = Json::object(), required_ = Json::array();
};

}  // namespace heed::serve
