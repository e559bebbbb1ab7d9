#include "infer/search/generation_settings.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

#include "heed/error.h"

namespace heed {
namespace {

using Json = nlohmann::json;

// Each fills the value, or says that it cannot. (The library's get() makes an int of any number,
// and for 1e66 that is undefined.)
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

  void read_early_stopping(EarlyStopping& value) {
    const char* name = "early_stopping";
    const Json* found = find(name);
    if (!found) return;
    if (found->is_boolean()) {
      value = found->get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
    } else if (*found == "never") {
      value = EarlyStopping::never;
    } else {
      wrong(name, *found);
    }
    names_.emplace_back(name);
  }

  std::vector<std::string> names() && {
    std::ranges::sort(names_);
    return std::move(names_);
  }

 private:
  [[noreturn]] void wrong(const char* name, const Json& found) const {
    throw Error(ErrorCode::corrupt_file, where_ + ": " + name +
                                             " in config.json or generation_config.json is " +
                                             found.dump().substr(0, 80) + ", which it cannot be");
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
  fields.read("num_beams", o.beam);
  fields.read("length_penalty", o.length_penalty);
  fields.read_early_stopping(o.early_stopping);
  fields.read("max_new_tokens", o.max_new_tokens);
  fields.read("min_new_tokens", o.min_new_tokens);
  fields.read("max_length", o.max_length);
  fields.read("min_length", o.min_length);
  fields.read_ids("eos_token_id", o.end_ids);
  fields.read("forced_bos_token_id", o.forced_first_id);
  std::vector<int32_t> last;
  fields.read_ids("forced_eos_token_id", last);
  if (!last.empty()) o.forced_last_id = last.front();
  fields.read("no_repeat_ngram_size", o.no_repeat_ngram);
  fields.read("repetition_penalty", o.repetition_penalty);
  fields.read("bad_words_ids", o.banned_ids);
  std::vector<int32_t> suppressed;
  fields.read("suppress_tokens", suppressed);
  for (const int32_t id : suppressed) o.banned_ids.push_back({id});
  fields.read("do_sample", o.sample);
  fields.read("temperature", o.temperature);
  fields.read("top_k", o.top_k);
  fields.read("top_p", o.top_p);
  fields.read("min_p", o.min_p);
  return {std::move(o), std::move(fields).names()};
}

}  // namespace heed
