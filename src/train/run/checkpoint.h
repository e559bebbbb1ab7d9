// Checkpoints: folders that are there whole or not at all, from which training goes on exactly.
//
//   OUT/checkpoints/step-1000/
//     config.json, model.safetensors, tokenizer files   a model folder like any other
//     training.safetensors                weights and the optimizer's slots, as trained
//     state.json                          step, place in the corpus, best metric, …
//
// A checkpoint is written as step-1000.partial, flushed to the disk, and renamed. A killed process
// leaves at most a .partial, which the next run removes; a full disk throws, and what was there
// before stays.
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

// What training knows beside its numbers. Randomness needs no more than seed and step.
struct TrainingState {
  int64_t step = 0;
  uint64_t seed = 0;
  Cursor cursor{};
  int64_t tokens = 0;  // rows trained on
  double seconds = 0;  // spent in steps
  double first_loss = 0;
  // Since the last line of the log.
  double interval_loss = 0;
  int64_t interval_steps = 0;
  // Validation.
  std::optional<double> metric{};  // this checkpoint's
  std::optional<double> best_metric{};
  int64_t best_step = 0;
  int64_t without_better = 0;
  std::string settings{};  // JSON: the resolved recipe, to tell what has changed
  // False where a stop made it, at a step that has no checkpoint otherwise: a place to go on from,
  // which must not make a difference to what a training that was never stopped would keep.
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
  // `folder` is OUT/checkpoints; it is made when the first one is written, in an OUT that is there.
  explicit Checkpoints(std::string folder) : folder_(std::move(folder)) {}

  // Complete ones by step, the newest last. Throws corrupt_file when one cannot be read.
  std::vector<Checkpoint> list() const;

  // Writes the model part and returns the folder it is in until commit(), so that the very
  // checkpoint can be validated. `save_beside_model` is given that folder, for the tokenizer.
  std::string begin(const Network& network, int64_t step,
                    const std::function<void(const std::string&)>& save_beside_model);
  // Adds what training needs to go on, and gives the folder its name.
  void commit(Network& network, Optimizer& optimizer, const TrainingState& state);

  // Takes back what begin() wrote; commit() does so when it throws.
  void abandon(int64_t step) const;
  // Removes what killed processes left. For one who alone writes here.
  void abandon_all() const;

  // Fills weights, slots and the state of the step. Throws corrupt_file or invalid_argument when
  // it belongs to another model.
  static void load(const Checkpoint& checkpoint, Network& network, Optimizer& optimizer);

  struct Keep {
    int last = 1, best = 0;
    bool lower_is_better = true;
  };
  // Removes all others. One that is not scheduled counts for nothing, and stays only as the newest.
  void prune(const Keep& keep) const;
  static std::vector<Checkpoint> best(std::vector<Checkpoint> list, size_t count,
                                      bool lower_is_better);

 private:
  std::string path(int64_t step, const char* suffix = "") const;
  std::string folder_;
};

// The mean of several checkpoints' weights (of their running averages, where they have one).
void load_average(const std::vector<Checkpoint>& checkpoints, Parameters& parameters);

// Flushes a folder's entries to the disk.
void sync_folder(const std::string& folder);

}  // namespace heed
