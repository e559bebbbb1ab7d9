// Checkpoints: folders that are complete or absent, from which training resumes bit for bit.
//
//   OUT/checkpoints/step-1000/
//     config.json, model.safetensors, tokenizer files   an ordinary model folder
//     training.safetensors                weights and optimizer state
//     state.json                          step, position in the corpus, best metric, …
//
// A checkpoint is written as step-1000.partial, flushed to disk, and renamed. A killed process leaves
// at most a .partial, which the next run removes; a full disk throws, and earlier checkpoints stay.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/stream.h"
#include "model/network.h"
#include "train/optimizer/optimizer.h"

namespace heed {

// The state of a training beside weights and moments. Random numbers depend on seed and step alone.
struct TrainingState {
  int64_t step = 0;
  uint64_t seed = 0;
  Cursor cursor{};
  int64_t tokens = 0;  // rows trained on
  double seconds = 0;  // spent in steps
  double first_loss = 0;
  // Since the last log record.
  double interval_loss = 0;
  int64_t interval_steps = 0;
  // Validation.
  std::optional<double> metric{};  // of this checkpoint
  std::optional<double> best_metric{};
  int64_t best_step = 0;
  int64_t without_better = 0;
  std::string settings{};  // JSON: the resolved recipe, to note changes
  // False if only a stop caused it: it is for resuming, and must not change which checkpoints a
  // training without the stop would keep.
  bool scheduled = true;

  bool operator==(const TrainingState&) const = default;
};

std::string to_json(const TrainingState& state);
// Throws corrupt_file.
TrainingState state_from_json(const std::string& json, const std::string& where);

struct Checkpoint {
  std::string folder;
  TrainingState state;
};

class Checkpoints {
 public:
  // `folder` is OUT/checkpoints, made with the first checkpoint. OUT must exist.
  explicit Checkpoints(std::string folder) : folder_(std::move(folder)) {}

  // Complete ones by step, the newest last. Throws corrupt_file if one cannot be read.
  std::vector<Checkpoint> list() const;

  // Writes the model files and returns their folder until commit(), for validation.
  // `save_beside_model` adds the tokenizer to that folder.
  std::string begin(const Network& network, int64_t step,
                    const std::function<void(const std::string&)>& save_beside_model);
  // Adds the training state, and gives the folder its final name.
  void commit(Network& network, Optimizer& optimizer, const TrainingState& state);

  // Removes what begin() wrote; commit() does so if it throws.
  void abandon(int64_t step) const;
  // Removes what killed processes left. No other process may write here.
  void abandon_all() const;

  // Loads weights and optimizer state. Throws corrupt_file, or invalid_argument if it belongs to
  // another model.
  static void load(const Checkpoint& checkpoint, Network& network, Optimizer& optimizer);

  struct Keep {
    int last = 1, best = 0;
    bool lower_is_better = true;
  };
  // Removes all others. An unscheduled one is not counted, and stays only as the newest.
  void prune(const Keep& keep) const;
  static std::vector<Checkpoint> best(std::vector<Checkpoint> list, size_t count,
                                      bool lower_is_better);

 private:
  std::string path(int64_t step, const char* suffix = "") const;
  std::string folder_;
};

// The mean of several checkpoints' weights (of their moving averages, if they have one).
void load_average(const std::vector<Checkpoint>& checkpoints, Parameters& parameters);

// Flushes a folder's entries to disk.
void sync_folder(const std::string& folder);

}  // namespace heed
