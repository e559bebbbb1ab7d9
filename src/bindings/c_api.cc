// include/heed/c_api.h: each function converts its arguments, calls the library, and copies the
// result into one block of memory. No exception leaves these functions.
#include <atomic>
#include <new>
#include <utility>

#include "bindings/c_options.h"
#include "bindings/c_results.h"
#include "bindings/loaded_model.h"
#include "bindings/piece_stream.h"
#include "heed/c_api.h"
#include "heed/model_files.h"
#include "heed/train.h"
#include "heed/version.h"

struct heed_model : heed::bindings::LoadedModel {
  using LoadedModel::LoadedModel;
};

namespace heed::bindings {
namespace {

// ---- Errors ------------------------------------------------------------------------------------

heed_status status_of(ErrorCode code) {
  return static_cast<heed_status>(static_cast<int>(code) + 1);
}
static_assert(static_cast<int>(ErrorCode::invalid_argument) + 1 == HEED_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::internal) + 1 == HEED_INTERNAL);

struct LastError {
  std::string message, hint;
  heed_error error{HEED_OK, "", ""};
};

LastError& last_error() {
  thread_local LastError last;
  return last;
}

heed_status failed(heed_status status, const char* message, const char* hint) noexcept {
  LastError& last = last_error();
  try {
    last.message = message, last.hint = hint;
    last.error = {status, last.message.c_str(), last.hint.c_str()};
  } catch (...) {  // no memory for a copy
    last.error = {status, "out of memory", ""};
  }
  return status;
}

template <class Body>
heed_status guarded(Body body) noexcept {
  try {
    body();
    return HEED_OK;
  } catch (const Error& error) {
    return failed(status_of(error.code()), error.what(), error.hint().c_str());
  } catch (const std::bad_alloc&) {
    return failed(HEED_OUT_OF_MEMORY, "out of memory", "pass fewer inputs at a time");
  } catch (const std::exception& error) {
    return failed(HEED_INTERNAL, error.what(), "");
  } catch (...) {
    return failed(HEED_INTERNAL, "an unknown exception", "");
  }
}

template <class T>
T& required(T* pointer, const char* name) {
  if (pointer) return *pointer;
  throw Error(ErrorCode::invalid_argument, std::string(name) + " must not be NULL",
              "heed/c_api.h describes it");
}

// ---- Inputs ------------------------------------------------------------------------------------

std::vector<TaskInput> to_inputs(const char* const* texts, const char* const* seconds,
                                 size_t count) {
  std::vector<TaskInput> inputs(count);
  std::vector<std::string> first = to_texts(texts, count, "texts"), second;
  if (seconds) second = to_texts(seconds, count, "seconds");
  for (size_t i = 0; i < count; ++i) {
    inputs[i].text = std::move(first[i]);
    if (seconds) inputs[i].second = std::move(second[i]);
  }
  return inputs;
}

// C's options over the defaults, of which only the lists and what C cannot set are kept.
SearchOptions search_of(SearchOptions defaults, const heed_options* options) {
  if (options) {
    describe(defaults, *options, Read());
  } else {
    defaults.seed = random_seed();
  }
  return defaults;
}

Request request_of(const heed_model& model, std::string text, const heed_options* options) {
  Request request{.text = std::move(text),
                  .search = search_of(model.model().search_options(), options)};
  if (options) describe(request, *options, Read());
  return request;
}

void init_options(SearchOptions search, heed_options& options) {
  TranslateOptions rest;
  search.seed = random_seed();
  describe(search, options, Write());
  describe(rest, options, Write());
}

// ---- Results -----------------------------------------------------------------------------------

heed_answer item_of(Given<heed_answers>& given, const Translation& translation) {
  auto* texts = given.array<heed_text>(translation.alternatives.size());
  for (size_t i = 0; i < translation.alternatives.size(); ++i) {
    const std::string& text = translation.alternatives[i];
    texts[i] = {.text = given.text(text),
                .bytes = text.size(),
                .score = translation.scores[i],
                .finish = HEED_FINISH_END,
                .new_tokens = 0};
  }
  return {texts, translation.alternatives.size(), translation.truncated};
}

heed_answer item_of(Given<heed_answers>& given, const Result& result) {
  auto* texts = given.array<heed_text>(result.answers.size());
  for (size_t i = 0; i < result.answers.size(); ++i) {
    const Answer& answer = result.answers[i];
    texts[i] = {.text = given.text(answer.text),
                .bytes = answer.text.size(),
                .score = answer.score,
                .finish = static_cast<heed_finish>(answer.finish),
                .new_tokens = answer.new_tokens};
  }
  return {texts, result.answers.size(), result.truncated};
}

heed_label item_of(Given<heed_labels>& given, const Classified& classified) {
  return {.label = classified.label,
          .name = given.text(classified.name),
          .probabilities = given.copy(classified.probabilities),
          .logits = given.copy(classified.logits),
          .labels = classified.logits.size(),
          .truncated = classified.truncated};
}

heed_text_score item_of(Given<heed_scores>& given, const Scored& scored) {
  return {.log_probability = scored.log_probability,
          .perplexity = scored.perplexity(),
          .ids = given.copy(scored.ids),
          .token_scores = given.copy(scored.token_scores),
          .tokens = scored.ids.size(),
          .truncated = scored.truncated};
}

// A struct of `items` and their `count`.
template <class List, class Results>
List* give_list(const Results& results) {
  using Item = std::remove_cvref_t<decltype(*List::items)>;
  Given<List> given;
  Item* items = given.template array<Item>(results.size());
  given->items = items, given->count = results.size();
  for (const auto& result : results) *items++ = item_of(given, result);
  return given.release();
}

heed_train_progress progress_of(const TrainProgress& p) {
  return {.step = p.step,
          .steps = p.steps,
          .loss = p.loss,
          .learning_rate = p.learning_rate,
          .gradient_norm = p.gradient_norm,
          .tokens_per_second = p.tokens_per_second,
          .remaining_seconds = p.remaining_seconds,
          .epoch = p.epoch};
}

TrainOptions train_options(const char* recipe, const heed_train_options& o) {
  TrainOptions options{.recipe = recipe,
                       .set = to_texts(o.set.items, o.set.count, "set"),
                       .out = o.out ? o.out : "",
                       .memory_bytes = o.memory_bytes,
                       .threads = o.threads,
                       .validator = decoding_validator()};
  if (o.seed) options.seed = *o.seed;
  if (o.note) {
    options.note = [note = o.note, user = o.user](std::string_view line) {
      note(std::string(line).c_str(), user);
    };
  }
  return options;
}

}  // namespace
}  // namespace heed::bindings

// The C functions are outside of the namespaces.
using namespace heed;            // NOLINT(google-build-using-namespace)
using namespace heed::bindings;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* heed_version(void) { return version(); }

const char* heed_status_name(heed_status status) {
  const int code = int_of(status) - 1;
  if (code == HEED_OK - 1) return "ok";
  if (code < 0 || code >= HEED_INTERNAL) return "unknown";
  return name(static_cast<ErrorCode>(code));
}

const heed_error* heed_last_error(void) { return &last_error().error; }

void heed_free(const void* result) { give_back(result); }

void heed_open_options_init(heed_open_options* options) {
  EngineOptions defaults;
  if (options) describe(defaults, *options, Write());
}

heed_status heed_open(const char* folder, const heed_open_options* options, heed_model** model) {
  return guarded([&] {
    required(model, "model") = nullptr;
    EngineOptions engine;
    if (options) describe(engine, *options, Read());
    *model = new heed_model(&required(folder, "folder"), engine);
  });
}

void heed_close(heed_model* model) { delete model; }

heed_status heed_get_info(heed_model* model, heed_info** info) {
  return guarded([&] {
    required(info, "info") = nullptr;
    const LoadedModel& loaded = required(model, "model");
    const ModelInfo about = model_info(loaded.model().network());
    Given<heed_info> given;
    *given.operator->() = {.folder = given.text(loaded.folder()),
                           .model_type = given.text(about.model_type),
                           .family = given.text(loaded.model().family()),
                           .head = given.text(loaded.model().head()),
                           .weight_type = given.text(about.weight_type),
                           .parameters = about.parameters,
                           .weight_bytes = about.weight_bytes,
                           .vocabulary = loaded.model().vocabulary(),
                           .max_positions = loaded.model().max_positions(),
                           .can_generate = loaded.model().can_generate()};
    *info = given.release();
  });
}

heed_status heed_options_init(heed_model* model, heed_options* options) {
  return guarded([&] {
    init_options(required(model, "model").model().search_options(), required(options, "options"));
  });
}

heed_status heed_translate_options_init(heed_model* model, heed_options* options) {
  return guarded([&] {
    init_options(Translator::default_search(required(model, "model").model()),
                 required(options, "options"));
  });
}

heed_status heed_translate(heed_model* model, const char* const* texts, size_t count,
                           const heed_options* options, heed_answers** answers) {
  return guarded([&] {
    required(answers, "answers") = nullptr;
    TranslateOptions how{
        .search = search_of(Translator::default_search(required(model, "model").model()), options)};
    if (options) describe(how, *options, Read());
    std::vector<Translation> translations;
    model->translator().translate(
        to_texts(texts, count, "texts"), how,
        [&](size_t, Translation&& translation) { translations.push_back(std::move(translation)); });
    *answers = give_list<heed_answers>(translations);
  });
}

heed_status heed_generate(heed_model* model, const char* const* prompts, size_t count,
                          const heed_options* options, heed_answers** answers) {
  return guarded([&] {
    required(answers, "answers") = nullptr;
    required(model, "model");
    std::vector<Request> requests;
    for (std::string& prompt : to_texts(prompts, count, "prompts")) {
      requests.push_back(request_of(*model, std::move(prompt), options));
      requests.back().stream = requests.size() - 1;
    }
    std::vector<Result> results;
    model->engine()->run(std::move(requests),
                         [&](size_t, Result&& result) { results.push_back(std::move(result)); });
    *answers = give_list<heed_answers>(results);
  });
}

heed_status heed_generate_stream(heed_model* model, const char* prompt, const heed_options* options,
                                 heed_on_text on_text, void* user, heed_answers** answers) {
  return guarded([&] {
    if (answers) *answers = nullptr;
    required(model, "model"), required(prompt, "prompt"), required(on_text, "on_text");
    PieceStream stream(model->engine(), request_of(*model, prompt, options));
    while (const std::optional<std::string> piece = stream.next()) {
      if (on_text(piece->c_str(), piece->size(), user) != 0) {
        throw Error(ErrorCode::cancelled, "on_text ended the generation");
      }
    }
    if (answers) *answers = give_list<heed_answers>(std::vector{stream.result()});
  });
}

heed_status heed_classify(heed_model* model, const char* const* texts, const char* const* seconds,
                          size_t count, heed_labels** labels) {
  return guarded([&] {
    required(labels, "labels") = nullptr;
    *labels = give_list<heed_labels>(
        required(model, "model").classifier()->classify(to_inputs(texts, seconds, count)));
  });
}

heed_status heed_embed_options_init(heed_model* model, heed_embed_options* options) {
  return guarded([&] {
    EmbedOptions defaults = embed_options(required(model, "model").folder());
    describe(defaults, required(options, "options"), Write());
  });
}

heed_status heed_embed(heed_model* model, const char* const* texts, size_t count,
                       const heed_embed_options* options, heed_vectors** vectors) {
  return guarded([&] {
    required(vectors, "vectors") = nullptr;
    EmbedOptions how = embed_options(required(model, "model").folder());
    if (options) describe(how, *options, Read());
    const auto embedder = model->embedder();
    const auto results = embedder->embed(to_inputs(texts, nullptr, count), how);
    const auto width = static_cast<size_t>(embedder->width());
    Given<heed_vectors> given;
    auto* values = given.array<float>(count * width);
    for (size_t i = 0; i < count; ++i) {
      std::copy(results[i].vector.begin(), results[i].vector.end(), values + i * width);
    }
    given->values = values, given->count = count, given->width = width;
    *vectors = given.release();
  });
}

void heed_score_options_init(heed_score_options* options) {
  ScoreOptions defaults;
  if (options) describe(defaults, *options, Write());
}

heed_status heed_score(heed_model* model, const char* const* texts, const char* const* targets,
                       size_t count, const heed_score_options* options, heed_scores** scores) {
  return guarded([&] {
    required(scores, "scores") = nullptr;
    ScoreOptions how;
    if (options) describe(how, *options, Read());
    *scores = give_list<heed_scores>(
        required(model, "model").scorer()->score(to_inputs(texts, targets, count), how));
  });
}

heed_status heed_tokenize(heed_model* model, const char* text, int special_tokens,
                          heed_tokens** tokens) {
  return guarded([&] {
    required(tokens, "tokens") = nullptr;
    const Encoding encoding =
        required(model, "model")
            .model()
            .tokenizer()
            .encode(&required(text, "text"), {.special_tokens = special_tokens != 0});
    Given<heed_tokens> given;
    auto* begins = given.array<int64_t>(encoding.ids.size());
    auto* ends = given.array<int64_t>(encoding.ids.size());
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      begins[i] = encoding.offsets[i].begin, ends[i] = encoding.offsets[i].end;
    }
    given->ids = given.copy(encoding.ids), given->count = encoding.ids.size();
    given->begins = begins, given->ends = ends;
    *tokens = given.release();
  });
}

heed_status heed_detokenize(heed_model* model, const int32_t* ids, size_t count,
                            int skip_special_tokens, heed_text** text) {
  return guarded([&] {
    required(text, "text") = nullptr;
    required(model, "model");
    if (count > 0) required(ids, "ids");
    const std::string decoded = model->model().tokenizer().decode(
        {ids, count}, {.skip_special_tokens = skip_special_tokens != 0});
    Given<heed_text> given;
    given->text = given.text(decoded), given->bytes = decoded.size();
    *text = given.release();
  });
}

void heed_train_options_init(heed_train_options* options) {
  if (!options) return;
  const TrainOptions defaults;
  *options = {};
  options->memory_bytes = defaults.memory_bytes, options->threads = defaults.threads;
}

heed_status heed_train(const char* recipe, const heed_train_options* options,
                       heed_trained** trained) {
  return guarded([&] {
    required(trained, "trained") = nullptr;
    heed_train_options with_defaults;
    heed_train_options_init(&with_defaults);
    const heed_train_options& o = options ? *options : with_defaults;
    TrainOptions how = train_options(&required(recipe, "recipe"), o);
    std::atomic<bool> stop = false;
    how.stop = &stop;
    if (o.progress) {
      how.progress = [&](const TrainProgress& now) {
        const heed_train_progress progress = progress_of(now);
        if (o.progress(&progress, o.user) != 0) stop = true;
      };
    }
    const TrainResult result = train(how);
    Given<heed_trained> given;
    auto* metrics = given.array<heed_metric>(result.validation.size());
    given->validation = metrics, given->metrics = result.validation.size();
    for (const auto& [name, value] : result.validation) *metrics++ = {given.text(name), value};
    given->folder = given.text(result.folder), given->steps = result.steps;
    given->finished = result.finished, given->seconds = result.seconds;
    given->tokens = result.tokens, given->loss = result.loss;
    given->parameters = result.parameters;
    *trained = given.release();
  });
}

}  // extern "C"
