// The Python package heed; heed/__init__.pyi.in documents it.
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

Tokens tokenize(const LoadedModel& model, const std::string& text, bool special_tokens) {
  const py::gil_scoped_release release;
  const Tokenizer& tokenizer = model.model().tokenizer();
  Encoding encoding = tokenizer.encode(text, {.special_tokens = special_tokens});
  Tokens tokens{.ids = std::move(encoding.ids), .pieces = {}, .offsets = {}};
  const CharacterPlaces places(text);
  for (const int32_t id : tokens.ids) tokens.pieces.push_back(tokenizer.piece(id));
  for (const TextSpan span : encoding.offsets) tokens.offsets.push_back(places(span));
  return tokens;
}

py::str detokenize(const LoadedModel& model, const std::vector<int32_t>& ids,
                   bool skip_special_tokens) {
  return to_str(
      model.model().tokenizer().decode(ids, {.skip_special_tokens = skip_special_tokens}));
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

struct TrainArguments {
  std::filesystem::path recipe;
  py::dict set;
  std::optional<std::filesystem::path> out;
  std::optional<uint64_t> seed;
  py::object memory, progress, note;
  int threads;
};

TrainResult run_training(const TrainArguments& arguments) {
  TrainOptions options{.recipe = arguments.recipe.string(),
                       .set = settings_of(arguments.set),
                       .out = arguments.out ? arguments.out->string() : "",
                       .seed = arguments.seed,
                       .threads = arguments.threads,
                       .validator = decoding_validator()};
  if (!arguments.memory.is_none()) {
    options.memory_bytes = parse_bytes(py::str(arguments.memory).cast<std::string>());
  }
  std::atomic<bool> stop = false;
  options.stop = &stop;
  return without_lock([&](Interruption& interruption) {
    options.progress = [&](const TrainProgress& now) {
      const bool go_on = interruption.go_on() && interruption.run([&] {
        return arguments.progress.is_none() || !arguments.progress(now).is(py::bool_(false));
      });
      if (!go_on) stop = true;
    };
    if (!arguments.note.is_none()) {
      options.note = [&](std::string_view line) {
        const bool go_on = interruption.run([&] {
          arguments.note(to_str(line));
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
  type = PyErr_NewExceptionWithDoc("heed.Error", "An error of the library.", PyExc_RuntimeError,
                                   nullptr);
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

template <class T>
py::str described(const char* name, const T& value) {
  return py::str("{}({!r})").format(name, value);
}

void add_results(py::module_& m) {
  py::class_<Translation>(m, "Translation")
      .def_property_readonly("text", [](const Translation& t) { return to_str(t.text); })
      .def_property_readonly("score", [](const Translation& t) { return t.scores.front(); })
      .def_property_readonly("alternatives",
                             [](const Translation& t) { return to_strs(t.alternatives); })
      .def_readonly("scores", &Translation::scores)
      .def_readonly("sentences", &Translation::sentences)
      .def_readonly("truncated", &Translation::truncated)
      .def("__str__", [](const Translation& t) { return to_str(t.text); })
      .def("__repr__",
           [](const Translation& t) { return described("heed.Translation", to_str(t.text)); });
  py::class_<Answer>(m, "Answer")
      .def_property_readonly("text", [](const Answer& a) { return to_str(a.text); })
      .def_readonly("ids", &Answer::ids)
      .def_readonly("new_tokens", &Answer::new_tokens)
      .def_readonly("score", &Answer::score)
      .def_property_readonly("finish", [](const Answer& a) { return name_of(a.finish); })
      .def("__str__", [](const Answer& a) { return to_str(a.text); })
      .def("__repr__", [](const Answer& a) { return described("heed.Answer", to_str(a.text)); });
  py::class_<Result>(m, "Result")
      .def_property_readonly("text", [](const Result& r) { return to_str(r.best().text); })
      .def_readonly("answers", &Result::answers)
      .def_readonly("input_tokens", &Result::input_tokens)
      .def_readonly("truncated", &Result::truncated)
      .def("__str__", [](const Result& r) { return to_str(r.best().text); })
      .def("__repr__",
           [](const Result& r) { return described("heed.Result", to_str(r.best().text)); });
  py::class_<Classified>(m, "Classified")
      .def_readonly("label", &Classified::label)
      .def_property_readonly("name", [](const Classified& c) { return to_str(c.name); })
      .def_readonly("probabilities", &Classified::probabilities)
      .def_readonly("logits", &Classified::logits)
      .def_readonly("tokens", &Classified::tokens)
      .def_readonly("truncated", &Classified::truncated)
      .def("__repr__",
           [](const Classified& c) { return described("heed.Classified", to_str(c.name)); });
  py::class_<Scored>(m, "Scored")
      .def_readonly("log_probability", &Scored::log_probability)
      .def_property_readonly("perplexity", &Scored::perplexity)
      .def_readonly("ids", &Scored::ids)
      .def_readonly("token_scores", &Scored::token_scores)
      .def_readonly("tokens", &Scored::tokens)
      .def_readonly("truncated", &Scored::truncated)
      .def("__repr__", [](const Scored& s) { return described("heed.Scored", s.log_probability); });
  py::class_<Tokens>(m, "Tokens")
      .def_readonly("ids", &Tokens::ids)
      .def_property_readonly("pieces", [](const Tokens& t) { return to_strs(t.pieces); })
      .def_readonly("offsets", &Tokens::offsets)
      .def("__len__", [](const Tokens& t) { return t.ids.size(); })
      .def("__repr__", [](const Tokens& t) { return described("heed.Tokens", t.ids); });
  py::class_<ModelInfo>(m, "Info")
      .def_readonly("model_type", &ModelInfo::model_type)
      .def_readonly("parameters", &ModelInfo::parameters)
      .def_readonly("weight_bytes", &ModelInfo::weight_bytes)
      .def_readonly("weight_type", &ModelInfo::weight_type)
      .def_readonly("flops_per_token", &ModelInfo::flops_per_token)
      .def_property_readonly("settings", [](const ModelInfo& info) {
        const py::object loads = py::module_::import("json").attr("loads");
        py::dict settings;
        for (const Setting& s : info.settings) settings[py::str(s.name)] = loads(s.value);
        return settings;
      });
}

void add_model(py::module_& m) {
  py::class_<PieceStream>(m, "Stream")
      .def("__iter__", [](py::object stream) { return stream; })
      .def("__next__", &next_piece)
      .def("result", [](const PieceStream& stream) {
        return without_lock([&](Interruption&) { return stream.result(); });
      });

  py::class_<LoadedModel, ModelPtr>(m, "Model")
      .def_property_readonly("folder", &LoadedModel::folder)
      .def_property_readonly("family", [](const LoadedModel& l) { return l.model().family(); })
      .def_property_readonly("head", [](const LoadedModel& l) { return l.model().head(); })
      .def_property_readonly("labels",
                             [](const LoadedModel& l) { return to_strs(l.model().labels()); })
      .def_property_readonly("vocabulary",
                             [](const LoadedModel& l) { return l.model().vocabulary(); })
      .def_property_readonly("max_positions",
                             [](const LoadedModel& l) { return l.model().max_positions(); })
      .def_property_readonly("can_generate",
                             [](const LoadedModel& l) { return l.model().can_generate(); })
      .def("info",
           [](const LoadedModel& l) {
             return without_lock([&](Interruption&) { return model_info(l.model().network()); });
           })
      .def("translate", &translate, py::arg("texts"))
      .def("generate", &generate, py::arg("prompts"))
      .def("stream", &stream, py::arg("prompt"))
      .def("classify", &classify, py::arg("texts"))
      .def("embed", &embed, py::arg("texts"))
      .def("score", &score, py::arg("texts"))
      .def("tokenize", &tokenize, py::arg("text"), py::kw_only(),
           py::arg("special_tokens") = EncodeOptions().special_tokens)
      .def("detokenize", &detokenize, py::arg("ids"), py::kw_only(),
           py::arg("skip_special_tokens") = DecodeOptions().skip_special_tokens)
      .def("__repr__", [](const LoadedModel& l) { return described("heed.Model", l.folder()); });
  m.def("load", &load, py::arg("folder"));
}

void add_training(py::module_& m) {
  py::class_<TrainProgress>(m, "TrainProgress")
      .def_readonly("step", &TrainProgress::step)
      .def_readonly("steps", &TrainProgress::steps)
      .def_readonly("loss", &TrainProgress::loss)
      .def_readonly("learning_rate", &TrainProgress::learning_rate)
      .def_readonly("gradient_norm", &TrainProgress::gradient_norm)
      .def_readonly("tokens_per_second", &TrainProgress::tokens_per_second)
      .def_readonly("remaining_seconds", &TrainProgress::remaining_seconds)
      .def_readonly("epoch", &TrainProgress::epoch);
  py::class_<TrainResult>(m, "TrainResult")
      .def_readonly("folder", &TrainResult::folder)
      .def_readonly("steps", &TrainResult::steps)
      .def_readonly("finished", &TrainResult::finished)
      .def_readonly("seconds", &TrainResult::seconds)
      .def_readonly("tokens", &TrainResult::tokens)
      .def_readonly("loss", &TrainResult::loss)
      .def_readonly("validation", &TrainResult::validation)
      .def_readonly("best_metric", &TrainResult::best_metric)
      .def_readonly("best_step", &TrainResult::best_step)
      .def_readonly("parameters", &TrainResult::parameters)
      .def_readonly("planned_bytes", &TrainResult::planned_bytes)
      .def_readonly("peak_rss_bytes", &TrainResult::peak_rss_bytes);
  m.def(
      "train",
      [](std::filesystem::path recipe, py::dict set, std::optional<std::filesystem::path> out,
         std::optional<uint64_t> seed, py::object memory, int threads, py::object progress,
         py::object note) {
        return run_training({.recipe = std::move(recipe),
                             .set = std::move(set),
                             .out = std::move(out),
                             .seed = seed,
                             .memory = std::move(memory),
                             .progress = std::move(progress),
                             .note = std::move(note),
                             .threads = threads});
      },
      py::arg("recipe"), py::kw_only(), py::arg("set") = py::dict(), py::arg("out") = py::none(),
      py::arg("seed") = py::none(), py::arg("memory") = py::none(),
      py::arg("threads") = TrainOptions().threads, py::arg("progress") = py::none(),
      py::arg("note") = py::none());
}

}  // namespace
}  // namespace heed::python

PYBIND11_MODULE(heed, m) {
  m.doc() = "The Transformer on ordinary CPUs: translate, generate, classify, embed, train.";
  m.attr("__version__") = heed::version();
  heed::python::add_error(m);
  heed::python::add_results(m);
  heed::python::add_model(m);
  heed::python::add_training(m);
}
