// The list of a recipe's keys.
#pragma once

#include "train/recipe/recipe.h"

namespace heed {

// Calls visit(key, field, help) for the keys of one corpus.
template <class Corpus, class Visitor>
void describe_corpus(Corpus& c, const char* files_key, Visitor&& visit) {
  visit(files_key, c.files, "a text file; source and target; or several files (.gz and .zst too)");
  visit("format", c.format, "file format");
  visit("first_column", c.first_column, "column of the (source) text");
  visit("second_column", c.second_column, "column of the second or target text");
  visit("label_column", c.label_column, "column of the label");
  visit("unit", c.unit, "plain text: what one document is");
  visit("tree_words", c.tree_words, "parsing: what replaces the words in a linearized tree");
  visit("source_prefix", c.source_prefix, "prepended to every text");
  visit("target_prefix", c.target_prefix, "a token that every target begins with");
  visit("weight", c.weight, "sampling weight among several corpora");
}

template <class Options, class Visitor>
void describe_objective(Options& o, Visitor&& visit) {
  visit("kind", o.kind, "training objective");
  visit("subword_dropout", o.subword_dropout,
        "translation: BPE-dropout, the probability of skipping a merge; 0 disables it");
  visit("block_tokens", o.block_tokens, "maximum sequence length that documents are cut into");
  visit("random_blocks", o.random_blocks,
        "causal_lm: blocks at random offsets of one token stream");
  visit("masked_input", o.masked_input, "masked_lm: how sequences are made of documents");
  visit("mask_rate", o.mask_rate, "fraction of the tokens to predict");
  visit("mask_share", o.mask_share, "of those: fraction replaced by the mask token");
  visit("random_share", o.random_share, "of those: fraction replaced by a random token");
  visit("whole_words", o.whole_words, "mask whole words");
  visit("mask_copies", o.mask_copies, "number of static masks; 0: dynamic masking, new each epoch");
  visit("next_sentence_random", o.next_sentence_random,
        "sentence_pairs: fraction of random second sentences");
  visit("short_sequences", o.short_sequences, "sentence_pairs: fraction of shorter sequences");
  visit("mean_span", o.mean_span, "span_corruption, denoising: mean span length in tokens");
  visit("permute_sentences", o.permute_sentences,
        "denoising: fraction of the sentences that are permuted");
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
  model("from", r.model.from, "or a model folder to fine-tune");

  const auto data = in("data");
  data("folder", r.data.folder, "base folder of relative files; empty: the working directory");
  describe_corpus(r.data.corpus, "train", data);
  data("temperature", r.data.temperature,
       "sampling temperature over several corpora: 1 by size, large uniform");
  data("min_tokens", r.data.filters.min_tokens, "shorter examples are skipped");
  data("max_tokens", r.data.filters.max_tokens,
       "longer ones are skipped, truncated or split, by objective");
  data("max_ratio", r.data.filters.max_ratio,
       "maximum length ratio of the two sides; 0 disables the filter");
  data("duplicates", r.data.filters.duplicates, "skip duplicate examples");
  data("max_line_bytes", r.data.filters.max_line_bytes, "longer lines are skipped");
  data("batch_tokens", r.data.batch_tokens, "maximum tokens of a batch, both sides");
  data("batch_sentences", r.data.batch_sentences, "maximum sequences of a batch; 0: no limit");
  data("group_by_length", r.data.group_by_length, "batches of examples of similar length");
  data("pool_examples", r.data.pool_examples, "examples that are sorted by length together");
  data("cache", r.data.cache, "folder of the tokenized corpora; empty: OUT/data");

  const auto tokenizer = in("tokenizer");
  tokenizer("from", r.tokenizer.from, "a model folder or a tokenizer file; empty: train one");
  tokenizer("type", r.tokenizer.type, "bpe, unigram, byte-bpe, roberta, wordpiece, char, byte");
  tokenizer("vocabulary", r.tokenizer.vocabulary, "vocabulary size to train");
  tokenizer("files", r.tokenizer.files, "its training files; empty: data.train");
  tokenizer("lowercase", r.tokenizer.lowercase, "lowercase all text");
  tokenizer("special_tokens", r.tokenizer.special_tokens, "added to those of the type");
  tokenizer("sentinels", r.tokenizer.sentinels,
            "number of <extra_id_…> tokens, for span_corruption");
  tokenizer("user_symbols", r.tokenizer.user_symbols,
            "bpe, unigram: texts that are always one piece, such as placeholders");
  tokenizer("byte_fallback", r.tokenizer.byte_fallback,
            "bpe, unigram: unknown characters become pieces of their bytes");
  tokenizer("split_digits", r.tokenizer.split_digits, "bpe, unigram: each digit is a piece");

  const auto objective = in("objective");
  describe_objective(r.objective.options, objective);
  objective("label_smoothing", r.objective.loss.label_smoothing,
            "label smoothing: probability spread uniformly over all classes");
  objective("r_drop", r.objective.loss.r_drop,
            "R-Drop: weight of the KL divergence of two dropout passes; 0 disables it");
  objective("teacher", r.objective.teacher, "distillation: model folder of the teacher");
  objective("temperature", r.objective.loss.temperature, "distillation: softmax temperature");
  objective("soft_weight", r.objective.loss.soft_weight,
            "distillation: weight of the KL divergence from the teacher");
  objective("label_weight", r.objective.loss.label_weight,
            "distillation: weight of the labels' cross-entropy");
  objective("cosine_weight", r.objective.loss.cosine_weight,
            "distillation: weight of the hidden states' cosine distance");

  const auto optimizer = in("optimizer");
  optimizer("kind", r.optimizer.kind, "adam or adamw (decoupled weight decay)");
  optimizer("learning_rate", r.optimizer.learning_rate, "peak learning rate; noam: its factor");
  optimizer("beta1", r.optimizer.beta1, "decay of the first moment");
  optimizer("beta2", r.optimizer.beta2, "decay of the second moment");
  optimizer("eps", r.optimizer.eps, "added to the denominator");
  optimizer("relative", r.optimizer.relative,
            "relative step size (Adafactor): the rate times the RMS of each weight");
  optimizer("weight_decay", r.optimizer.weight_decay, "weight decay, except norms and biases");
  optimizer("clip_norm", r.optimizer.clip_norm, "maximum gradient norm; 0 disables clipping");
  optimizer("moments", r.optimizer.moments,
            "type of Adam's moments: f32, or bf16 for half the memory");
  optimizer("ema_decay", r.optimizer.ema_decay,
            "decay of an exponential moving average of the weights; 0: none");

  const auto schedule = in("schedule");
  schedule("kind", r.schedule.kind, "decay of the learning rate after the warm-up");
  schedule("warmup_steps", r.schedule.warmup_steps, "steps of linear warm-up");
  schedule("warmup_learning_rate", r.schedule.warmup_learning_rate,
           "learning rate at the start of the warm-up");
  schedule("steps", r.schedule.steps,
           "linear, cosine: step at which the decay ends; 0: train.steps");
  schedule("final_learning_rate", r.schedule.final_learning_rate,
           "linear, cosine: learning rate at the end");

  const auto train = in("train");
  train("out", r.train.out, "output folder (--out)");
  train("steps", r.train.steps, "optimizer steps; 0: train.epochs");
  train("epochs", r.train.epochs, "passes over the corpus; 0: train.steps");
  train("seed", r.train.seed, "random seed of initialization, shuffling, masking and dropout");
  train("accumulate", r.train.accumulate, "gradient accumulation: batches per step");
  train("log_every", r.train.log_every, "steps between log records");
  train("checkpoint_every", r.train.checkpoint_every, "steps between checkpoints");
  train("keep_last", r.train.keep_last, "newest checkpoints to keep");
  train("keep_best", r.train.keep_best, "best checkpoints to keep");
  train("average", r.train.average, "final model: mean of the last or of the best checkpoints");
  train("average_count", r.train.average_count, "number of checkpoints to average");
  train("recompute", r.train.recompute,
        "activation checkpointing: recompute layers in backward; auto: if --memory needs it");

  const auto validate = in("validate");
  validate("files", r.validate.files, "validation files, as data.train; empty: no validation");
  validate("share", r.validate.share, "or the last fraction of the training text, e.g. 0.1");
  validate("every", r.validate.every, "steps between validations");
  validate("batches", r.validate.batches, "maximum batches of a validation; 0: all");
  validate("metric", r.validate.metric,
           "metric of the best checkpoint: loss, accuracy, f1, bleu, pearson, …");
  validate("patience", r.validate.patience,
           "early stopping: validations without improvement; 0 disables it");
  validate("beam", r.validate.beam, "decoding: beam size");
  validate("length_penalty", r.validate.length_penalty,
           "decoding: exponent of the length normalization");
  validate("tokenize", r.validate.tokenize,
           "BLEU tokenizer: 13a, intl, zh, char; none: already tokenized");
  validate("max_sentences", r.validate.max_sentences, "decoding: maximum sentences; 0: all");
  validate("samples", r.validate.samples, "decoding: number of samples to show");
}

}  // namespace heed
