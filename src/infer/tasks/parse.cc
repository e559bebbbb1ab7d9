#include "heed/tasks.h"

#include <sstream>

#include "heed/error.h"
#include "text/trees/tree.h"

namespace heed {

namespace {

Model checked(Model model) {
  if (!model.has_source() || !model.can_generate()) {
    throw Error(ErrorCode::unsupported,
                "parsing takes an encoder-decoder model with a language_model head; this one is " +
                    model.family() + " with head = " + model.head(),
                "train one with the parsing objective (heed train)");
  }
  return model;
}

// The Treebank's escapes of brackets in words.
std::string without_brackets(const std::string& word) {
  std::string text;
  for (const char c : word) {
    if (c == '(') {
      text += "-LRB-";
    } else if (c == ')') {
      text += "-RRB-";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

Parser::Parser(Model model, const EngineOptions& options)
    : engine_(std::make_shared<Engine>(checked(std::move(model)), options)) {}

Parser::Parser(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {
  checked(engine_->model());
}

std::vector<Parsed> Parser::parse(const std::vector<std::string>& sentences,
                                  const std::optional<SearchOptions>& search,
                                  const std::function<bool()>& is_cancelled) {
  std::vector<Parsed> results(sentences.size());
  std::vector<Request> requests;
  std::vector<size_t> owners;  // the sentence of each request
  std::vector<std::vector<std::string>> words;
  for (size_t i = 0; i < sentences.size(); ++i) {
    std::istringstream text(sentences[i]);
    std::vector<std::string>& of_sentence = words.emplace_back();
    std::string joined;  // by single spaces, as in training
    for (std::string word; text >> word;) {
      of_sentence.push_back(without_brackets(word));
      joined += (joined.empty() ? "" : " ") + of_sentence.back();
    }
    if (of_sentence.empty()) continue;
    requests.push_back(
        {.text = std::move(joined), .search = search, .truncate = Truncation::right});
    owners.push_back(i);
  }
  const auto on_result = [&](size_t r, Result&& result) {
    Parsed& parsed = results[owners[r]];
    const Answer& best = result.best();
    parsed.tree = bracket_tree(tree_from_linear(best.text, words[owners[r]]));
    parsed.linear = best.text;
    parsed.score = best.score;
    parsed.truncated = result.truncated;
  };
  engine_->run(std::move(requests), on_result, is_cancelled);
  return results;
}

}  // namespace heed
