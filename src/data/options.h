// The [data] and [objective] settings of a recipe: corpora, filters, objective, batches.
//
// Plain structs with defaults; stream.h makes batches from them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/enum_names.h"
#include "text/trees/tree.h"

namespace heed {

// The training objective.
enum class Objective {
  translation,      // encoder-decoder: text to text, teacher-forced
  causal_lm,        // decoder-only: next-token prediction
  masked_lm,        // encoder-only: masked tokens (BERT, RoBERTa)
  span_corruption,  // encoder-decoder: T5's span corruption
  denoising,        // encoder-decoder: BART's text infilling and sentence permutation
  classification,   // one class for a text or a pair
  regression,       // one number for a text or a pair
  tagging,          // one class per word
  parsing,          // encoder-decoder: a sentence to its linearized tree
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

// The file formats of a corpus. Files may be compressed (.gz, .zst).
enum class CorpusFormat {
  automatic,  // by the file names: .tsv, .csv, .jsonl, .conllu, .conll, .mrg; two files are parallel,
              // other single files are text (labelled, for classification)
  text,       // plain text; `unit` defines a document
  parallel,  // two files, line by line
  tsv,       // tab-separated columns; further columns are ignored
  csv,       // comma-separated columns, quoted as in RFC 4180
  jsonl,     // one JSON object per line
  labelled,  // the label, a space, the text
  conll,     // one word per line with its columns, sentences separated by blank lines; also CoNLL-U
  brackets,  // Penn Treebank: (S (NP …) …)
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

// What a document of a plain text is.
enum class TextUnit {
  line,       // each line
  paragraph,  // lines up to a blank one, each a sentence; for BERT's sentence pairs
  file,       // a whole file, including newlines; for character models
};

template <>
inline constexpr std::array kEnumNames<TextUnit>{
    EnumName<TextUnit>{TextUnit::line, "line"},
    EnumName<TextUnit>{TextUnit::paragraph, "paragraph"},
    EnumName<TextUnit>{TextUnit::file, "file"}};

struct CorpusOptions {
  std::vector<std::string> files;  // one; source and target; or several texts
  CorpusFormat format = CorpusFormat::automatic;
  // Columns of TSV, CSV and CoNLL by number from 1; of JSONL, or CSV with a header, by name.
  // Defaults: 1 and 2; "source" and "target", or "text". The label: the column after the texts,
  // "label" in JSONL, column 4 (UPOS) in CoNLL-U, the last in CoNLL. Words of CoNLL-U: column 2.
  std::string first_column{}, second_column{}, label_column{};
  TextUnit unit = TextUnit::line;
  LinearWords tree_words = LinearWords::xx;  // brackets: how a linear tree denotes words
  // Prepended to every source text, as for T5 ("translate English to German: ") and Marian
  // (">>de<< ").
  std::string source_prefix{};
  // One token that every target begins with, as for M2M100 ("__de__").
  std::string target_prefix{};
  double weight = 1;  // sampling weight among several corpora

  bool operator==(const CorpusOptions&) const = default;
};

// Which examples are skipped. CorpusReport has the counts.
struct FilterOptions {
  int64_t min_tokens = 1;
  // Including special tokens. Longer translations and trees are skipped; texts to classify or tag are
  // truncated; documents are split (see ObjectiveOptions::block_tokens).
  int64_t max_tokens = 1024;
  double max_ratio = 0;              // of the longer side's tokens to the shorter's; 0: no limit
  bool duplicates = false;           // skip duplicates (16 bytes of memory per example)
  int64_t max_line_bytes = 1 << 20;  // longer lines are skipped before tokenization

  bool operator==(const FilterOptions&) const = default;
};

// How documents become sequences of a masked language model.
enum class MaskedInput {
  documents,       // each document separately, split at block_tokens
  full_sentences,  // RoBERTa: consecutive sentences, across documents, up to block_tokens
  sentence_pairs,  // BERT: two texts, with next sentence prediction
};

template <>
inline constexpr std::array kEnumNames<MaskedInput>{
    EnumName<MaskedInput>{MaskedInput::documents, "documents"},
    EnumName<MaskedInput>{MaskedInput::full_sentences, "full_sentences"},
    EnumName<MaskedInput>{MaskedInput::sentence_pairs, "sentence_pairs"}};

struct ObjectiveOptions {
  Objective kind = Objective::translation;

  // translation: BPE-dropout, the probability that a token is split into the two it was merged from,
  // drawn in every epoch (piece_splits.h). A side that would exceed max_tokens is not split. 0: off.
  double subword_dropout = 0;

  // Maximum sequence length of a document's pieces: causal_lm, masked_lm, denoising. For
  // span_corruption, the maximum input length after corruption.
  int64_t block_tokens = 512;
  // causal_lm: blocks of exactly block_tokens at random offsets of the concatenated corpus (as in
  // nanoGPT), instead of separate documents.
  bool random_blocks = false;

  MaskedInput masked_input = MaskedInput::documents;
  double mask_rate = 0.15;    // masked_lm, span_corruption, denoising (BART: 0.3)
  double mask_share = 0.8;    // of the selected tokens: replaced by the mask token …
  double random_share = 0.1;  // … or by a random token; the others are unchanged but predicted
  bool whole_words = false;   // whole-word masking
  // 0: dynamic masking, new in every epoch. n: n fixed masks in turn (BERT: 10; 1 is static masking).
  int64_t mask_copies = 0;
  double next_sentence_random = 0.5;  // sentence_pairs: probability of a random second text
  double short_sequences = 0.1;       // sentence_pairs: probability of a shorter pair

  double mean_span = 3;          // span_corruption, denoising (Poisson's λ)
  double permute_sentences = 1;  // denoising: the fraction of sentences that are permuted

  // -1: the tokenizer's ids. An encoder-decoder model's config has its decoder_start_id (T5 and
  // Marian: the padding id, which is the default).
  int32_t decoder_start_id = -1;
  int32_t begin_id = -1, end_id = -1, mask_id = -1;

  bool operator==(const ObjectiveOptions&) const = default;
};

struct DataProgress {
  std::string_view file;  // being read
  int64_t examples = 0;   // read so far
  double fraction = 0;    // of the corpus in bytes
};

struct StreamOptions {
  std::vector<CorpusOptions> corpora;
  FilterOptions filters{};
  ObjectiveOptions objective{};

  int64_t batch_tokens = 4096;  // maximum rows of a batch, both sides; a longer example is alone
  int64_t batch_sentences = 0;  // maximum sequences of a batch; 0: no limit
  bool group_by_length = true;
  int64_t pool_examples = 1 << 16;  // shuffled examples per pool, within which lengths are bucketed
  bool shuffle = true;              // false: corpus order, for validation
  uint64_t seed = 1;
  // Several corpora are sampled in proportion to weight * size^(1 / temperature): 1 is by size, large
  // is uniform (mT5 uses about 3.3).
  double temperature = 1;
  int rank = 0, ranks = 1;  // data parallel: each rank takes every ranks-th batch

  // The classes by number. Empty: those of the corpora, sorted; pass BatchStream::labels() to the
  // validation stream.
  std::vector<std::string> labels{};

  // The folder of token stores; empty: in memory only.
  std::string cache_folder{};
  int threads = 0;  // for tokenization; 0: all. The result does not depend on it.
  std::function<void(const DataProgress&)> progress{};
};

}  // namespace heed
