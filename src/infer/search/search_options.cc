#include "heed/search.h"

#include <algorithm>
#include <random>

#include "heed/error.h"
#include "infer/search/option_ranges.h"

namespace heed {

std::string flag_of(const OptionInfo& info) {
  if (info.flag) return info.flag;
  std::string flag = std::string("--") + info.name;
  std::ranges::replace(flag, '_', '-');
  return flag;
}

void check(const SearchOptions& o) {
  std::vector<std::string> problems;
  const SearchOptions standard;
  describe(o, standard, [&](const OptionInfo& info, const auto& field, const auto& default_value) {
    if (o.sample || !info.samples) check_range(info, field, default_value, problems);
  });
  const auto need = [&](bool fine, const std::string& what) {
    if (!fine) problems.push_back(what);
  };
  need(o.sample || o.nbest <= o.beam, "nbest must be at most beam unless sampling, got " +
                                          std::to_string(o.nbest) + " with beam " +
                                          std::to_string(o.beam));
  need(!o.sample || o.beam == 1, "beam must be 1 when sampling, got " + std::to_string(o.beam));
  need(o.min_length >= 0 && o.max_length >= 0, "min_length and max_length must be at least 0");
  need(o.max_new_tokens == 0 || o.min_new_tokens <= o.max_new_tokens,
       "min_new_tokens must be at most max_new_tokens, got " + std::to_string(o.min_new_tokens) +
           " and " + std::to_string(o.max_new_tokens));
  need((o.required.empty() && o.required_ids.empty()) || o.beam > 1,
       "required phrases must have a beam of at least 2, got " + std::to_string(o.beam));
  need(std::ranges::none_of(o.stop, &std::string::empty), "stop strings must not be empty");
  throw_problems(problems);
}

bool SearchOverrides::has(const std::string& name) const {
  return std::ranges::find(names, name) != names.end();
}

namespace {

template <class Field>
void take(Field& field, const Field& given) {
  if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
    field.insert(field.end(), given.begin(), given.end());
  } else if constexpr (std::is_same_v<Field, LogitBias>) {
    for (const auto& [id, bias] : given) field[id] = bias;
  } else {
    field = given;
  }
}

}  // namespace

uint64_t random_seed() { return std::random_device{}(); }

namespace {

SearchOptions apply_kind(SearchOptions o, const SearchOverrides& given) {
  std::string sampling;  // the sampling options that are set
  describe(o, given.values, [&](const OptionInfo& info, auto& field, const auto& value) {
    if (!given.has(info.name)) return;
    take(field, value);
    if (info.samples) sampling += (sampling.empty() ? "" : ", ") + std::string(info.name);
  });
  const bool has_beam = given.has("beam");
  const bool is_argmax = sampling == "temperature" && o.temperature == 0;
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, what + " must not be set together",
                "give one kind of search");
  };
  if (given.greedy && has_beam && o.beam > 1) refuse("greedy and beam " + std::to_string(o.beam));
  if (given.greedy && !sampling.empty()) refuse("greedy and " + sampling);
  if (given.has("sample")) return o;
  if (has_beam && o.beam > 1 && !sampling.empty() && !is_argmax) {
    refuse("beam " + std::to_string(o.beam) + " and " + sampling);
  }
  if (given.greedy) {
    o.sample = false, o.beam = 1;
  } else if (has_beam) {
    o.sample = o.beam == 1 && !sampling.empty();
  } else if (!sampling.empty()) {
    o.sample = true, o.beam = 1;
  } else if (!o.sample) {
    o.beam = std::max(o.beam, o.nbest);
  }
  return o;
}

}  // namespace

SearchOptions apply(SearchOptions defaults, const SearchOverrides& overrides) {
  SearchOptions o = apply_kind(std::move(defaults), overrides);
  if (is_random(o) && !overrides.has("seed")) o.seed = random_seed();
  return o;
}

}  // namespace heed
