// Any bytes as trees: bracketed, as model output, and as EVALB's trees and parameters.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "expect_ordinary.h"
#include "fuzz_folder.h"
#include "heed/metrics.h"
#include "text/trees/tree.h"

namespace {

using namespace heed;
using fuzz::expect_ordinary;

void read_tree(std::string_view text) {
  const Tree tree = parse_tree(text);
  if (!(parse_tree(bracket_tree(tree)) == tree)) std::abort();
  const auto clean = clean_tree(tree);
  if (!clean) return;
  const std::vector<std::string> words = words_of(*clean);
  for (const LinearWords form : {LinearWords::xx, LinearWords::tags, LinearWords::words}) {
    if (words_of(tree_from_linear(linear_tree(*clean, form), words)) != words) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFolder folder;
  const std::string text(reinterpret_cast<const char*>(data), size);
  expect_ordinary([&] { read_tree(text); });
  // Any model output gives a tree over the words.
  const std::vector<std::string> words{"a", "dog", "runs"};
  if (words_of(tree_from_linear(text, words)) != words) std::abort();
  const auto parts = fuzz::split_at_nul(text);
  const std::string trees(parts.first);
  const std::string gold = folder.write("gold", trees);
  const std::string prm = folder.write("sample.prm", parts.second);
  expect_ordinary([&] {
    const BracketOptions options = read_bracket_options(prm);
    std::vector<std::string> tests = read_trees(gold);
    brackets(tests, tests, options).text();
    brackets({"(S (NP (DT a) (NN dog)) (VP (VB runs)))"}, {trees}, options);
  });
  return 0;
}
