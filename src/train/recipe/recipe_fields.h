// The list of a recipe's keys. Included by recipe.cc.
#pragma once

#include "train/recipe/recipe.h"

namespace heed {

// Calls visit(key, field, help) for what describes one corpus.
template <class Corpus, class Visitor>
void describe_corpus(Corpus& c, const char* files_key, Visitor&& visit) {
  visit(files_key, c.files, "a text; source and target; or several texts (.gz and .zst too)");
  visit("format", c.format, "how examples lie in the files");
  visit("first_column", c.first_column, "column of the (source) text");
  visit("second_column", c.second_column, "column of the second or target text");
  visit("label_column", c.label_column, "column of the label");
  visit("unit", c.unit, "what one document of a plain text is");
  visit("tree_words", c.tree_words, "parsing: what stands for a word in a tree");
  visit("source_prefix", c.source_prefix, "put in front of every text");
  visit("target_prefix", c.target_prefix, "a piece that every target begins with");
  visit("weight", c.weight, "of this corpus among several");
}

template <class Options, class Visitor>
void describe_objective(Options& o, Visitor&& visit) {
  visit("kind", o.kind, "what the batches teach");
  visit("subword_dropout", o.subword_dropout,
        "translation: share of the pieces taken apart anew each epoch (BPE-dropout)");
  visit("block_tokens", o.block_tokens, "the longest sequence made of a document");
  visit("random_blocks", o.random_blocks, "causal_lm: blocks from random places of one stream");
  visit("masked_input", o.masked_input, "masked_lm: how documents become sequences");
  visit("mask_rate", o.mask_rate, "share of the tokens that are asked for");
  visit("mask_share", o.mask_share, "of those: become the mask token");
  visit("random_share", o.random_share, "of those: become another token");
  visit("whole_words", o.whole_words, "mask words, not tokens");
  visit("mask_copies", o.mask_copies, "so many fixed masks in turn; 0: new ones each epoch");
  visit("next_sentence_random", o.next_sentence_random, "sentence_pairs: how often at random");
  visit("short_sequences", o.short_sequences, "sentence_pairs: how often a shorter pair");
  visit("mean_span", o.mean_span, "span_corruption, denoising: tokens of a span");
  visit("permute_sentences", o.permute_sentences, "denoising: share that changes places");
  visit("decoder_start_id", o.decoder_start_id, "-1: the model's");
  visit("begin_id", o.begin_id, "-1: the tokenizer's");
  visit("end_id", o.end_id, "-1: the tokenizer's");
  visit("mask_id", o.mask_id, "-1: the tokenizer's");
}

// Calls visit(section, key, field, help) for every key but [model]'s overrides and data.corpora.
template <class AnyRecipe, class Visitor>
void describe_recipe(AnyRecipe& r, Visitor&& visit) {
  const auto in = [&visit](const char* section) {
    return [&visit, section](const char* key, auto& field, const char* help) {
      visit(section, key, field, help);
    };
  };

  const auto model = in("model");
  model("preset", r.model.preset, "a named configuration (`heed presets`)");
  model("from", r.model.from, "or a model folder to go on from");

  const auto data = in("data");
  data("folder", r.data.folder, "where relative files are looked for; empty: here");
  describe_corpus(r.data.corpus, "train", data);
  data("temperature", r.data.temperature, "several corpora: 1 by size, large evenly");
  data("min_tokens", r.data.filters.min_tokens, "shorter examples are left out");
  data("max_tokens", r.data.filters.max_tokens, "longer ones are left out, cut or divided");
  data("max_ratio", r.data.filters.max_ratio, "of one side's length to the other's; 0: any");
  data("duplicates", r.data.filters.duplicates, "leave out examples that were seen before");
  data("max_line_bytes", r.data.filters.max_line_bytes, "longer lines are left out unread");
  data("batch_tokens", r.data.batch_tokens, "most tokens of a batch, both sides");
  data("batch_sentences", r.data.batch_sentences, "most sequences of a batch; 0: any number");
  data("group_by_length", r.data.group_by_length, "examples of about one length make a batch");
  data("pool_examples", r.data.pool_examples, "among how many examples lengths are grouped");
  data("cache", r.data.cache, "folder of the tokenised corpora; empty: OUT/data");

  const auto tokenizer = in("tokenizer");
  tokenizer("from", r.tokenizer.from, "a model folder or a tokenizer file; empty: trained");
  tokenizer("type", r.tokenizer.type, "bpe, unigram, byte-bpe, roberta, wordpiece, char, byte");
  tokenizer("vocabulary", r.tokenizer.vocabulary, "how many pieces to learn");
  tokenizer("files", r.tokenizer.files, "what to learn them from; empty: the training files");
  tokenizer("lowercase", r.tokenizer.lowercase, "read all texts in lower case");
  tokenizer("special_tokens", r.tokenizer.special_tokens, "beyond the type's own");
  tokenizer("sentinels", r.tokenizer.sentinels, "so many <extra_id_…>, for span_corruption");

  const auto objective = in("objective");
  describe_objective(r.objective.options, objective);
  objective("label_smoothing", r.objective.loss.label_smoothing, "share of the wrong answers");
  objective("r_drop", r.objective.loss.r_drop,
            "read all twice, and weight of how far the answers are apart (R-Drop); 0: once");
  objective("teacher", r.objective.teacher, "a model folder to distil from");
  objective("temperature", r.objective.loss.temperature, "teacher: how soft its answers are made");
  objective("soft_weight", r.objective.loss.soft_weight, "teacher: weight of its answers");
  objective("label_weight", r.objective.loss.label_weight, "teacher: weight of the labels");
  objective("cosine_weight", r.objective.loss.cosine_weight,
            "teacher: weight of the hidden states' direction");

  const auto optimizer = in("optimizer");
  optimizer("kind", r.optimizer.kind, "adam or adamw");
  optimizer("learning_rate", r.optimizer.learning_rate, "the highest; noam: a factor");
  optimizer("beta1", r.optimizer.beta1, "decay of the mean of the gradients");
  optimizer("beta2", r.optimizer.beta2, "decay of the mean of their squares");
  optimizer("eps", r.optimizer.eps, "added to the root of the latter");
  optimizer("relative", r.optimizer.relative,
            "the rate times each matrix's size, as Adafactor has it");
  optimizer("weight_decay", r.optimizer.weight_decay, "not of norms and biases");
  optimizer("clip_norm", r.optimizer.clip_norm, "longest gradient; 0: any");
  optimizer("moments", r.optimizer.moments, "Adam's two: f32, or bf16 in half the memory");
  optimizer("ema_decay", r.optimizer.ema_decay, "of a running average of the weights; 0: none");

  const auto schedule = in("schedule");
  schedule("kind", r.schedule.kind, "how the learning rate goes on after the warm-up");
  schedule("warmup_steps", r.schedule.warmup_steps, "steps of rising learning rate");
  schedule("warmup_learning_rate", r.schedule.warmup_learning_rate, "where the rise starts");
  schedule("steps", r.schedule.steps, "where linear and cosine arrive; 0: at the last step");
  schedule("final_learning_rate", r.schedule.final_learning_rate, "what they arrive at");

  const auto train = in("train");
  train("out", r.train.out, "the folder to write (--out)");
  train("steps", r.train.steps, "updates of the weights; 0: as epochs says");
  train("epochs", r.train.epochs, "passes over the corpus; 0: as steps says");
  train("seed", r.train.seed, "of weights, shuffles, masks and dropout");
  train("accumulate", r.train.accumulate, "batches that make one step");
  train("log_every", r.train.log_every, "steps between two lines of the log");
  train("checkpoint_every", r.train.checkpoint_every, "steps between two checkpoints");
  train("keep_last", r.train.keep_last, "checkpoints to keep: the newest");
  train("keep_best", r.train.keep_best, "and those with the best metric");
  train("average", r.train.average, "the final model: the mean of the last or best checkpoints");
  train("average_count", r.train.average_count, "how many of them");
  train("recompute", r.train.recompute, "layers anew in backward, to save memory; auto: --memory");

  const auto validate = in("validate");
  validate("files", r.validate.files, "as data.train; empty: no validation");
  validate("share", r.validate.share, "or the last part of the training text, e.g. 0.1");
  validate("every", r.validate.every, "steps between two validations");
  validate("batches", r.validate.batches, "most batches of one; 0: all");
  validate("metric", r.validate.metric, "what best means: loss, accuracy, f1, bleu, pearson, …");
  validate("patience", r.validate.patience, "stop after so many without a better one; 0: never");
  validate("beam", r.validate.beam, "decoding: hypotheses");
  validate("length_penalty", r.validate.length_penalty, "decoding: sum log p / length^this");
  validate("tokenize", r.validate.tokenize, "BLEU: 13a, intl, zh, char; none: it is done");
  validate("max_sentences", r.validate.max_sentences, "decoding: most sentences; 0: all");
  validate("samples", r.validate.samples, "decoding: how many results to show");
}

}  // namespace heed
