#include "infer/search/generation_settings.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "heed/error.h"

namespace heed {
namespace {

using Json = nlohmann::json;

// Each returns whether the JSON value has the type and range of `value`. Not get(): it converts any
// number to an int, which is undefined for 1e66.
bool fill(const Json& json, bool& value) {
  if (json.is_boolean()) value = json.get<bool>();
  return json.is_boolean();
}
bool fill(const Json& json, double& value) {
  if (json.is_number()) value = json.get<double>();
  return json.is_number();
}
template <std::integral Int>
bool fill(const Json& json, Int& value) {
  if (!json.is_number_integer()) return false;
  const bool fits = json.is_number_unsigned() ? std::in_range<Int>(json.get<uint64_t>())
                                              : std::in_range<Int>(json.get<int64_t>());
  if (fits) value = json.get<Int>();
  return fits;
}
bool fill(const Json& json, EarlyStopping& value) {  // true, false or "never"
  if (json.is_boolean()) {
    value = json.get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
  } else if (json == "never") {
    value = EarlyStopping::never;
  } else {
    return false;
  }
  return true;
}
template <class T>
bool fill(const Json& json, std::vector<T>& values) {
  if (!json.is_array()) return false;
  values.resize(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    if (!fill(json[i], values[i])) return false;
  }
  return true;
}

// The fields of one or two files, by their names there.
class Fields {
 public:
  Fields(const Json& config, const Json& generation, std::string where)
      : config_(config), generation_(generation), where_(std::move(where)) {}

  // Null counts as absent.
  const Json* find(const char* name) const {
    for (const Json* file : {&generation_, &config_}) {
      if (!file->is_object()) continue;
      const auto found = file->find(name);
      if (found != file->end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }

  template <class T>
  void read(const char* name, T& value) {
    const Json* found = find(name);
    if (!found) return;
    if (!fill(*found, value)) wrong(name, *found);
    names_.emplace_back(name);
  }

  // One id, or a list of them.
  void read_ids(const char* name, std::vector<int32_t>& ids) {
    const Json* found = find(name);
    if (found && !found->is_array()) {
      read(name, ids.emplace_back());
    } else {
      read(name, ids);
    }
  }

  std::vector<std::string> names() && {
    std::ranges::sort(names_);
    return std::move(names_);
  }

 private:
  [[noreturn]] void wrong(const char* name, const Json& found) const {
    throw Error(ErrorCode::corrupt_file, where_ + ": " + name +
                                             " in config.json or generation_config.json is " +
                                             found.dump().substr(0, 80) + ", which is invalid");
  }

  const Json& config_;
  const Json& generation_;
  std::string where_;
  std::vector<std::string> names_;
};

}  // namespace

GenerationSettings read_generation_settings(const Json& config, const Json& generation,
                                            const std::string& where) {
  Fields fields(config, generation, where);
  SearchOptions o;
  for_each_option(o, [&](const OptionInfo& info, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_arithmetic_v<Field> || std::is_same_v<Field, EarlyStopping>) {
      if (info.hugging_face) fields.read(info.hugging_face, field);
    }
  });
  fields.read("max_length", o.max_length);
  fields.read("min_length", o.min_length);
  fields.read_ids("eos_token_id", o.end_ids);
  fields.read("forced_bos_token_id", o.forced_first_id);
  std::vector<int32_t> last;
  fields.read_ids("forced_eos_token_id", last);
  if (!last.empty()) o.forced_last_id = last.front();
  fields.read("bad_words_ids", o.banned_ids);
  std::vector<int32_t> suppressed;
  fields.read("suppress_tokens", suppressed);
  for (const int32_t id : suppressed) o.banned_ids.push_back({id});
  return {std::move(o), std::move(fields).names()};
}

}  // namespace heed
