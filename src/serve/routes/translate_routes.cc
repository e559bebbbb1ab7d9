// /translate and /languages of LibreTranslate's API, with additional fields.
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <map>

#include "serve/routes/search_fields.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

struct TranslateCall {
  Texts q;
  std::string source = "auto", target, format = "text", model, api_key, source_prefix, prefix;
  int64_t alternatives = 0;
  SearchOverrides search;
  bool alignments = false;
  TextPairs terms;
};

void describe(Fields& fields, TranslateCall& call) {
  fields.texts({.name = "q", .about = "text to translate, or list of texts", .required = true},
               call.q);
  fields.text({.name = "source", .about = "source language; auto if only one is possible"},
              call.source);
  fields.text({.name = "target", .about = "target language"}, call.target);
  fields.text({.name = "format",
               .about = "what q is written in; its markup stays",
               .choices = {"text", "html", "markdown"}},
              call.format);
  const auto answers = static_cast<double>(fields.limits().answers);
  fields.integer({.name = "alternatives",
                  .about = "number of additional translations",
                  .min = 0,
                  .max = answers - 1},
                 call.alternatives);
  fields.text({.name = "api_key", .about = "API key, if required"}, call.api_key);
  fields.text({.name = "model", .about = "Heed: model name, instead of languages"}, call.model);
  describe_search(fields, call.search, {"nbest"});
  fields.flag(
      {.name = "alignments", .about = "Heed: return the alignment between source and target bytes"},
      call.alignments);
  fields.pairs({.name = "terms", .about = "Heed: terminology, {\"car\": \"Wagen\"}"}, call.terms);
  fields.text({.name = "source_prefix", .about = "Heed: prefix of each source sentence, for T5"},
              call.source_prefix);
  fields.text({.name = "prefix", .about = "Heed: forced start of the translation"}, call.prefix);
}

bool translates(const ServedModel& model) {
  return model.model().has_source() && model.model().can_generate() &&
         model.model().has_tokenizer();
}

std::vector<ServedModelPtr> translating_models(Service& service) {
  std::vector<ServedModelPtr> models = service.models().all();
  std::erase_if(models, [](const auto& m) { return !translates(*m) || m->is_parser(); });
  return models;
}

// Selects the model by name or by languages.
ServedModelPtr choose_model(Call& call, TranslateCall& request) {
  Service& service = call.service;
  if (!request.model.empty()) {
    ServedModelPtr model = service.model_for(call, request.model, "translate");
    if (translates(*model)) return model;
    throw HttpError(400, "the model '" + request.model + "' does not translate", "unsupported",
                    "model");
  }
  const std::vector<ServedModelPtr> models = translating_models(service);
  if (models.empty()) throw HttpError(404, "no loaded model can translate", "model_not_found");
  if (request.target.empty()) {
    throw HttpError(400, "target is missing: the target language", "missing_field", "target");
  }
  ServedModelPtr found, nameless;
  bool has_source = false, has_target = false, is_ambiguous = false;
  for (const ServedModelPtr& model : models) {
    const Languages& languages = model->languages();
    if (languages.targets.empty()) nameless = model;
    const bool source_fits = request.source == "auto" || languages.sources.contains(request.source);
    const bool target_fits = languages.targets.contains(request.target);
    has_source |= source_fits, has_target |= target_fits;
    if (!source_fits || !target_fits) continue;
    const bool is_open = request.source == "auto" && languages.sources.size() != 1;
    is_ambiguous |= is_open || (found && request.source == "auto" &&
                                found->languages().sources != languages.sources);
    if (!found) found = model;
  }
  if (is_ambiguous) {
    throw HttpError(400, "source must be a language, because several are possible", "invalid_value",
                    "source");
  }
  // A single model of unknown languages is used for any.
  if (!found && models.size() == 1 && nameless) found = nameless;
  if (!found) {
    const std::string field = !has_target ? "target" : "source";
    const std::string source = request.source.substr(0, 40), target = request.target.substr(0, 40);
    // Both languages exist, but not in this direction.
    const bool is_direction = has_target == has_source && request.source != "auto";
    const std::string what = is_direction ? source + " to " + target : has_target ? source : target;
    throw HttpError(400, what + " is not supported", "unsupported_language", field);
  }
  call.model = found->name();
  return found;
}

SearchOptions search_for(const TranslateCall& request, const Model& model) {
  SearchOptions defaults = Translator::default_search(model);
  defaults.sample = false;
  SearchOverrides given = request.search;
  given.values.nbest = static_cast<int>(request.alternatives) + 1;
  given.set("nbest");
  // LibreTranslate clients do not set the beam size with alternatives.
  if (given.has("beam")) given.values.beam = std::max(given.values.beam, given.values.nbest);
  SearchOptions search = apply(std::move(defaults), given);
  search.alignments = request.alignments;
  return search;
}

Json alignments_json(const std::vector<Alignment>& alignments) {
  Json list = Json::array();
  for (const Alignment& a : alignments) {
    list.push_back({{"source", {a.source.begin, a.source.end}},
                    {"target", {a.target.begin, a.target.end}},
                    {"weight", a.weight}});
  }
  return list;
}

// The terms that occur in the source, and whether the translation contains them.
Json terms_json(const std::vector<Translation::UsedTerm>& used, const std::vector<Term>& terms) {
  Json list = Json::array();
  for (const auto& [index, is_used] : used) {
    list.push_back(
        {{"source", terms[index].source}, {"target", terms[index].target}, {"used", is_used}});
  }
  return list;
}

// What is wrong with a translation, or null.
Json warning_json(const Translation& translation) {
  if (translation.truncated) return "truncated";
  if (translation.warning == TranslationWarning::none) return nullptr;
  return name_of(translation.warning);
}

HttpReply translate(Call& call) {
  auto request = read_fields<TranslateCall>(call);
  const ServedModelPtr served = choose_model(call, request);
  const Languages& languages = served->languages();
  TranslateOptions options{.search = search_for(request, served->model()),
                           .format = *from_name<TextFormat>(request.format),
                           .source_prefix = request.source_prefix,
                           .prefix = request.prefix,
                           .is_cancelled = call.cancelled()};
  for (const auto& [source, target] : request.terms) {
    options.terms.push_back({.source = source, .target = target});
  }
  if (languages.has_tokens) {
    options.target_language = request.target;
    if (request.source != "auto" && languages.sources == languages.targets) {
      options.source_language = request.source;
    }
  }
  Json texts = Json::array(), alternatives = Json::array(), alignments = Json::array(),
       scores = Json::array(), terms = Json::array(), warnings = Json::array();
  bool has_warning = false;
  served->translator().translate(
      request.q.values, options, [&](size_t number, Translation&& translation) {
        call.service.count_texts(*served, request.q.values[number], translation.text);
        texts.push_back(translation.text);
        Json others = Json::array();
        for (size_t i = 1; i < translation.alternatives.size(); ++i) {
          others.push_back(translation.alternatives[i]);
        }
        alternatives.push_back(std::move(others));
        scores.push_back(translation.scores);
        alignments.push_back(alignments_json(translation.alignments));
        terms.push_back(terms_json(translation.terms, options.terms));
        warnings.push_back(warning_json(translation));
        has_warning = has_warning || !warnings.back().is_null();
      });
  // A list for a list, otherwise a single value.
  const auto single_or_list = [&](Json& list) {
    return request.q.is_list ? std::move(list) : list.at(0);
  };
  Json json;
  if (request.source == "auto" && languages.sources.size() == 1) {
    // Not detected: the only source language of the model.
    const Json detected{{"confidence", 0}, {"language", *languages.sources.begin()}};
    json["detectedLanguage"] = detected;
    if (request.q.is_list) json["detectedLanguage"] = Json(request.q.values.size(), detected);
  }
  json["translatedText"] = single_or_list(texts);
  if (request.alternatives > 0) {
    json["alternatives"] = single_or_list(alternatives);
    json["scores"] = single_or_list(scores);
  }
  if (request.alignments) json["alignments"] = single_or_list(alignments);
  if (!request.terms.empty()) json["terms"] = single_or_list(terms);
  if (has_warning) json["warning"] = single_or_list(warnings);
  if (is_random(*options.search)) json["seed"] = options.search->seed;
  return json_reply(json);
}

Json translate_schema() {
  // A list for a list, otherwise a single value.
  const auto single_or_list = [](const Json& one, const char* about) {
    return schema::any_of({one, schema::list(one)}, about);
  };
  const Json bytes = schema::list(schema::integer(), "the first byte, and the one after the last");
  const Json alignment = schema::object(
      {{"source", bytes}, {"target", bytes}, {"weight", schema::number("attention weight")}});
  const Json term = schema::object({{"source", schema::text()},
                                    {"target", schema::text()},
                                    {"used", schema::flag("whether the translation contains it")}});
  const Json detected =
      schema::object({{"confidence", schema::number()}, {"language", schema::text()}});
  return schema::object(
      {{"detectedLanguage?",
        single_or_list(detected, "where source was auto, and only one is possible")},
       {"translatedText", single_or_list(schema::text(), "the translation, or a list")},
       {"alternatives?", single_or_list(schema::list(schema::text()), "others, best first")},
       {"scores?",
        single_or_list(schema::list(schema::number()), "the translation's, then theirs")},
       {"alignments?", single_or_list(schema::list(alignment), "what comes from where")},
       {"terms?", single_or_list(schema::list(term), "those that occur in q")},
       {"warning?", single_or_list(schema::or_null(schema::text(
                                       "truncated, repetition, too_short or too_long")),
                                   "what is wrong with the translation, where anything is")},
       {"seed?", schema::integer("random seed of sampled translations")}});
}

std::string language_name(const std::string& code) {
  const icu::Locale locale(code.c_str());
  icu::UnicodeString name;
  locale.getDisplayName(icu::Locale::getEnglish(), name);
  std::string text;
  name.toUTF8String(text);
  return text.empty() ? code : text;
}

HttpReply list_languages(Call& call) {
  std::map<std::string, std::set<std::string>> targets;
  for (const ServedModelPtr& model : translating_models(call.service)) {
    const Languages& languages = model->languages();
    for (const std::string& source : languages.sources) {
      targets[source].insert(languages.targets.begin(), languages.targets.end());
    }
    // Clients look up the names of target languages here too.
    for (const std::string& target : languages.targets) targets[target];
  }
  Json list = Json::array();
  for (const auto& [code, into] : targets) {
    list.push_back({{"code", code}, {"name", language_name(code)}, {"targets", into}});
  }
  return json_reply(list);
}

Json languages_schema() {
  return schema::list(
      schema::object({{"code", schema::text()},
                      {"name", schema::text("in English")},
                      {"targets", schema::list(schema::text(), "codes of other languages")}}));
}

}  // namespace

void add_translate_routes(std::vector<Route>& routes) {
  routes.push_back({.method = "POST",
                    .path = "/translate",
                    .about = "Translate texts (LibreTranslate API)",
                    .form = Route::Form::libretranslate,
                    .works = true,
                    .takes_form = true,
                    .describe = described<TranslateCall>(),
                    .replies = {{.schema = translate_schema()}},
                    .handle = translate});
  routes.push_back({.method = "GET",
                    .path = "/languages",
                    .about = "List the languages and their targets (LibreTranslate API)",
                    .access = Route::Access::open,
                    .form = Route::Form::libretranslate,
                    .replies = {{.schema = languages_schema()}},
                    .handle = list_languages});
}

}  // namespace heed::serve
