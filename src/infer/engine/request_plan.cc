#include "infer/engine/request_plan.h"

#include <algorithm>

#include "base/check.h"
#include "heed/error.h"
#include "infer/engine/prompt_ids.h"
#include "model/network.h"

namespace heed {
namespace {

// Models without a table of positions refuse sources beyond this many times their training length:
// attention would take hours.
constexpr int64_t kMostTimesTrained = 16;

// Default maximum number of new tokens.
constexpr int64_t kTargetPerSource = 3, kTargetBase = 64, kContinuation = 128;

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

void check_ids(std::span<const int32_t> ids, int64_t vocabulary, const std::string& what) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    refuse(what + ": id " + std::to_string(id) + " is not in the vocabulary of " +
               std::to_string(vocabulary),
           "ids are 0 to " + std::to_string(vocabulary - 1));
  }
}

bool is_special(const Tokenizer& tokenizer, int32_t id) {
  const std::span<const int32_t> one(&id, 1);
  return tokenizer.decode(one).empty() &&
         !tokenizer.decode(one, {.skip_special_tokens = false}).empty();
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

bool is_code(std::string_view text) {
  return (text.size() == 2 || text.size() == 3) && std::ranges::all_of(text, is_lower);
}

// Whether a piece has the form of a language token: __de__, >>de<<, <2de>, de_DE or deu_Latn.
bool names_language(std::string_view text) {
  const auto within = [&](std::string_view before, std::string_view after) {
    return text.size() > before.size() + after.size() && text.starts_with(before) &&
           text.ends_with(after);
  };
  if (within("__", "__")) return is_code(text.substr(2, text.size() - 4));
  if (within(">>", "<<") || within("<2", ">")) return true;
  const size_t line = text.find('_');
  if (line == std::string_view::npos || !is_code(text.substr(0, line))) return false;
  const std::string_view place = text.substr(line + 1);
  if (place.size() == 2) return std::ranges::all_of(place, is_upper);
  return line == 3 && place.size() == 4 && is_upper(place[0]) &&
         std::ranges::all_of(place.substr(1), is_lower);
}

// Any vocabulary has pieces such as "de" and "it": a token is a language only if it is special, or
// has a form that words do not have.
std::optional<int32_t> find_language(const Tokenizer& tokenizer, const std::string& language) {
  std::string country;  // mBART's German is de_DE, its French fr_XX
  for (const char c : language) country += is_lower(c) ? static_cast<char>(c - 32) : c;
  for (const std::string& name : {"__" + language + "__", ">>" + language + "<<", language + "_XX",
                                  language + "_" + country, "<2" + language + ">"}) {
    if (const auto id = tokenizer.find(name)) return id;
  }
  const auto id = tokenizer.find(language);
  const bool counts = id && (names_language(language) || is_special(tokenizer, *id));
  return counts ? id : std::nullopt;
}

int32_t language_id(const Model& model, const std::string& language) {
  if (const auto id = find_language(model.tokenizer(), language)) return *id;
  refuse("unknown language '" + language + "': the model's tokenizer has no token for it",
         "models for one pair of languages take none; others have tokens such as __fr__ or >>fr<< "
         "(fr), or fra_Latn");
}

// Inserts the language tokens where multilingual models expect them.
void add_languages(const Model& model, const Request& request, Encoding& source,
                   SearchOptions& options) {
  const auto insert_first = [&](int32_t id) {
    source.ids.insert(source.ids.begin(), id);
    source.offsets.insert(source.offsets.begin(), TextSpan{});
    source.is_special.insert(source.is_special.begin(), 1);
  };
  if (!request.source_language.empty()) {
    const int32_t id = language_id(model, request.source_language);
    const bool replaces = source.ids.size() > 1 && source.is_special.front();
    if (replaces) source.ids.front() = id;  // the tokenizer's default
    if (!replaces) insert_first(id);
  }
  if (request.target_language.empty()) return;
  const int32_t id = language_id(model, request.target_language);
  // Marian's multilingual models and MADLAD have the target language in the source; others begin
  // the target with it.
  const std::string piece = model.tokenizer().piece(id);
  if (piece.starts_with(">>") || piece.starts_with("<2")) {
    insert_first(id);
  } else {
    options.forced_first_id = id;
  }
}

int64_t longest_source(const Model& model) {
  return model.positions_are_fixed() ? model.max_positions()
                                     : kMostTimesTrained * model.max_positions();
}

// Truncates a source beyond the context length, but keeps its end token.
void fit_source(const Model& model, const Request& request, Encoding& source, RequestPlan& plan) {
  const auto most = static_cast<size_t>(longest_source(model));
  if (source.ids.size() <= most) return;
  if (request.truncate == Truncation::no) {
    refuse("the source must have at most " + std::to_string(most) + " tokens, got " +
               std::to_string(source.ids.size()),
           "translate it in parts, or allow truncation");
  }
  if (request.truncate == Truncation::left) {
    const auto surplus = static_cast<ptrdiff_t>(source.ids.size() - most);
    source.ids.erase(source.ids.begin(), source.ids.begin() + surplus);
    if (!source.offsets.empty()) {
      source.offsets.erase(source.offsets.begin(), source.offsets.begin() + surplus);
    }
    plan.truncated = true;
    return;
  }
  const auto& ends = model.search_options().end_ids;
  const bool keep_last = std::ranges::find(ends, source.ids.back()) != ends.end();
  const int32_t last = source.ids.back();
  source.ids.resize(most), source.offsets.resize(std::min(source.offsets.size(), most));
  if (keep_last) {
    source.ids.back() = last;
    if (!source.offsets.empty()) source.offsets.back() = {};
  }
  plan.truncated = true;
}

void plan_source(const Model& model, const Request& request, SearchOptions& options,
                 RequestPlan& plan) {
  Encoding source;
  if (request.ids) {
    source.ids = *request.ids;
  } else {
    source = model.tokenizer().encode(request.text);
  }
  if (source.ids.empty()) {
    refuse("the source must not be empty", "give at least one token");
  }
  if (source.is_special.empty()) source.is_special.resize(source.ids.size());
  add_languages(model, request, source, options);
  check_ids(source.ids, model.network().config().vocabulary, "source");
  plan.input_tokens = static_cast<int64_t>(source.ids.size());
  fit_source(model, request, source, plan);
  plan.source = std::move(source.ids);
  if (!request.ids) plan.source_spans = std::move(source.offsets);

  const ModelConfig& config = model.network().config();
  const int start = config.decoder_start_id >= 0 ? config.decoder_start_id : config.bos_id;
  if (start < 0) {
    throw Error(ErrorCode::unsupported,
                "the model does not say which token its decoder starts with",
                "set decoder_start_token_id in its config.json");
  }
  plan.prompt = {start};
}

void plan_prompt(const Model& model, const Request& request, RequestPlan& plan) {
  if (request.ids) {
    plan.prompt = *request.ids;
  } else {
    plan.prompt = prompt_ids(model, request.text);
  }
  if (plan.prompt.empty()) refuse("the prompt must not be empty", "give at least one token");
  plan.input_tokens = static_cast<int64_t>(plan.prompt.size());
}

// Truncates a prompt beyond the context length so that it leaves room for the answer, but keeps at
// least half the context and a BOS token.
void fit_prompt(const Model& model, const Request& request, const SearchOptions& o,
                RequestPlan& plan) {
  const int64_t context = model.context_length(), prompt = std::ssize(plan.prompt);
  if (model.has_source() || context == 0 || prompt <= context) return;
  if (request.truncate == Truncation::no) {
    refuse("the prompt must have at most " + std::to_string(context) +
               " tokens, the context length of the model, got " + std::to_string(prompt),
           "shorten it, or allow truncation from the left or the right");
  }
  const int64_t answer = o.max_new_tokens > 0 ? o.max_new_tokens : kContinuation;
  const auto kept = std::max(context - answer, std::max<int64_t>(context / 2, 1));
  if (request.truncate == Truncation::right) {
    plan.prompt.resize(static_cast<size_t>(kept));
  } else {
    const bool has_bos = plan.prompt.front() == model.network().config().bos_id && kept > 1;
    const auto begin = plan.prompt.begin() + (has_bos ? 1 : 0);
    plan.prompt.erase(begin, begin + static_cast<ptrdiff_t>(prompt - kept));
  }
  plan.truncated = true;
}

void plan_prefix(const Model& model, const Request& request, RequestPlan& plan) {
  std::vector<int32_t> prefix = request.prefix_ids;
  if (!request.prefix.empty()) {
    prefix = model.tokenizer().encode_ids(request.prefix,
                                          {.special_tokens = false, .side = TextSide::target});
  }
  plan.prompt.insert(plan.prompt.end(), prefix.begin(), prefix.end());
  check_ids(plan.prompt, model.vocabulary(), model.has_source() ? "prefix" : "prompt");
}

// The maximum number of new tokens, from the options and the context length.
void plan_lengths(const Model& model, const SearchOptions& o, RequestPlan& plan) {
  const auto prompt = static_cast<int64_t>(plan.prompt.size());
  const int64_t source = static_cast<int64_t>(plan.source.size());
  int64_t most = o.max_new_tokens;
  if (most == 0 && o.max_length > 0) {
    most = o.max_length - prompt;
    if (most < 1) {
      refuse("max_length must be above the prompt's " + std::to_string(prompt) + " tokens, got " +
                 std::to_string(o.max_length),
             "set max_new_tokens instead");
    }
  }
  if (most == 0)
    most = model.has_source() ? kTargetPerSource * source + kTargetBase : kContinuation;
  const bool is_limited =
      model.has_source() ? model.positions_are_fixed() : model.context_length() > 0;
  if (is_limited) {
    // The last token is never an input.
    const int64_t context = model.has_source() ? model.max_positions() : model.context_length();
    const int64_t room = context - prompt + 1;
    if (room < 1) {
      refuse("the prompt and the prefix must have at most " + std::to_string(context) +
                 " tokens, the context length of the model, got " + std::to_string(prompt),
             "shorten them");
    }
    most = std::min(most, room);
  }
  plan.search.max_new_tokens = most;
  plan.search.min_new_tokens = std::max(o.min_new_tokens, o.min_length - prompt);
  if (plan.search.min_new_tokens > most) {
    refuse("the minimum number of new tokens must be at most " + std::to_string(most) + ", got " +
               std::to_string(plan.search.min_new_tokens),
           "lower the minimum, or raise the maximum");
  }
}

// A phrase as ids: after a space, and if `both` at the beginning of a text too.
void add_phrase(const Model& model, const std::string& text, bool both, Phrases& phrases) {
  const EncodeOptions plain{.special_tokens = false, .side = TextSide::target};
  std::vector<int32_t> within = model.tokenizer().encode_ids(" " + text, plain);
  if (both) {
    std::vector<int32_t> first = model.tokenizer().encode_ids(text, plain);
    if (first != within && !first.empty()) phrases.push_back(std::move(first));
  }
  if (!within.empty()) phrases.push_back(std::move(within));
}

void plan_phrases(const Model& model, const SearchOptions& o, SearchPlan& plan) {
  Phrases banned = o.banned_ids;
  plan.required = o.required_ids;
  for (const std::string& text : o.banned) add_phrase(model, text, /*both=*/true, banned);
  for (const std::string& text : o.required) add_phrase(model, text, false, plan.required);
  for (std::vector<int32_t>& phrase : banned) {
    check_ids(phrase, model.vocabulary(), "banned phrase");
    if (phrase.size() == 1) plan.banned.push_back(phrase.front());
    if (phrase.size() > 1) plan.banned_phrases.push_back(std::move(phrase));
  }
  for (const auto& phrase : plan.required) check_ids(phrase, model.vocabulary(), "required phrase");
}

// Searches the end of the text only: earlier parts were searched in earlier steps.
void plan_stops(const Model& model, const SearchOptions& o, SearchPlan& plan) {
  if (o.stop.empty()) return;
  size_t longest = 0;
  for (const std::string& text : o.stop) longest = std::max(longest, text.size());
  // A token has at least one byte, except special ones.
  const size_t window = longest + 16;
  plan.stops = [tokenizer = model.tokenizer_pointer(), stop = o.stop,
                window](std::span<const int32_t> ids) {
    const std::string text = tokenizer->decode(ids.last(std::min(ids.size(), window)));
    return std::ranges::any_of(stop,
                               [&](const std::string& s) { return text.find(s) != text.npos; });
  };
}

}  // namespace

RequestPlan plan_request(const Model& model, const Request& request) {
  RequestPlan plan;
  SearchOptions options = request.search.value_or(model.search_options());
  check(options);
  if (options.end_ids.empty()) options.end_ids = model.search_options().end_ids;
  if (model.has_source()) {
    plan_source(model, request, options, plan);
  } else {
    plan_prompt(model, request, plan);
    fit_prompt(model, request, options, plan);
  }
  plan_prefix(model, request, plan);
  plan_lengths(model, options, plan);
  plan_phrases(model, options, plan.search);
  if (!options.stop.empty()) model.tokenizer();  // throws if there is none
  plan_stops(model, options, plan.search);
  check_token_ids(options, model.vocabulary());
  plan.search.stream = request.stream;
  plan.search.options = std::move(options);
  return plan;
}

}  // namespace heed
