// Constituency trees: Penn Treebank brackets, and the linear form that a model writes.
//
//   Tree tree = parse_tree("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))");
//   linear_tree(tree)     == "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"
//   tree_from_linear(linear_tree(tree), words_of(tree))     // the tree again, its tags as XX
//   linear_tree(tree, LinearWords::tags)  == "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
//   linear_tree(tree, LinearWords::words) == "(S (NP John )NP (VP has (NP a dog )NP )VP . )S"
//
// The linear form is that of Vinyals et al. 2015 (Grammar as a Foreign Language): tags are all XX,
// words are left out because the input has them, and a closing bracket carries its label. A model
// must count, then, to know which word it is at. Where it writes the words themselves it copies,
// which needs far fewer trees to learn.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/text_file.h"

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

// The text of the next tree of a file, over as many lines as its brackets take; false at the end.
// What follows the last bracket that closes is left alone: one tree ends where its line does.
// An unfinished tree at the end of the file is given as it is: parse_tree() refuses it.
bool next_tree_text(LineReader& reader, std::string& text);

// As parsers are trained and scored: without traces (-NONE-) and the phrases they leave empty,
// without function tags and indices (NP-SBJ-1 becomes NP), without an unnamed or TOP/ROOT top.
// Nothing when no word is left.
std::optional<Tree> clean_tree(const Tree& tree);

std::string bracket_tree(const Tree& tree);  // on one line
// What stands for a word in a linear form.
enum class LinearWords { xx, tags, words };

template <>
inline constexpr std::array kEnumNames<LinearWords>{
    EnumName<LinearWords>{LinearWords::xx, "xx"}, EnumName<LinearWords>{LinearWords::tags, "tags"},
    EnumName<LinearWords>{LinearWords::words, "words"}};

std::string linear_tree(const Tree& tree, LinearWords words = LinearWords::xx);
std::vector<std::string> words_of(const Tree& tree);
std::vector<std::string> tags_of(const Tree& tree);

// The tree that a linear form means for these words, whatever a model wrote: brackets that never
// close are closed at the end, closing ones that fit nothing are passed over, surplus words and
// empty phrases vanish, and two tops get one above. A word that was forgotten stands before the
// next one that was copied, or at the end. A word's tag is what stands for it,
// or XX where words stand for themselves. Words have no brackets.
Tree tree_from_linear(std::string_view linear, std::span<const std::string> words);

}  // namespace heed
