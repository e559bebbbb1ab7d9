// The fields of a Hugging Face config.json, loaded and saved by one function.
//
// An architecture is a function that names each key next to the field of ModelConfig that it
// stands for. Loading fills the fields; saving fills the JSON:
//
//   void bert_fields(HfFields& f, ModelConfig& c) {
//     f.value({"hidden_size"}, c.width, 768);             // 768: the class's default
//     f.always("norm_place", c.norm_place, NormPlace::post);
//     f.expect("position_embedding_type", "absolute");    // the only supported value
//   }
//
// Keys that no call has read are in unread(). Problems are collected, not thrown.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "model/config.h"
#include "model/hugging_face/json_values.h"

namespace heed {

class HfFields {
 public:
  using Keys = std::initializer_list<const char*>;  // the same field under several names
  using HasTensor = std::function<bool(const std::string& name)>;

  HfFields(Json json, HasTensor has_tensor)
      : reading_(true), json_(std::move(json)), has_tensor_(std::move(has_tensor)) {}
  HfFields() : json_(Json::object()) {}

  bool reading() const { return reading_; }
  // For fields without a key: whether the file has the weights decides.
  bool has_tensor(const std::string& name) const { return has_tensor_ && has_tensor_(name); }

  // key ↔ field. A key that is absent or null means `fallback`.
  template <class T>
  void value(Keys keys, T& field, std::type_identity_t<T> fallback) {
    nullable(keys, field, fallback, fallback, /*write_null=*/false);
  }
  // The same for a size, which must be positive: in ModelConfig, 0 means the default.
  template <class T>
  void size(Keys keys, T& field, std::type_identity_t<T> fallback) {
    value(keys, field, fallback);
    if (reading_ && field <= 0 && fallback > 0) {
      unsupported(*keys.begin(), field, "positive numbers");
    }
  }
  // The same where null has another meaning than an absent key.
  template <class T>
  void nullable(Keys keys, T& field, std::type_identity_t<T> absent, std::type_identity_t<T> null,
                bool write_null = true) {
    if (!reading_) {
      json_[*keys.begin()] = write_null && field == null ? Json() : to_json_value(field);
      return;
    }
    field = absent;
    for (const char* key : keys) {
      const Json* found = find(key);
      if (!found) continue;
      if (found->is_null()) {
        field = null;
        continue;
      }
      const std::string expected = from_json_value(*found, field);
      if (!expected.empty()) unsupported(key, *found, expected);
      return;
    }
  }
  // key ↔ one of two values of a field.
  template <class T>
  void choice(const char* key, T& field, std::type_identity_t<T> if_true,
              std::type_identity_t<T> if_false, bool fallback) {
    bool chosen = field == if_true;
    if (!reading_ && !chosen && !(field == if_false)) cannot(key);
    value({key}, chosen, fallback);
    if (reading_) field = chosen ? if_true : if_false;
  }
  // A field that is fixed in this architecture and has no key.
  template <class T>
  void always(const char* name, T& field, std::type_identity_t<T> fixed) {
    if (reading_) {
      field = fixed;
    } else if (!(field == fixed)) {
      cannot(name);
    }
  }
  // An id, or the first of a list of them; -1: null.
  void id(const char* key, int& field, int fallback);
  // One key for several fields. If they differ, the first is saved: dropout matters in training only.
  void dropout(const char* key, std::initializer_list<float*> fields, float fallback);
  // Any other value is unsupported. Not saved.
  void expect(const char* key, const Json& supported);

  // For other cases. Marks the key as read; null when it is absent.
  const Json* find(const std::string& key);
  void write(const std::string& key, Json value) { json_[key] = std::move(value); }
  // Loading: an unsupported value. Saving: a field that the architecture cannot express.
  void unsupported(const std::string& key, const Json& found, const std::string& supported);
  void cannot(const std::string& field) { problems_.push_back(field); }

  const Json& json() const { return json_; }
  std::vector<std::string> unread() const;
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  template <class T>
  static Json to_json_value(const T& field) {
    if constexpr (std::is_same_v<T, Activation>) {
      return activation_name(field);
    } else {
      return value_json(field);
    }
  }
  template <class T>
  static std::string from_json_value(const Json& json, T& field) {
    if constexpr (std::is_same_v<T, Activation>) {
      return read_activation(json, field);
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      // Sizes must fit into 31 bits, so that products of two sizes do not overflow.
      int32_t narrow = 0;
      std::string expected = read_value(json, narrow);
      if (expected.empty()) field = narrow;
      return expected;
    } else {
      return read_value(json, field);
    }
  }
  static std::string activation_name(Activation activation);
  static std::string read_activation(const Json& json, Activation& field);

  bool reading_ = false;
  Json json_;
  HasTensor has_tensor_;
  std::set<std::string> read_;
  std::vector<std::string> problems_;
};

}  // namespace heed
