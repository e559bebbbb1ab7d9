// Validation by decoding, one function for each objective.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text/number_text.h"
#include "heed/engine.h"
#include "heed/error.h"
#include "heed/metrics.h"
#include "heed/tasks.h"
#include "heed/train.h"
#include "heed/translate.h"
#include "infer/tasks/task_runner.h"
#include "text/trees/tree.h"
#include "text/unicode/utf8.h"

namespace heed {
namespace {

EngineOptions engine_options(const ValidationRequest& request) {
  return {.threads = request.threads, .kv_memory_bytes = request.kv_memory_bytes, .scores = false};
}

TaskOptions task_options(const ValidationRequest& request) {
  return {.threads = request.threads, .max_tokens = request.max_tokens};
}

std::function<bool()> is_cancelled(const ValidationRequest& request) {
  if (!request.stop) return {};
  return [stop = request.stop] { return stop->load(); };
}

// Lines, as read_lines() returns them.
std::string without_trailing_space(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

// A sample has a few lines; each of its parts is one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

std::string sample_text(const std::string& source, const std::string& output,
                        const std::string& wanted) {
  return "source: " + one_line(source) + "\n  output: " + one_line(output) +
         "\n  wanted: " + one_line(wanted);
}

// Whether example `i` of `count` is shown as a sample: the first ones are.
bool is_shown(size_t i, const ValidationRequest& request) {
  return i < static_cast<size_t>(std::max(request.samples, 0));
}

ValidationScores translate_all(const ValidationRequest& request, const Model& model) {
  std::vector<std::string> sources, hypotheses;
  References references;
  for (const ValidationExample& e : request.examples) {
    sources.push_back(e.source);
    references.push_back({without_trailing_space(e.target)});
  }
  SearchOptions search = model.search_options();
  search.nbest = 1;
  Translator translator(model, engine_options(request));
  translator.translate(
      sources,
      {.search = search,
       .source_prefix = request.source_prefix,
       .target_language = request.target_prefix,
       .is_cancelled = is_cancelled(request)},
      [&](size_t, Translation&& translation) {
        // run() polls only while it waits.
        throw_if_cancelled(is_cancelled(request));
        hypotheses.push_back(without_trailing_space(one_line(std::move(translation.text))));
      });
  ValidationScores scores;
  scores.metrics["bleu"] = bleu(hypotheses, references, {.tokenize = request.tokenize}).score;
  scores.metrics["chrf"] = chrf(hypotheses, references).score;
  int64_t equal = 0;  // the metric if answers are class names
  for (size_t i = 0; i < hypotheses.size(); ++i) equal += hypotheses[i] == references[i][0];
  scores.metrics["exact"] =
      static_cast<double>(equal) / static_cast<double>(std::max<size_t>(hypotheses.size(), 1));
  for (size_t i = 0; i < sources.size() && is_shown(i, request); ++i) {
    scores.samples.push_back(sample_text(sources[i], hypotheses[i], references[i][0]));
  }
  return scores;
}

std::vector<Classified> label_all(const ValidationRequest& request, const Model& model) {
  std::vector<TaskInput> inputs;
  for (const ValidationExample& e : request.examples) {
    inputs.push_back({.text = request.source_prefix + e.source, .second = e.second});
  }
  return Classifier(model, task_options(request)).classify(inputs, is_cancelled(request));
}

ValidationScores classify_all(const ValidationRequest& request, const Model& model) {
  ValidationScores scores;
  std::vector<std::string> gold, predicted;
  for (const Classified& result : label_all(request, model)) {
    const ValidationExample& e = request.examples[predicted.size()];
    if (is_shown(predicted.size(), request)) {
      scores.samples.push_back(sample_text(e.source, result.name, e.target));
    }
    gold.push_back(e.target);
    predicted.push_back(result.name);
  }
  const ClassificationScore score = classification(gold, predicted);
  scores.metrics = {
      {"accuracy", score.accuracy}, {"f1", score.macro.f1}, {"matthews", score.matthews}};
  return scores;
}

// Constant predictions have no correlation with the references.
double or_zero(double correlation) { return std::isfinite(correlation) ? correlation : 0; }

ValidationScores measure_all(const ValidationRequest& request, const Model& model) {
  ValidationScores scores;
  std::vector<double> gold, predicted;
  size_t i = 0;
  for (const Classified& result : label_all(request, model)) {
    const ValidationExample& e = request.examples[i++];
    double truth = 0;
    const char* const end = e.target.data() + e.target.size();
    const auto read = std::from_chars(e.target.data(), end, truth);
    if (read.ec != std::errc() || result.logits.empty()) continue;
    if (is_shown(gold.size(), request)) {
      scores.samples.push_back(sample_text(e.source, fixed(result.logits[0], 3), e.target));
    }
    gold.push_back(truth);
    predicted.push_back(result.logits[0]);
  }
  const bool enough = gold.size() >= 2;
  scores.metrics = {{"pearson", enough ? or_zero(pearson(gold, predicted)) : 0},
                    {"spearman", enough ? or_zero(spearman(gold, predicted)) : 0}};
  return scores;
}

// Whether tags mark spans: B-LOC, I-LOC, O. (A few sentences may have none.)
bool marks_spans(const TagSentences& sentences) {
  for (const auto& tags : sentences) {
    for (const std::string& tag : tags) {
      if (tag == "O") continue;
      constexpr std::string_view kPlaces = "BIESLU";
      if (tag.size() < 3 || tag[1] != '-' || kPlaces.find(tag[0]) == std::string_view::npos)
        return false;
    }
  }
  return true;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The tags of an example's words. A word with a space inside is two words for the tagger: the first
// one's tag counts, as in training.
std::vector<std::string> tags_of_words(const std::vector<std::string>& words,
                                       const Tagged& tagged) {
  std::vector<std::string> tags;
  int64_t begin = 0;
  size_t at = 0;
  for (const std::string& word : words) {
    while (at < tagged.words.size() && tagged.words[at].span.begin < begin) ++at;
    const bool found = at < tagged.words.size() && tagged.words[at].span.begin == begin &&
                       tagged.words[at].label >= 0;
    tags.push_back(found ? tagged.words[at].name : "O");
    begin += static_cast<int64_t>(word.size()) + 1;
  }
  return tags;
}

ValidationScores tag_all(const ValidationRequest& request, const Model& model) {
  std::vector<TaskInput> inputs;
  for (const ValidationExample& e : request.examples) inputs.push_back({.text = joined(e.words)});
  const std::vector<Tagged> results =
      Tagger(model, task_options(request)).tag(inputs, {}, is_cancelled(request));
  ValidationScores scores;
  TagSentences gold, predicted;
  int64_t words = 0, correct = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const ValidationExample& e = request.examples[i];
    gold.push_back(e.tags);
    predicted.push_back(tags_of_words(e.words, results[i]));
    for (size_t w = 0; w < e.tags.size(); ++w) {
      ++words;
      correct += predicted.back()[w] == e.tags[w];
    }
    if (is_shown(i, request)) {
      scores.samples.push_back(
          sample_text(inputs[i].text, joined(predicted.back()), joined(e.tags)));
    }
  }
  scores.metrics["accuracy"] =
      words > 0 ? static_cast<double>(correct) / static_cast<double>(words) : 0;
  if (marks_spans(gold)) scores.metrics["f1"] = span_f1(gold, predicted).f1;
  return scores;
}

ValidationScores parse_all(const ValidationRequest& request, const Model& model) {
  std::vector<std::string> sentences, gold, trees;
  for (const ValidationExample& e : request.examples) {
    sentences.push_back(joined(e.words));
    gold.push_back(bracket_tree(tree_from_linear(e.target, e.words)));
  }
  ValidationScores scores;
  Parser parser(model, engine_options(request));
  for (Parsed& parsed : parser.parse(sentences, {}, is_cancelled(request))) {
    const size_t i = trees.size();
    trees.push_back(std::move(parsed.tree));
    if (is_shown(i, request)) {
      scores.samples.push_back(sample_text(sentences[i], trees[i], gold[i]));
    }
  }
  BracketOptions options;
  options.max_error = static_cast<int>(trees.size());  // a tree that does not match counts as wrong
  scores.metrics["f1"] = brackets(gold, trees, options).all.f1;
  return scores;
}

// A prefix of at most `bytes`, of whole characters.
std::string beginning(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = 0;
  while (end < text.size()) {
    const size_t next = end + decode_utf8(text, end).bytes;
    if (next > bytes) break;
    end = next;
  }
  return text.substr(0, end);
}

// Continuations of the beginnings of some examples.
ValidationScores continue_some(const ValidationRequest& request, const Model& model) {
  constexpr size_t kPromptBytes = 40;
  SearchOptions search = model.search_options();
  search.sample = true, search.temperature = 0.8, search.beam = 1, search.nbest = 1;
  search.max_length = 0, search.max_new_tokens = std::min<int64_t>(60, model.max_positions() / 2);
  std::vector<Request> requests;
  std::vector<std::string> prompts;
  for (const ValidationExample& e : request.examples) {
    if (!is_shown(prompts.size(), request)) break;
    if (e.source.empty()) continue;
    prompts.push_back(beginning(e.source, kPromptBytes));
    requests.push_back({.text = prompts.back(), .search = search, .stream = prompts.size()});
    requests.back().truncate = Truncation::right;
  }
  ValidationScores scores;
  if (requests.empty()) return scores;
  Engine engine(model, engine_options(request));
  engine.run(
      std::move(requests),
      [&](size_t i, Result&& result) {
        scores.samples.push_back(prompts[i] + "|" + result.best().text);
      },
      is_cancelled(request));
  return scores;
}

using Answers = ValidationScores (*)(const ValidationRequest&, const Model&);

Answers answers_of(const std::string& objective) {
  if (objective == "translation") return translate_all;
  if (objective == "classification") return classify_all;
  if (objective == "regression") return measure_all;
  if (objective == "tagging") return tag_all;
  if (objective == "parsing") return parse_all;
  if (objective == "causal_lm") return continue_some;
  return nullptr;
}

}  // namespace

Validator decoding_validator() {
  return [](const ValidationRequest& request) {
    const Answers answers = answers_of(request.objective);
    if (!answers || request.examples.empty()) return ValidationScores{};
    throw_if_cancelled(is_cancelled(request));
    return answers(request, Model::load(request.model));
  };
}

}  // namespace heed
