// What to read and what to make of it: the [data] and [objective] of a recipe.
//
// Plain structs with defaults; stream.h turns them into batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "text/trees/tree.h"

namespace heed {

// What the batches teach.
enum class Objective {
  translation,      // encoder-decoder: text to text, teacher-forced
  causal_lm,        // decoder-only: each token from those before it
  masked_lm,        // encoder-only: hidden tokens (BERT, RoBERTa)
  span_corruption,  // encoder-decoder: T5's missing spans
  denoising,        // encoder-decoder: BART's infilling and permuted sentences
  classification,   // one class for a text or a pair
  regression,       // one number for a text or a pair
  tagging,          // one class for each word
  parsing,          // encoder-decoder: a sentence to its linearised tree
};

template <>
inline constexpr std::array kEnumNames<Objective>{
    EnumName<Objective>{Objective::translation, "translation"},
    EnumName<Objective>{Objective::causal_lm, "causal_lm"},
    EnumName<Objective>{Objective::masked_lm, "masked_lm"},
    EnumName<Objective>{Objective::span_corruption, "span_corruption"},
    EnumName<Objective>{Objective::denoising, "denoising"},
    EnumName<Objective>{Objective::classification, "classification"},
    EnumName<Objective>{Objective::regression, "regression"},
    EnumName<Objective>{Objective::tagging, "tagging"},
    EnumName<Objective>{Objective::parsing, "parsing"}};

// How examples lie in the files. Any of them may be compressed (.gz, .zst).
enum class CorpusFormat {
  automatic,  // told by the names of the files: .tsv, .csv, .jsonl, .conllu, .conll, .mrg; two
              // files are parallel, and other single ones text (labelled, for classification)
  text,       // plain; `unit` says what one document is
  parallel,   // two files, line by line
  tsv,        // columns between tabs; more columns than are asked for are left aside
  csv,        // columns between commas, quoted as in RFC 4180
  jsonl,      // one JSON object a line
  labelled,   // the label, a space, the text
  conll,      // a word a line with its columns, a blank line after each sentence (CoNLL-U too)
  brackets,   // Penn Treebank: (S (NP …) …)
};

template <>
inline constexpr std::array kEnumNames<CorpusFormat>{
    EnumName<CorpusFormat>{CorpusFormat::automatic, "automatic"},
    EnumName<CorpusFormat>{CorpusFormat::text, "text"},
    EnumName<CorpusFormat>{CorpusFormat::parallel, "parallel"},
    EnumName<CorpusFormat>{CorpusFormat::tsv, "tsv"},
    EnumName<CorpusFormat>{CorpusFormat::csv, "csv"},
    EnumName<CorpusFormat>{CorpusFormat::jsonl, "jsonl"},
    EnumName<CorpusFormat>{CorpusFormat::labelled, "labelled"},
    EnumName<CorpusFormat>{CorpusFormat::conll, "conll"},
    EnumName<CorpusFormat>{CorpusFormat::brackets, "brackets"}};

// What one document of a plain text is.
enum class TextUnit {
  line,       // each line
  paragraph,  // lines up to a blank one, each a sentence (what BERT's sentence pairs want)
  file,       // a whole file, newlines and all (what a character model wants)
};

template <>
inline constexpr std::array kEnumNames<TextUnit>{
    EnumName<TextUnit>{TextUnit::line, "line"},
    EnumName<TextUnit>{TextUnit::paragraph, "paragraph"},
    EnumName<TextUnit>{TextUnit::file, "file"}};

struct CorpusOptions {
  std::vector<std::string> files;  // one; source and target; or several texts, read in turn
  CorpusFormat format = CorpusFormat::automatic;
  // Columns of TSV, CSV and CoNLL by number from 1, of JSONL (and a CSV with a header) by name.
  // Empty: 1 and 2; "source" and "target", or "text"; the label's is the last one that is needed,
  // "label" in JSONL, and in CoNLL-U column 4 (UPOS), in CoNLL the last. Words of CoNLL-U: 2.
  std::string first_column{}, second_column{}, label_column{};
  TextUnit unit = TextUnit::line;
  LinearWords tree_words = LinearWords::xx;  // brackets: what a word is in a linear tree
  // Put in front of every text, as T5 does ("translate English to German: ") and Marian (">>de<<
  // ").
  std::string source_prefix{};
  // One piece of the vocabulary that every target begins with, as M2M100 does ("__de__").
  std::string target_prefix{};
  double weight = 1;  // of this corpus among several

  bool operator==(const CorpusOptions&) const = default;
};

// What is left out of a corpus. Nothing is left out silently: CorpusReport has the counts.
struct FilterOptions {
  int64_t min_tokens = 1;
  // Special tokens included. Longer translations and trees are left out; texts to classify or tag
  // are cut; documents are divided (see ObjectiveOptions::block_tokens).
  int64_t max_tokens = 1024;
  double max_ratio = 0;              // of the longer side's tokens to the shorter's; 0: any
  bool duplicates = false;           // leave out examples that were seen before (16 bytes each)
  int64_t max_line_bytes = 1 << 20;  // a longer line is left out before it is looked at

  bool operator==(const FilterOptions&) const = default;
};

// How documents become sequences of a masked language model.
enum class MaskedInput {
  documents,       // each document by itself, cut at block_tokens
  full_sentences,  // RoBERTa: sentences in a row, also of neighbouring documents, up to
                   // block_tokens
  sentence_pairs,  // BERT: two texts, and whether the second follows the first
};

template <>
inline constexpr std::array kEnumNames<MaskedInput>{
    EnumName<MaskedInput>{MaskedInput::documents, "documents"},
    EnumName<MaskedInput>{MaskedInput::full_sentences, "full_sentences"},
    EnumName<MaskedInput>{MaskedInput::sentence_pairs, "sentence_pairs"}};

struct ObjectiveOptions {
  Objective kind = Objective::translation;

  // translation: how often a piece is taken apart into the two it was merged of, anew in each epoch
  // (BPE-dropout; piece_splits.h). A side that would become longer than max_tokens stays as it is.
  // 0: texts as the tokenizer has them.
  double subword_dropout = 0;

  // The longest sequence that is made of a document: causal_lm, masked_lm, denoising. For
  // span_corruption the longest input after its spans were taken out.
  int64_t block_tokens = 512;
  // causal_lm: blocks of exactly block_tokens from random places of the whole corpus as one stream
  // (nanoGPT's way), rather than documents one by one.
  bool random_blocks = false;

  MaskedInput masked_input = MaskedInput::documents;
  double mask_rate = 0.15;    // masked_lm and span_corruption; BART's 0.3 is a choice to make
  double mask_share = 0.8;    // of the chosen tokens: become the mask token …
  double random_share = 0.1;  // … or another token; the others stay and are asked for too
  bool whole_words = false;   // choose words, not tokens
  // 0: every epoch chooses anew. n: n fixed choices in turn (BERT had 10; 1 is "static masking").
  int64_t mask_copies = 0;
  double next_sentence_random = 0.5;  // sentence_pairs: how often the second text is a random one
  double short_sequences = 0.1;       // sentence_pairs: how often a shorter pair is made

  double mean_span = 3;          // span_corruption, denoising (Poisson's λ)
  double permute_sentences = 1;  // denoising: the share of sentences that change places

  // Ids with a role; -1: the tokenizer's own. An encoder-decoder model's config knows its
  // decoder_start_id (T5 and Marian: the padding's id, which is what -1 takes).
  int32_t decoder_start_id = -1;
  int32_t begin_id = -1, end_id = -1, mask_id = -1;

  bool operator==(const ObjectiveOptions&) const = default;
};

struct DataProgress {
  std::string_view file;  // being read
  int64_t examples = 0;   // so far
  double fraction = 0;    // of the corpus' bytes
};

struct StreamOptions {
  std::vector<CorpusOptions> corpora;
  FilterOptions filters{};
  ObjectiveOptions objective{};

  int64_t batch_tokens = 4096;  // most rows of a batch, both sides; a longer example comes alone
  int64_t batch_sentences = 0;  // most sequences of a batch; 0: any number
  bool group_by_length = true;
  int64_t pool_examples = 1 << 16;  // among how many shuffled examples lengths are grouped
  bool shuffle = true;              // false: in the corpus' order, which is how to validate
  uint64_t seed = 1;
  // Several corpora: chosen by weight * size^(1 / temperature): 1 is by size, large is evenly
  // (mT5 uses about 3.3).
  double temperature = 1;
  int rank = 0, ranks = 1;  // of those that share the batches: rank takes every ranks-th batch

  // The classes, in the order of their numbers. Empty: those that the corpora hold, sorted; ask
  // BatchStream::labels() and give them to the stream that validates.
  std::vector<std::string> labels{};

  // Where tokenised corpora are kept for the next start; empty: in memory, for this one only.
  std::string cache_folder{};
  int threads = 0;  // that tokenise; 0: all. They change nothing but the time.
  std::function<void(const DataProgress&)> progress{};
};

}  // namespace heed
