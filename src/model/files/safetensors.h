// safetensors, the Hugging Face format of tensors:
//
//   u64 length of the header, little-endian
//   the header, JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
//                      "__metadata__": {"format": "pt"}}
//   the tensors' bytes; offsets count from here, and every byte belongs to exactly one tensor
//
// https://github.com/huggingface/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/files/tensor_file.h"

namespace heed {

// The tensors of a safetensors image; they borrow `file`. `where` names it in messages. All that
// is wrong with the tensors is reported in one error.
TensorTable read_safetensors(std::span<const std::byte> file, const std::string& where);

// Writes `tensors` in the given order, but wider types before narrower ones, so that each is
// aligned (PyTorch refuses to read others). "format": "pt" joins the metadata unless there is a
// format already. The file appears whole or not at all (AtomicFile); a link or a special file at
// `path` is written through.
void write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Writes a model folder's tensors: model.safetensors when they fit into `max_shard_bytes`, else
// model-00001-of-0000N.safetensors … and model.safetensors.index.json. A larger tensor gets a shard
// of its own. Removes what an earlier call with another number of shards left in the folder, which
// would otherwise be read instead.
void write_safetensors_folder(const std::string& folder, std::span<const TensorView> tensors,
                              uint64_t max_shard_bytes,
                              const std::map<std::string, std::string>& metadata = {});

// Copies the safetensors files `paths` of the folder `from`, and their index if there is one, byte for
// byte. Otherwise like write_safetensors_folder().
void copy_safetensors_folder(const std::vector<std::string>& paths, const std::string& from,
                             const std::string& to);

}  // namespace heed
