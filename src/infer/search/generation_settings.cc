#include "infer/search/generation_settings.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text/suggest.h"
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
bool fill(const Json& json, std::string& value) {
  if (json.is_string()) value = json.get<std::string>();
  return json.is_string();
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

// Keys of other tools' generation_config.json that change nothing here: what is returned, how it is
// computed, speculative decoding, ids that config.json has too.
constexpr std::string_view kWithoutEffect[] = {
    "_commit_hash",
    "_from_model_config",
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_lookbehind",
    "assistant_token_id",
    "bos_token_id",
    "cache_config",
    "cache_implementation",
    "chat_format",
    "compile_config",
    "decoder_start_token_id",
    "disable_compile",
    "generation_kwargs",
    "is_assistant",
    "low_memory",
    "max_context_size",
    "max_matching_ngram_size",
    "max_time",
    "max_window_size",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_logits",
    "output_scores",
    "pad_token_id",
    "prefill_chunk_size",
    "prompt_lookup_num_tokens",
    "remove_invalid_values",
    "renormalize_logits",
    "return_dict_in_generate",
    "return_legacy_cache",
    "target_lookbehind",
    "token_healing",
    "transformers_version",
    "trust_remote_code",
    "use_cache",
    "user_token_id",
};

// Searches that Heed does not have, with the value that switches each off; null does too.
struct Unsupported {
  const char* name;
  Json off;
};
const std::vector<Unsupported>& unsupported_searches() {
  static const std::vector<Unsupported> list{
      {"begin_suppress_tokens", nullptr},
      {"constraints", nullptr},
      {"diversity_penalty", 0},
      {"dola_layers", nullptr},
      {"encoder_no_repeat_ngram_size", 0},
      {"encoder_repetition_penalty", 1},
      {"epsilon_cutoff", 0},
      {"eta_cutoff", 0},
      {"exponential_decay_length_penalty", nullptr},
      {"force_words_ids", nullptr},
      {"forced_decoder_ids", nullptr},
      {"guidance_scale", 1},
      {"num_beam_groups", 1},
      {"penalty_alpha", 0},
      {"sequence_bias", nullptr},
      {"top_h", nullptr},
      {"typical_p", 1},
      {"watermarking_config", nullptr},
  };
  return list;
}

// A misspelt key would change the search without a word.
void check_keys(const Json& generation, const std::vector<std::string>& known,
                const std::string& where) {
  if (!generation.is_object()) return;
  const std::string file = where + "/generation_config.json: ";
  for (const auto& [key, value] : generation.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    if (std::ranges::find(kWithoutEffect, key) != std::end(kWithoutEffect)) continue;
    const auto& others = unsupported_searches();
    const auto other = std::ranges::find(others, key, &Unsupported::name);
    if (other == others.end()) {
      const auto meant = nearest(key, known);
      throw Error(ErrorCode::unsupported, file + "unknown key " + key,
                  meant ? "did you mean " + *meant + "?"
                        : "remove the key; docs/search-options.md lists those that Heed reads");
    }
    if (value.is_null() || value == other->off) continue;
    throw Error(ErrorCode::unsupported,
                file + key + " must be " + other->off.dump() + ", got " +
                    value.dump().substr(0, 80) + ": this search is not supported",
                "remove the key to use the model with the searches that Heed has");
  }
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
    known_.emplace_back(name);
    const Json* found = find(name);
    if (!found) return;
    if (!fill(*found, value)) wrong(name, *found);
    names_.emplace_back(name);
  }

  // One value, or a list of them.
  template <class T>
  void read_list(const char* name, std::vector<T>& values) {
    const Json* found = find(name);
    if (found && !found->is_array()) {
      read(name, values.emplace_back());
    } else {
      read(name, values);
    }
  }

  // Every name that was asked for.
  const std::vector<std::string>& known() const { return known_; }

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
  std::vector<std::string> names_, known_;
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
  fields.read_list("eos_token_id", o.end_ids);
  fields.read("forced_bos_token_id", o.forced_first_id);
  std::vector<int32_t> last;
  fields.read_list("forced_eos_token_id", last);
  if (!last.empty()) o.forced_last_id = last.front();
  fields.read_list("stop_strings", o.stop);
  fields.read("bad_words_ids", o.banned_ids);
  std::vector<int32_t> suppressed;
  fields.read("suppress_tokens", suppressed);
  for (const int32_t id : suppressed) o.banned_ids.push_back({id});
  check_keys(generation, fields.known(), where);
  return {std::move(o), std::move(fields).names()};
}

}  // namespace heed
