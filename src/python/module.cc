// The Python package heed. heed/__init__.pyi.in documents it: signatures and docstrings are made from
// it, so functions that take options are defined with **kwargs here.
#include <pybind11/numpy.h>
#include <pybind11/stl/filesystem.h>

#include <atomic>
#include <cstring>
#include <filesystem>

#include "bindings/loaded_model.h"
#include "bindings/piece_stream.h"
#include "heed/model_files.h"
#include "heed/train.h"
#include "heed/version.h"
#include "python/calls.h"
#include "python/classes.h"
#include "python/values.h"

namespace heed::python {
namespace {

using bindings::LoadedModel;
using bindings::PieceStream;
using ModelPtr = std::shared_ptr<LoadedModel>;

// ---- Options -----------------------------------------------------------------------------------

SearchOptions read_search(const SearchOptions& defaults, Keywords& keywords) {
  SearchOverrides given;
  keywords.read(given);
  return apply(defaults, given);
}

Request read_request(const LoadedModel& model, Keywords& keywords) {
  Request request{.search = read_search(model.model().search_options(), keywords)};
  keywords.read(request);
  return request;
}

// ---- What a model does -------------------------------------------------------------------------

ModelPtr load(const std::filesystem::path& folder, const py::kwargs& given) {
  EngineOptions options;
  Keywords keywords(given);
  keywords.read(options);
  keywords.check("load");
  return without_lock(
      [&](Interruption&) { return std::make_shared<LoadedModel>(folder.string(), options); });
}

py::object translate(LoadedModel& model, py::handle texts, const py::kwargs& given) {
  const Texts inputs(texts, "texts");
  Keywords keywords(given);
  TranslateOptions options{.search =
                               read_search(Translator::default_search(model.model()), keywords)};
  keywords.read(options);
  keywords.check("translate");
  std::vector<Translation> results;
  without_lock([&](Interruption& interruption) {
    options.is_cancelled = interruption.is_cancelled();
    model.translator().translate(inputs.values, options, [&](size_t, Translation&& translation) {
      results.push_back(std::move(translation));
    });
  });
  return one_or_list(std::move(results), inputs.is_list);
}

py::object generate(LoadedModel& model, py::handle prompts, const py::kwargs& given) {
  const Texts inputs(prompts, "prompts");
  Keywords keywords(given);
  const Request request = read_request(model, keywords);
  keywords.check("generate");
  std::vector<Request> requests(inputs.values.size(), request);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].text = inputs.values[i], requests[i].stream = i;
  }
  std::vector<Result> results;
  without_lock([&](Interruption& interruption) {
    model.engine()->run(
        std::move(requests), [&](size_t, Result&& result) { results.push_back(std::move(result)); },
        interruption.is_cancelled());
  });
  return one_or_list(std::move(results), inputs.is_list);
}

std::unique_ptr<PieceStream> stream(LoadedModel& model, const std::string& prompt,
                                    const py::kwargs& given) {
  Keywords keywords(given);
  Request request = read_request(model, keywords);
  keywords.check("stream");
  request.text = prompt;
  return without_lock([&](Interruption&) {
    return std::make_unique<PieceStream>(model.engine(), std::move(request));
  });
}

py::str next_piece(PieceStream& stream) {
  const std::optional<std::string> piece = without_lock(
      [&](Interruption& interruption) { return stream.next(interruption.is_cancelled()); });
  if (!piece) throw py::stop_iteration();
  return to_str(*piece);
}

py::object classify(LoadedModel& model, py::handle texts) {
  const Inputs inputs(texts);
  return one_or_list(without_lock([&](Interruption& interruption) {
                       return model.classifier()->classify(inputs.values,
                                                           interruption.is_cancelled());
                     }),
                     inputs.is_list);
}

py::object score(LoadedModel& model, py::handle texts, const py::kwargs& given) {
  const Inputs inputs(texts);
  ScoreOptions options;
  Keywords keywords(given);
  keywords.read(options);
  keywords.check("score");
  return one_or_list(without_lock([&](Interruption& interruption) {
                       return model.scorer()->score(inputs.values, options,
                                                    interruption.is_cancelled());
                     }),
                     inputs.is_list);
}

bool has_numpy() {
  try {
    py::module_::import("numpy");
    return true;
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return false;
  }
}

py::object embed(LoadedModel& model, py::handle texts, const py::kwargs& given) {
  const Texts inputs(texts, "texts");
  EmbedOptions options = embed_options(model.folder());
  Keywords keywords(given);
  keywords.read(options);
  keywords.check("embed");
  std::vector<TaskInput> tasks(inputs.values.size());
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].text = inputs.values[i];
  size_t width = 0;
  const auto results = without_lock([&](Interruption& interruption) {
    const auto embedder = model.embedder();
    width = static_cast<size_t>(embedder->width());
    return embedder->embed(tasks, options, interruption.is_cancelled());
  });
  if (!has_numpy()) {
    std::vector<std::vector<float>> vectors;
    for (const Embedded& result : results) vectors.push_back(result.vector);
    return one_or_list(std::move(vectors), inputs.is_list);
  }
  py::array_t<float> vectors({results.size(), width});  // [inputs, width]
  for (size_t i = 0; i < results.size(); ++i) {
    std::memcpy(vectors.mutable_data(static_cast<py::ssize_t>(i), 0), results[i].vector.data(),
                width * sizeof(float));
  }
  return inputs.is_list ? py::object(vectors) : py::object(vectors[py::int_(0)]);
}

ModelInfo info_of(const LoadedModel& model) {
  return without_lock([&](Interruption&) { return model_info(model.model().network()); });
}

// ---- Text and ids ------------------------------------------------------------------------------

// From UTF-8 byte offsets to character offsets.
class CharacterPlaces {
 public:
  explicit CharacterPlaces(const std::string& text) : places_(text.size() + 1) {
    constexpr unsigned char kTopBits = 0xC0, kContinues = 0x80;
    for (size_t i = 0; i < text.size(); ++i) {
      places_[i + 1] = places_[i];
      if ((static_cast<unsigned char>(text[i]) & kTopBits) != kContinues) ++places_[i + 1];
    }
  }
  // Rounded to whole characters: a token may be part of one.
  std::pair<int64_t, int64_t> operator()(TextSpan span) const {
    const int64_t end = places_[static_cast<size_t>(span.end)];
    if (span.begin == span.end) return {end, end};
    return {places_[static_cast<size_t>(span.begin) + 1] - 1, end};
  }

 private:
  std::vector<int64_t> places_;  // characters that begin before this byte
};

struct Tokens {
  std::vector<int32_t> ids;
  std::vector<std::string> pieces;
  std::vector<std::pair<int64_t, int64_t>> offsets;
};

Tokens tokenize(const LoadedModel& model, const std::string& text, const py::kwargs& given) {
  EncodeOptions options;
  Keywords keywords(given);
  keywords.read("special_tokens", options.special_tokens);
  keywords.check("tokenize");
  const py::gil_scoped_release release;
  const Tokenizer& tokenizer = model.model().tokenizer();
  Encoding encoding = tokenizer.encode(text, options);
  Tokens tokens{.ids = std::move(encoding.ids), .pieces = {}, .offsets = {}};
  const CharacterPlaces places(text);
  for (const int32_t id : tokens.ids) tokens.pieces.push_back(tokenizer.piece(id));
  for (const TextSpan span : encoding.offsets) tokens.offsets.push_back(places(span));
  return tokens;
}

py::str detokenize(const LoadedModel& model, const std::vector<int32_t>& ids,
                   const py::kwargs& given) {
  DecodeOptions options;
  Keywords keywords(given);
  keywords.read("skip_special_tokens", options.skip_special_tokens);
  keywords.check("detokenize");
  return to_str(model.model().tokenizer().decode(ids, options));
}

// ---- Training ----------------------------------------------------------------------------------

// {"train.steps": 9} → "train.steps=9": JSON values are valid in TOML.
std::vector<std::string> settings_of(const py::dict& settings) {
  const py::object dumps = py::module_::import("json").attr("dumps");
  std::vector<std::string> list;
  for (const auto& [key, value] : settings) {
    list.push_back(text_of(key, "set") + "=" +
                   dumps(value, py::arg("ensure_ascii") = false).cast<std::string>());
  }
  return list;
}

TrainResult run_training(const std::filesystem::path& recipe, const py::kwargs& given) {
  TrainOptions options{.recipe = recipe.string(), .validator = decoding_validator()};
  py::dict set;
  std::filesystem::path out;
  py::object memory = py::none(), progress = py::none(), note = py::none();
  Keywords keywords(given);
  keywords.read("set", set);
  keywords.read("out", out);
  keywords.read("seed", options.seed);
  keywords.read("memory", memory);
  keywords.read("threads", options.threads);
  keywords.read("progress", progress);
  keywords.read("note", note);
  keywords.check("train");
  options.set = settings_of(set), options.out = out.string();
  if (!memory.is_none()) {
    options.memory_bytes = parse_bytes(py::str(memory).cast<std::string>());
  }
  std::atomic<bool> stop = false;
  options.stop = &stop;
  return without_lock([&](Interruption& interruption) {
    options.progress = [&](const TrainProgress& now) {
      const bool go_on = interruption.go_on() && interruption.run([&] {
        return progress.is_none() || !progress(now).is(py::bool_(false));
      });
      if (!go_on) stop = true;
    };
    if (!note.is_none()) {
      options.note = [&](std::string_view line) {
        const bool go_on = interruption.run([&] {
          note(to_str(line));
          return true;
        });
        if (!go_on) stop = true;
      };
    }
    TrainResult result = train(options);
    interruption.rethrow();
    return result;
  });
}

// ---- The module --------------------------------------------------------------------------------

// heed.Error, with .code and .hint.
void add_error(py::module_& m) {
  static PyObject* type = nullptr;  // lives as long as the process
  type = PyErr_NewExceptionWithDoc("heed.Error", doc("Error"), PyExc_RuntimeError, nullptr);
  if (!type) throw py::error_already_set();
  m.add_object("Error", type);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const py::object raised = py::reinterpret_borrow<py::object>(type)(to_str(error.what()));
      raised.attr("code") = name(error.code());
      raised.attr("hint") = to_str(error.hint());
      PyErr_SetObject(type, raised.ptr());
    }
  });
}

void add_results(py::module_& m) {
  Class<Translation>(m, "Translation")
      .property("text", [](const Translation& t) { return to_str(t.text); })
      .property("score", [](const Translation& t) { return t.scores.front(); })
      .property("alternatives", [](const Translation& t) { return to_strs(t.alternatives); })
      .field("scores", &Translation::scores)
      .field("sentences", &Translation::sentences)
      .field("truncated", &Translation::truncated)
      .special("__str__", [](const Translation& t) { return to_str(t.text); })
      .special("__repr__", [](const Translation& t) {
        Repr repr("Translation");
        repr.value(to_str(t.text)).field("score", t.scores.front());
        if (t.alternatives.size() > 1) repr.field("alternatives", t.alternatives.size());
        return repr.flag("truncated", t.truncated).str();
      });
  Class<Answer>(m, "Answer")
      .property("text", [](const Answer& a) { return to_str(a.text); })
      .field("ids", &Answer::ids)
      .field("new_tokens", &Answer::new_tokens)
      .field("score", &Answer::score)
      .property("finish", [](const Answer& a) { return name_of(a.finish); })
      .special("__str__", [](const Answer& a) { return to_str(a.text); })
      .special("__repr__", [](const Answer& a) {
        return Repr("Answer")
            .value(to_str(a.text))
            .field("score", a.score)
            .field("new_tokens", a.new_tokens)
            .field("finish", name_of(a.finish))
            .str();
      });
  Class<Result>(m, "Result")
      .property("text", [](const Result& r) { return to_str(r.best().text); })
      .field("answers", &Result::answers)
      .field("input_tokens", &Result::input_tokens)
      .field("truncated", &Result::truncated)
      .special("__str__", [](const Result& r) { return to_str(r.best().text); })
      .special("__repr__", [](const Result& r) {
        Repr repr("Result");
        repr.value(to_str(r.best().text)).field("score", r.best().score);
        repr.field("finish", name_of(r.best().finish));
        if (r.answers.size() > 1) repr.field("answers", r.answers.size());
        return repr.flag("truncated", r.truncated).str();
      });
  Class<Classified>(m, "Classified")
      .field("label", &Classified::label)
      .property("name", [](const Classified& c) { return to_str(c.name); })
      .field("probabilities", &Classified::probabilities)
      .field("logits", &Classified::logits)
      .field("tokens", &Classified::tokens)
      .field("truncated", &Classified::truncated)
      .special("__repr__", [](const Classified& c) {
        Repr repr("Classified");
        if (c.label >= 0) {
          repr.value(to_str(c.name));
          repr.field("probability", c.probabilities.at(static_cast<size_t>(c.label)));
        } else if (c.logits.size() == 1) {
          repr.field("score", c.logits.front());
        } else {
          repr.field("logits", c.logits);
        }
        return repr.flag("truncated", c.truncated).str();
      });
  Class<Scored>(m, "Scored")
      .field("log_probability", &Scored::log_probability)
      .property("perplexity", &Scored::perplexity)
      .field("ids", &Scored::ids)
      .field("token_scores", &Scored::token_scores)
      .field("tokens", &Scored::tokens)
      .field("truncated", &Scored::truncated)
      .special("__repr__", [](const Scored& s) {
        return Repr("Scored")
            .field("log_probability", s.log_probability)
            .field("perplexity", s.perplexity())
            .field("tokens", s.tokens)
            .flag("truncated", s.truncated)
            .str();
      });
  Class<Tokens>(m, "Tokens")
      .field("ids", &Tokens::ids)
      .property("pieces", [](const Tokens& t) { return to_strs(t.pieces); })
      .field("offsets", &Tokens::offsets)
      .special("__len__", [](const Tokens& t) { return t.ids.size(); })
      .special("__repr__", [](const Tokens& t) {
        return Repr("Tokens").field("ids", t.ids).field("pieces", to_strs(t.pieces)).str();
      });
  Class<ModelInfo>(m, "Info")
      .field("model_type", &ModelInfo::model_type)
      .field("parameters", &ModelInfo::parameters)
      .field("weight_bytes", &ModelInfo::weight_bytes)
      .field("weight_type", &ModelInfo::weight_type)
      .field("flops_per_token", &ModelInfo::flops_per_token)
      .property("settings",
                [](const ModelInfo& info) {
                  const py::object loads = py::module_::import("json").attr("loads");
                  py::dict settings;
                  for (const Setting& s : info.settings) settings[py::str(s.name)] = loads(s.value);
                  return settings;
                })
      .special("__repr__", [](const ModelInfo& info) {
        return Repr("Info")
            .field("model_type", info.model_type)
            .field("parameters", info.parameters)
            .field("weight_type", info.weight_type)
            .field("weight_bytes", info.weight_bytes)
            .field("flops_per_token", info.flops_per_token)
            .str();
      });
}

// The models that are installed with the package: in its folder (a wheel, the build directory), or
// in PREFIX/share for PREFIX/lib/python3.11/site-packages/heed.
std::map<std::string, std::string> installed_models() {
  const std::filesystem::path package =
      std::filesystem::path(py::module_::import("heed").attr("__file__").cast<std::string>())
          .parent_path();
  const std::filesystem::path up = std::filesystem::path("..") / ".." / ".." / "..";
  std::map<std::string, std::string> models;
  for (const auto& folder : {package / "models", (package / up / "share/heed/models")}) {
    std::error_code none;  // a folder that is not there has no models
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      if (!std::filesystem::exists(entry.path() / "config.json")) continue;
      models.emplace(entry.path().filename().string(), entry.path().lexically_normal().string());
    }
  }
  return models;
}

void add_model(py::module_& m) {
  Class<PieceStream>(m, "Stream")
      .special("__iter__", [](py::object stream) { return stream; })
      .special("__next__", &next_piece)
      .method("result", [](const PieceStream& stream) {
        return without_lock([&](Interruption&) { return stream.result(); });
      });

  Class<LoadedModel, ModelPtr>(m, "Model")
      .property("folder", &LoadedModel::folder)
      .property("family", [](const LoadedModel& l) { return l.model().family(); })
      .property("head", [](const LoadedModel& l) { return l.model().head(); })
      .property("labels", [](const LoadedModel& l) { return to_strs(l.model().labels()); })
      .property("vocabulary", [](const LoadedModel& l) { return l.model().vocabulary(); })
      .property("max_positions", [](const LoadedModel& l) { return l.model().max_positions(); })
      .property("can_generate", [](const LoadedModel& l) { return l.model().can_generate(); })
      .method("info", &info_of)
      .method("translate", &translate, py::arg("texts"))
      .method("generate", &generate, py::arg("prompts"))
      .method("stream", &stream, py::arg("prompt"))
      .method("classify", &classify, py::arg("texts"))
      .method("embed", &embed, py::arg("texts"))
      .method("score", &score, py::arg("texts"))
      .method("tokenize", &tokenize, py::arg("text"))
      .method("detokenize", &detokenize, py::arg("ids"))
      .special("__repr__", [](const LoadedModel& l) {
        const ModelInfo info = info_of(l);
        return Repr("Model")
            .value(l.folder())
            .field("model_type", info.model_type)
            .field("family", l.model().family())
            .field("head", l.model().head())
            .field("parameters", info.parameters)
            .field("weight_type", info.weight_type)
            .str();
      });
  m.def("load", &load, py::arg("folder"), doc("load"));
  m.def("models", &installed_models, doc("models"));
}

void add_training(py::module_& m) {
  Class<TrainProgress>(m, "TrainProgress")
      .field("step", &TrainProgress::step)
      .field("steps", &TrainProgress::steps)
      .field("loss", &TrainProgress::loss)
      .field("learning_rate", &TrainProgress::learning_rate)
      .field("gradient_norm", &TrainProgress::gradient_norm)
      .field("tokens_per_second", &TrainProgress::tokens_per_second)
      .field("remaining_seconds", &TrainProgress::remaining_seconds)
      .field("epoch", &TrainProgress::epoch)
      .special("__repr__", [](const TrainProgress& p) {
        return Repr("TrainProgress")
            .field("step", p.step)
            .field("steps", p.steps)
            .field("loss", p.loss)
            .field("learning_rate", p.learning_rate)
            .field("tokens_per_second", p.tokens_per_second)
            .str();
      });
  Class<TrainResult>(m, "TrainResult")
      .field("folder", &TrainResult::folder)
      .field("steps", &TrainResult::steps)
      .field("finished", &TrainResult::finished)
      .field("seconds", &TrainResult::seconds)
      .field("tokens", &TrainResult::tokens)
      .field("loss", &TrainResult::loss)
      .field("validation", &TrainResult::validation)
      .field("best_metric", &TrainResult::best_metric)
      .field("best_step", &TrainResult::best_step)
      .field("parameters", &TrainResult::parameters)
      .field("planned_bytes", &TrainResult::planned_bytes)
      .field("peak_rss_bytes", &TrainResult::peak_rss_bytes)
      .special("__repr__", [](const TrainResult& r) {
        return Repr("TrainResult")
            .value(r.folder)
            .field("steps", r.steps)
            .field("finished", r.finished)
            .field("loss", r.loss)
            .field("validation", r.validation)
            .str();
      });
  m.def("train", &run_training, py::arg("recipe"), doc("train"));
}

}  // namespace
}  // namespace heed::python

PYBIND11_MODULE(heed, m) {
  pybind11::options options;
  options.disable_function_signatures();  // the docstrings have theirs
  m.doc() = heed::python::doc("");
  m.attr("__version__") = heed::version();
  heed::python::add_error(m);
  heed::python::add_results(m);
  heed::python::add_model(m);
  heed::python::add_training(m);
}
