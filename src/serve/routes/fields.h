// What a request may say, each field listed once.
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
// A FieldReader fills the struct from a request's body and refuses what does not fit, naming the
// field: a wrong type, a value out of range, a field nobody knows. A FieldSchema makes of the same
// list what /openapi.json says.
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
  // Of numbers; of lists, how many.
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::vector<std::string> choices{};  // of texts; empty: any
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// One text, or a list of them.
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

// How much a request may contain, and ask for.
struct FieldLimits {
  int64_t text_bytes = 100'000;  // of each text
  int64_t texts = 256;           // of one list
  int64_t ids = 65'536;          // of one list
  int depth = 16;                // lists and objects inside each other
  int64_t new_tokens = 4096;     // of each answer
  int64_t answers = 16;          // to each text, and beams
};

class Fields {
 public:
  virtual ~Fields() = default;

  // The server's own, for fields whose range they are.
  virtual const FieldLimits& limits() const = 0;

  virtual void text(const Field& field, std::string& value) = 0;
  virtual void flag(const Field& field, bool& value) = 0;
  virtual void integer(const Field& field, int64_t& value) = 0;
  virtual void number(const Field& field, double& value) = 0;
  virtual void texts(const Field& field, Texts& value) = 0;
  virtual void prompts(const Field& field, Prompts& value) = 0;
  virtual void ids(const Field& field, std::vector<int32_t>& value) = 0;
  // An object whose values are texts, in its order.
  virtual void pairs(const Field& field, TextPairs& value) = 0;
  // An object of token ids and numbers, {"50256": -100}; the range is of the numbers.
  virtual void biases(const Field& field, LogitBias& value) = 0;
  // Anything: other servers know it, and it means nothing here.
  virtual void ignored(const Field& field) = 0;
  // Of other servers; only this value of it, which changes nothing, is taken here.
  virtual void only(const Field& field, const Json& value) = 0;
  // Fields inside a field.
  virtual void inside(const Field& field, const std::function<void(Fields& fields)>& describe) = 0;

  // The same with nothing as the default.
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

// A body of type application/json. Throws HttpError 400: no JSON, no object, not UTF-8, or deeper
// than `depth`.
Json parse_body(std::string_view body, int depth);
// A body of type application/x-www-form-urlencoded as an object of texts; what comes twice becomes
// a list. Throws HttpError 400.
Json parse_form(std::string_view body);

class FieldReader : public Fields {
 public:
  // `is_form`: all values are texts, and are read as what the field wants.
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

  // To be called when all fields were described. Throws for those that are left.
  void finish() const;

 protected:
  bool is_given(const Field& field) const override;

 private:
  // Null and nothing are the same. Throws when a required one is missing.
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
  std::string prefix_;  // "stream_options." inside
  std::vector<std::string> known_;
};

// A JSON schema of the fields, as OpenAPI wants it.
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
