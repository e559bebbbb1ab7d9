#include "bindings/c_api_expected.h"

#include <algorithm>

#include "heed/c_api.h"
#include "heed/engine.h"
#include "heed/tasks.h"
#include "heed/translate.h"

namespace heed {
namespace {

TaskInput input_of(const char* text, const char* second) {
  TaskInput input{.text = text};
  if (second) input.second = second;
  return input;
}

// How many members an aggregate has: as many as it can be initialized with.
struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): never defined
};
template <class T, class... Values>
constexpr size_t count_members() {
  if constexpr (requires { T{Values{}..., AnyValue{}}; }) {
    return count_members<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

template <class... Options>
size_t count_options() {
  size_t count = 0;
  const auto add = [&](auto options) {
    for_each_option(options, [&](const OptionInfo&, auto&) { ++count; });
  };
  (add(Options{}), ...);
  return count;
}

template <class Numbers, class Number>
size_t copy(const Numbers& from, Number* to) {
  std::copy(from.begin(), from.end(), to);
  return from.size();
}

}  // namespace
}  // namespace heed

using namespace heed;  // NOLINT(google-build-using-namespace): C's functions are outside of it

extern "C" {

int structs_have_only_options(void) {
  return count_members<heed_options>() == count_options<SearchOptions, TranslateOptions>() &&
         count_members<heed_open_options>() == count_options<EngineOptions>() &&
         count_members<heed_embed_options>() == count_options<EmbedOptions>() &&
         count_members<heed_score_options>() == count_options<ScoreOptions>();
}

const char* expected_translation(const char* folder, const char* text, int beam, size_t rank,
                                 double* score) {
  static std::string found;
  const Model model = Model::load(folder);
  TranslateOptions options;
  if (beam > 0) {
    options.search = model.search_options();
    options.search->beam = options.search->nbest = beam;
  }
  const Translation translation = Translator(model).translate(text, options);
  *score = translation.scores.at(rank);
  return (found = translation.alternatives.at(rank)).c_str();
}

const char* expected_generation(const char* folder, const char* prompt, uint64_t seed,
                                int64_t max_new_tokens, double* score) {
  static std::string found;
  const Model model = Model::load(folder);
  SearchOptions search = model.search_options();
  search.max_new_tokens = max_new_tokens;
  if (seed > 0)
    search.sample = true, search.temperature = 1.5, search.top_k = 20, search.seed = seed;
  const Answer answer = Generator(model).generate(prompt, search);
  *score = answer.score;
  return (found = answer.text).c_str();
}

size_t expected_embedding(const char* folder, const char* text, int normalize, float* numbers) {
  EmbedOptions options = embed_options(folder);
  options.normalize = normalize != 0;
  return copy(Embedder(Model::load(folder)).embed({{.text = text}}, options)[0].vector, numbers);
}

size_t expected_logits(const char* folder, const char* text, const char* second, float* numbers) {
  const Classifier classifier(Model::load(folder));
  return copy(classifier.classify({input_of(text, second)})[0].logits, numbers);
}

double expected_log_probability(const char* folder, const char* text, const char* target) {
  return Scorer(Model::load(folder)).score({input_of(text, target)})[0].log_probability;
}

size_t expected_ids(const char* folder, const char* text, int32_t* ids) {
  return copy(load_tokenizer(folder)->encode(text).ids, ids);
}

}  // extern "C"
