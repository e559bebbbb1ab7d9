// The table of Hugging Face architectures that Heed loads and saves.
//
// An architecture is data: its transformers classes, a function that lists the fields of its
// config.json (hf_fields.h), and a map from Heed's weight names to its tensor names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/hugging_face/hf_fields.h"

namespace heed {

// The layout of a matrix in the file.
enum class HfLayout {
  plain,       // [out, in], as Heed's
  transposed,  // [in, out]: GPT-2's Conv1D
  per_head,    // rows [heads, 3, head_dim]: q, k and v interleaved by head
  one_row,     // a vector with the shape [1, n]
  sinusoids,   // no weight: a table computed from the config, saved for other readers
};

struct HfName {
  std::string heed;                // "encoder.{i}.self.qkv.weight"; {i} is the layer
  std::vector<std::string> parts;  // tensors that are concatenated by rows
  HfLayout layout = HfLayout::plain;
  bool in_head = false;                    // without the base model's prefix
  bool optional = false;                   // zero when it is absent
  std::vector<std::string> other_names{};  // of a single part, where files differ
};

// Collects the rows of a name map.
class HfNames {
 public:
  // name.weight and name.bias.
  void linear(const std::string& heed, const std::vector<std::string>& parts,
              HfLayout layout = HfLayout::plain);
  // gamma and beta ↔ weight and bias.
  void norm(const std::string& heed, const std::string& name);
  // A tensor with its full name.
  HfName& tensor(const std::string& heed, const std::string& name);
  // The following names belong to the head, which has no prefix.
  void begin_head() { in_head_ = true; }

  std::span<const HfName> rows() const { return rows_; }

 private:
  std::vector<HfName> rows_;
  bool in_head_ = false;
};

// A transformers class, and its head and family.
struct HfClass {
  const char* name;  // "BertForMaskedLM"
  Head head;
  Family family;
};

struct HfArchitecture {
  const char* model_type;
  const char* prefix;            // of the base model's tensors where there is a head
  std::vector<HfClass> classes;  // the first is the default if config.json names none
  void (*fields)(HfFields& f, ModelConfig& c);
  void (*names)(HfNames& n, const ModelConfig& c);
  // Tensors without information: buffers and copies of tied matrices. `*` matches any text.
  std::vector<std::string> ignored_tensors;
  // Fields that do not affect the computation.
  std::vector<std::string> ignored_fields;
};

// All architectures. A config that several can express is saved as the first of them.
std::span<const HfArchitecture> hf_architectures();

// The families, one file each.
std::vector<HfArchitecture> hf_bert_family();
std::vector<HfArchitecture> hf_gpt_family();
std::vector<HfArchitecture> hf_llama_family();
std::vector<HfArchitecture> hf_t5_family();
std::vector<HfArchitecture> hf_bart_family();

// The shortest pattern that gives the same windows for this many layers; empty when none is set.
std::vector<int64_t> shortest_pattern(const std::vector<int64_t>& windows, int layers);
// Sets `attention` and `windows` from a window for each layer, 0 where there is none.
void set_windows(ModelConfig& c, const std::vector<int64_t>& windows, int layers);
// RoPE: rope_scaling, and the newer rope_parameters that holds the base too.
void hf_rope_scaling(HfFields& f, ModelConfig& c);
int64_t window_of(const ModelConfig& c, int layer);

}  // namespace heed
