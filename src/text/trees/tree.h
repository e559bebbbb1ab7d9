// Constituency trees: Penn Treebank brackets, and the linear form that a model generates.
//
//   Tree tree = parse_tree("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))");
//   linear_tree(tree)     == "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"
//   tree_from_linear(linear_tree(tree), words_of(tree))     // the tree again, its tags as XX
//   linear_tree(tree, LinearWords::tags)  == "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
//   linear_tree(tree, LinearWords::words) == "(S (NP John )NP (VP has (NP a dog )NP )VP . )S"
//
// The linear form is that of Vinyals et al. 2015 (Grammar as a Foreign Language): tags are all XX,
// words are omitted because the input has them, and a closing bracket carries its label. A model must
// then count words; generating the words themselves is copying, which needs far fewer trees to learn.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/text_file.h"
#include "heed/enum_names.h"

namespace heed {

struct Tree {
  std::string label;             // of a phrase, or of a word (its tag)
  std::string word{};            // only at a leaf
  std::vector<Tree> children{};  // none at a leaf

  bool is_leaf() const { return children.empty(); }
  bool operator==(const Tree&) const = default;
};

// One bracketed tree. Throws corrupt_file when the brackets do not match, or when they are nested
// deeper than any sentence is (kMaxTreeDepth).
inline constexpr int kMaxTreeDepth = 500;
Tree parse_tree(std::string_view text);

// Reads the text of the next tree, which may span several lines; false at the end of the file. Text
// after the last closing bracket of a line is part of the tree's text. An unfinished tree at the end
// is returned unchanged: parse_tree() rejects it.
bool next_tree_text(LineReader& reader, std::string& text);

// As parsers are trained and scored: without traces (-NONE-) and the phrases they leave empty,
// without function tags and indices (NP-SBJ-1 becomes NP), without an unnamed or TOP/ROOT root.
// None when no word is left.
std::optional<Tree> clean_tree(const Tree& tree);

std::string bracket_tree(const Tree& tree);  // on one line
// How a linear form denotes a word.
enum class LinearWords { xx, tags, words };

template <>
inline constexpr std::array kEnumNames<LinearWords>{
    EnumName<LinearWords>{LinearWords::xx, "xx"}, EnumName<LinearWords>{LinearWords::tags, "tags"},
    EnumName<LinearWords>{LinearWords::words, "words"}};

std::string linear_tree(const Tree& tree, LinearWords words = LinearWords::xx);
std::vector<std::string> words_of(const Tree& tree);
std::vector<std::string> tags_of(const Tree& tree);

// The tree of a linear form over these words, for any model output: unclosed brackets are closed at
// the end, unmatched closing ones are ignored, surplus words and empty phrases are dropped, and
// several roots get a common one. A skipped word is inserted before the next copied one, or at the
// end. A word's tag is its symbol, or XX where the symbols are words. Words contain no brackets.
Tree tree_from_linear(std::string_view linear, std::span<const std::string> words);

}  // namespace heed
