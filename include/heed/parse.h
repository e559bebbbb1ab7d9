// Constituency trees of sentences, from an encoder-decoder model that writes them.
//
//   heed::Parser parser(heed::Model::load("models/parser"));
//   parser.parse({"John has a dog ."})[0].tree;   // "(S (NP (NNP John)) (VP (VBZ has) …"
//
// The model writes a tree in its linear form (Vinyals et al. 2015), as `heed train` with the
// parsing objective teaches it; tags are XX if it was taught none. Whatever it writes becomes
// a tree over exactly the words of the sentence: what it forgot is added and what is too much is
// left out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/engine.h"

namespace heed {

struct Parsed {
  std::string tree{};      // in brackets, on one line; empty when there were no words
  std::string linear{};    // as the model wrote it
  double score = 0;        // of the search
  bool truncated = false;  // the sentence was longer than the model reads
};

class Parser {
 public:
  // Throws unsupported for other models.
  explicit Parser(Model model, const EngineOptions& options = {});
  // With an engine that others use too.
  explicit Parser(std::shared_ptr<Engine> engine);

  // Sentences are words with white space between; brackets become -LRB- and -RRB-, as in the Penn
  // Treebank. `search`: nothing takes the model's own.
  // `is_cancelled` is as Engine::run() takes it.
  std::vector<Parsed> parse(const std::vector<std::string>& sentences,
                            const std::optional<SearchOptions>& search = {},
                            const std::function<bool()>& is_cancelled = {});

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace heed
