// Small models with a tokenizer, saved and loaded as a user's are. For *_test.cc only.
#pragma once

#include <string>
#include <vector>

#include "base/files/file_testing.h"
#include "heed/tasks.h"
#include "model/network.h"
#include "model/presets.h"

namespace heed {

class TaskTest : public FolderTest {
 protected:
  static constexpr int32_t kMaskId = 4;

  // BERT's shape, tiny, with weights from a seed; `family` may make a GPT of it.
  static ModelConfig tiny(Head head, int labels = 0) {
    ModelConfig config = preset("bert-tiny");
    config.vocabulary = 40, config.width = 32, config.ffn = 64, config.heads = 2;
    config.max_positions = 24;
    config.head = head, config.labels = labels;
    config.pooler = head == Head::classifier || head == Head::regression;
    return config;
  }

  // Writes the model and a vocabulary, then loads the folder.
  Model make(const ModelConfig& config) const {
    Network(config, /*seed=*/7).save(folder_);
    write("vocab.txt",
          "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\non\nmat\ndog\nrun\n##s\nfast\nshe\n"
          "lives\nin\nnew\nyork\n.\na\nis\n"
          "w22\nw23\nw24\nw25\nw26\nw27\nw28\nw29\nw30\n"
          "w31\nw32\nw33\nw34\nw35\nw36\nw37\nw38\nw39\n");
    return Model::load(folder_);
  }

  // Texts of 0 to 19 words, all different.
  static std::vector<TaskInput> many_texts(size_t count, const std::string& first = "") {
    const std::vector<std::string> words = {"the",   "cat", "sat", "on",   "mat", "dogs", "runs",
                                            "lives", "in",  "new", "york", "she", "is",   "."};
    std::vector<TaskInput> inputs;
    for (size_t i = 0; i < count; ++i) {
      std::string text = first;
      for (size_t w = 0; w < i * 7 % 20; ++w) text += words[(i * 5 + w * w) % words.size()] + " ";
      inputs.push_back({.text = std::move(text)});
    }
    return inputs;
  }
};

}  // namespace heed
